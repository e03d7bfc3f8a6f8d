"""What is divided is divided fairly, and a bucket keeps its rate."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.sharing.governor.buckets import SMALLEST_BURST, TokenBucket
from cargobike.sharing.governor.division import allot, divide

WISHES = st.dictionaries(st.integers(), st.floats(0, 1e9) | st.just(math.inf), max_size=8)


@given(st.floats(1, 1e9), WISHES)
def test_no_wish_is_exceeded_and_who_gets_less_gets_as_much_as_any_other(
    total: float, wishes: dict[int, float]
) -> None:
    shares = divide(total, wishes)
    assert shares.keys() == wishes.keys()
    assert sum(shares.values()) <= total * (1 + 1e-9)
    most = max(shares.values(), default=0)
    for key, share in shares.items():
        assert share <= wishes[key]
        assert share >= most * (1 - 1e-9) or share == pytest.approx(wishes[key])


@given(st.floats(1, 1e9), WISHES)
def test_nothing_is_left_over_that_one_could_use(total: float, wishes: dict[int, float]) -> None:
    assert sum(divide(total, wishes).values()) == pytest.approx(min(total, sum(wishes.values())))


def test_without_a_total_all_wishes_come_true() -> None:
    assert divide(None, {"a": 3.0, "b": math.inf}) == {"a": 3.0, "b": math.inf}


def test_what_none_wishes_is_there_for_whoever_begins() -> None:
    assert allot(100.0, {"idle": 10.0, "busy": math.inf}) == {"idle": 10.0, "busy": 90.0}
    assert allot(100.0, {"idle": 10.0, "slow": 20.0}) == {"idle": 80.0, "slow": 90.0}
    assert allot(None, {"idle": 10.0}) == {"idle": math.inf}


@given(st.floats(1e3, 1e8), st.lists(st.integers(1, 200_000), min_size=1, max_size=50))
def test_a_bucket_lets_no_more_through_than_its_rate_and_one_burst(rate: float, messages: list[int]) -> None:
    bucket, now = TokenBucket(rate, 0.0), 0.0
    for size in messages:
        delay = bucket.delay(now)
        assert delay is not None
        now += delay
        bucket.take(size, now)
    burst = max(SMALLEST_BURST, rate * 0.05)
    assert sum(messages) - messages[-1] <= (rate * now + burst) * (1 + 1e-6)


def test_a_bucket_of_rate_0_says_that_there_is_no_end_and_goes_on_when_the_rate_changes() -> None:
    bucket = TokenBucket(0.0, 0.0)
    assert bucket.delay(100.0) is None
    bucket.set_rate(1000.0, 100.0)
    bucket.take(500, 100.0)
    assert bucket.delay(100.0) == pytest.approx(0.5)
    bucket.set_rate(None, 100.1)
    assert bucket.delay(100.1) == 0
