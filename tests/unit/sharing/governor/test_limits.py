"""Limits hold at the hours they name, and are read as people write them."""

from __future__ import annotations

from datetime import datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.sharing.governor.limits import DAYS, Hours, Limits, Rates, parse_hours, parse_rate

MONDAY = datetime(2026, 3, 2)


def test_hours_hold_from_their_beginning_until_before_their_end() -> None:
    limits = Limits(send_rate=10e6, hours=(parse_hours("mon-fri 08:00-18:00 send=1MB/s"),))
    assert limits.at(MONDAY.replace(hour=7, minute=59)) == Rates(10e6, None)
    assert limits.at(MONDAY.replace(hour=8)) == Rates(1e6, None)
    assert limits.at(MONDAY.replace(hour=18)) == Rates(10e6, None)
    assert limits.at(MONDAY.replace(day=7, hour=12)) == Rates(10e6, None)


def test_hours_over_midnight_belong_to_the_day_on_which_they_begin() -> None:
    hours = parse_hours("mon 22:00-06:00 send=0 receive=5k")
    assert hours.hold_at(MONDAY.replace(hour=23))
    assert hours.hold_at(MONDAY.replace(day=3, hour=5))
    assert not hours.hold_at(MONDAY.replace(hour=5))
    assert not hours.hold_at(MONDAY.replace(day=3, hour=23))


def test_of_several_limits_the_lowest_counts() -> None:
    night, noon = parse_hours("00:00-24:00 send=300k"), parse_hours("11:00-13:00 send=400k receive=100k")
    assert Limits(send_rate=350e3, hours=(night, noon)).at(MONDAY.replace(hour=12)) == Rates(300e3, 100e3)


@given(st.datetimes(), st.times(), st.times(), st.sets(st.integers(0, 6)))
def test_a_limit_never_allows_more_than_the_general_one(now: datetime, begin: time, end: time, days: set[int]) -> None:
    hours = Hours(begin=begin, end=end, days=frozenset(days), send_rate=5.0)
    assert Limits(send_rate=9.0, hours=(hours,)).at(now).send == (5.0 if hours.hold_at(now) else 9.0)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("500k", 500e3),
        ("20MB/s", 20e6),
        ("80Mbit/s", 10e6),
        ("1.5Mi", 1.5 * 2**20),
        ("0", 0.0),
        ("none", None),
        ("8 kbit", 1e3),
    ],
)
def test_rates_are_read_as_people_write_them(text: str, rate: float | None) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "-3", "1e9", "3 T"])
def test_what_is_no_rate_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidInputError, match="write 500k"):
        parse_rate(text)


@pytest.mark.parametrize(
    "text", ["", "8-18", "08:00-18:00", "08:00-18:00 send", "mon..fri 08:00-18:00 send=1k", "25:00-26:00 send=1"]
)
def test_what_are_no_hours_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="are no hours"):
        parse_hours(text)


def test_days_may_be_a_list_and_a_range_over_the_weekend() -> None:
    assert parse_hours("fri-mon,wed 1:00-2:00 send=1").days == {4, 5, 6, 0, 2}
    with pytest.raises(InvalidInputError, match=", ".join(DAYS)):
        parse_hours("someday 1:00-2:00 send=1")


def test_all_wrong_limits_are_named_at_once() -> None:
    with pytest.raises(InvalidInputError, match="bytes a second") as caught:
        Limits(send_rate=-1, peers={"tower": float("nan")}, hours=(Hours(time(1), time(2), receive_rate=-5),))
    assert len(caught.value.mistakes) == 3
