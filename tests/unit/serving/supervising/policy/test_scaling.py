"""How many replicas there are to be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cargobike.serving.specification import Scaling
from cargobike.serving.supervising.policy.scaling import Scaler
from cargobike.serving.wire import Load


def load(**fields: float) -> Load:
    return Load(**{"at_s": 0.0, "arrived": 0, "waiting": 0, "at_work": 0, "longest_wait_s": 0.0, **fields})  # type: ignore[arg-type]


def test_a_step_of_load_is_answered_by_the_first_decision_that_sees_it() -> None:
    scaler = Scaler(Scaling(least=1, most=4, target=8), 0.0)
    assert scaler.see(0.25, load(at_work=8)) == 1
    assert scaler.see(0.5, load(at_work=8, waiting=24)) == 4


def test_replicas_end_only_when_load_has_been_low_for_the_window() -> None:
    scaler = Scaler(Scaling(least=1, most=4, target=8, window_s=30), 0.0)
    scaler.see(40.0, load(at_work=32))
    assert scaler.see(69.0, load(at_work=4)) == 4
    assert scaler.see(71.0, load(at_work=4)) == 1


def test_load_that_comes_and_goes_faster_than_the_window_does_not_move_it() -> None:
    scaler = Scaler(Scaling(least=1, most=4, target=8, window_s=30), 0.0)
    answers = [scaler.see(float(second), load(at_work=32 if second % 10 == 0 else 1)) for second in range(300)]
    assert set(answers[1:]) == {4}


def test_requests_per_second_are_counted_over_a_second() -> None:
    scaler = Scaler(Scaling(least=1, most=10, by="requests", target=100), 0.0)
    for quarter in range(1, 6):
        answer = scaler.see(quarter * 0.25, load(arrived=75))
    assert answer == 3


def test_a_queue_that_waits_too_long_gets_more_and_an_empty_one_fewer() -> None:
    scaler = Scaler(Scaling(least=1, most=8, by="queue", target=0.1, window_s=5), 0.0)
    assert scaler.see(1.0, load(longest_wait_s=0.15)) == 2
    assert scaler.see(1.25, load(longest_wait_s=0.9)) == 4
    assert scaler.see(1.5, load(longest_wait_s=0.05)) == 4
    for step in range(100):
        answer = scaler.see(2.0 + step, load())
    assert answer == 1


def test_it_falls_to_zero_when_idle_and_the_first_request_brings_one_back() -> None:
    scaler = Scaler(Scaling(least=0, most=4, target=8, idle_s=60), 0.0)
    scaler.see(1.0, load(arrived=50, at_work=32))
    assert scaler.decide(60.9) == 4
    assert scaler.decide(61.0) == 0
    assert scaler.see(62.0, load()) == 0
    assert scaler.see(63.0, load(waiting=1)) == 1
    assert scaler.see(64.0, load()) == 1


def test_new_bounds_hold_at_once() -> None:
    scaler = Scaler(Scaling(least=1, most=4, target=8), 0.0)
    scaler.see(1.0, load(at_work=32))
    scaler.bound(2.0, 1, 2)
    assert scaler.see(2.25, load(at_work=32)) == 2
    scaler.bound(3.0, 3, 5)
    assert scaler.see(3.25, load()) == 3


LOADS = st.lists(
    st.tuples(
        st.floats(0.05, 50.0),
        st.integers(0, 1000),
        st.integers(0, 1000),
        st.integers(0, 200),
        st.floats(0.0, 20.0),
    ),
    min_size=1,
    max_size=60,
)


@given(
    least=st.integers(0, 5),
    more=st.integers(0, 10),
    by=st.sampled_from(["concurrency", "requests", "queue"]),
    target=st.floats(0.01, 100.0),
    loads=LOADS,
)
def test_it_is_never_outside_the_bounds_and_settles(
    least: int, more: int, by: str, target: float, loads: list[tuple[float, int, int, int, float]]
) -> None:
    scaling = Scaling(least=least, most=max(1, least + more), by=by, target=target, idle_s=40.0)  # type: ignore[arg-type]
    scaler, at = Scaler(scaling, 0.0), 0.0
    for passed, arrived, waiting, at_work, wait_s in loads:
        at += passed
        answer = scaler.see(at, load(arrived=arrived, waiting=waiting, at_work=at_work, longest_wait_s=wait_s))
        assert scaling.least <= answer <= scaling.most
        if by == "concurrency":
            assert answer >= min(scaling.most, (waiting + at_work) / target - 1e-6)
    answers = []
    for _ in range(2000):  # the same load goes on
        at += 0.25
        last = load(arrived=0 if by != "requests" else 5, waiting=1, at_work=3, longest_wait_s=0.5 * target)
        answers.append(scaler.see(at, last))
    assert len(set(answers[-500:])) == 1
