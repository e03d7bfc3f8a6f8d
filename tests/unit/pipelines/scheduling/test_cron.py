"""Cron expressions against an oracle that looks at every minute, and what is said about wrong ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.pipelines.scheduling.times.cron import Cron

CHANGES = [
    ("Europe/Oslo", "2026-03-29T01:00"),
    ("Europe/Oslo", "2026-10-25T01:00"),
    ("America/New_York", "2026-03-08T07:00"),
    ("America/New_York", "2026-11-01T06:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),  # by half an hour
    ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ("America/Sao_Paulo", "2018-02-18T02:00"),  # at midnight, back
    ("America/Sao_Paulo", "2018-11-04T03:00"),  # at midnight, forward
    ("Atlantic/Azores", "2026-10-25T01:00"),
    ("Africa/Casablanca", "2026-02-15T02:00"),
    ("Pacific/Apia", "2011-12-30T10:00"),  # a whole day is left out
    ("America/St_Johns", "2010-11-07T02:31"),  # one minute past midnight, back over it
    ("Asia/Kathmandu", "2026-05-01T00:00"),  # an offset of 5:45, no change
    ("UTC", "2026-02-28T12:00"),
]


def moment(text: str, zone: tzinfo = UTC) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


class Oracle:
    """Reads one expression by looking at every minute: shares nothing with the code that it checks."""

    def __init__(self, minutes: set[int], hours: set[int], weekdays: set[int], *, is_wild: bool, zone: str) -> None:
        self.minutes, self.hours, self.weekdays, self.is_wild = minutes, hours, weekdays, is_wild
        self.zone = ZoneInfo(zone)

    def matches(self, local: datetime) -> bool:
        is_day = local.isoweekday() % 7 in self.weekdays
        return is_day and local.hour in self.hours and local.minute in self.minutes

    def times(self, start: float, end: float) -> list[float]:
        """Walk real minutes; what the clock shows again is passed over, what it leaps over fires at the leap."""
        fired, shown = [], datetime.min
        at = start - 3 * 3600  # no clock is set back by more
        while at <= end:
            local = datetime.fromtimestamp(at, self.zone).replace(tzinfo=None, fold=0)
            if self.is_wild:
                if self.matches(local):
                    fired.append(at)
            elif shown == datetime.min:
                shown = local
            elif local > shown:
                leapt = [shown + timedelta(minutes=n) for n in range(1, int((local - shown).total_seconds() // 60) + 1)]
                if any(self.matches(minute) for minute in leapt):
                    fired.append(at)
                shown = local
            at += 60
        return [time for time in fired if start < time <= end]


@st.composite
def expressions(draw: st.DrawFn) -> tuple[str, set[int], set[int], set[int], bool]:
    minute_star, hour_star = draw(st.booleans()), draw(st.booleans())
    if minute_star:
        step = draw(st.sampled_from([1, 7, 15, 30]))
        minute_text, minutes = f"*/{step}" if step > 1 else "*", set(range(0, 60, step))
    else:
        chosen = draw(st.sets(st.integers(0, 59), min_size=1, max_size=3))
        minute_text, minutes = ",".join(map(str, sorted(chosen))), chosen
    if hour_star:
        step = draw(st.sampled_from([1, 2, 5]))
        hour_text, hours = f"*/{step}" if step > 1 else "*", set(range(0, 24, step))
    else:
        low, high = sorted(draw(st.tuples(st.integers(0, 23), st.integers(0, 23))))
        hour_text, hours = f"{low}-{high}", set(range(low, high + 1))
    weekdays = draw(st.one_of(st.just(set(range(7))), st.sets(st.integers(0, 6), min_size=1)))
    week_text = "*" if len(weekdays) == 7 else ",".join(map(str, sorted(weekdays)))
    return f"{minute_text} {hour_text} * * {week_text}", minutes, hours, weekdays, minute_star or hour_star


@settings(max_examples=15, deadline=None)
@given(expressions(), st.sampled_from(CHANGES), st.integers(-720, 120))
def test_times_are_those_of_a_walk_over_every_minute(
    expression: tuple[str, set[int], set[int], set[int], bool], change: tuple[str, str], minutes: int
) -> None:
    text, minute, hour, week, is_wild = expression
    zone, when = change
    start = moment(when) + 60.0 * minutes
    end = start + 14 * 3600
    cron = Cron(text, zone)
    found, time = [], cron.next_after(start)
    while time is not None and time <= end:
        found.append(time)
        time = cron.next_after(time)
    assert found == Oracle(minute, hour, week, is_wild=is_wild, zone=zone).times(start, end)


@settings(max_examples=8, deadline=None)
@given(expressions(), st.sampled_from(CHANGES), st.integers(1, 40), st.floats(0, 86400))
def test_the_last_times_are_the_end_of_all(
    expression: tuple[str, set[int], set[int], set[int], bool], change: tuple[str, str], most: int, length: float
) -> None:
    cron, start = Cron(expression[0], change[0]), moment(change[1]) - 86400
    times, time = [], cron.next_after(start)
    while time is not None and time <= start + length:
        times.append(time)
        time = cron.next_after(time)
    assert cron.last(most, start, start + length) == times[-most:]


def test_midnight_comes_before_the_last_hour_of_its_day_is_shown_again() -> None:
    cron = Cron("* * * * *", "America/St_Johns")
    assert cron.next_after(moment("2010-11-07T02:29")) == moment("2010-11-07T02:30")
    assert cron.next_after(moment("2010-11-07T02:30")) == moment("2010-11-07T02:31")


def test_a_fixed_time_that_clocks_leave_out_fires_at_the_change_and_one_that_they_repeat_once() -> None:
    cron = Cron("30 2 * * *", "Europe/Oslo")
    times = [cron.next_after(moment("2026-03-28T00:00")) or 0]
    times += [cron.next_after(times[0]) or 0]
    assert times == [moment("2026-03-28T01:30"), moment("2026-03-29T01:00")]
    autumn = cron.next_after(moment("2026-10-24T12:00")) or 0
    assert [autumn, cron.next_after(autumn)] == [moment("2026-10-25T00:30"), moment("2026-10-26T01:30")]


def test_every_hour_follows_real_time_through_both_changes() -> None:
    cron = Cron("0 * * * *", "Europe/Oslo")
    for day in ("2026-03-29", "2026-10-25"):
        start = moment(f"{day}T00:00") - 7200
        assert cron.last(100, start, start + 6 * 3600) == [start + 3600 * n for n in range(1, 7)]


@pytest.mark.parametrize(
    ("expression", "following"),
    [
        ("0 3 * * *", ["2026-01-02T03:00", "2026-01-03T03:00"]),
        ("@hourly", ["2026-01-02T01:00", "2026-01-02T02:00"]),
        ("0 0 L * *", ["2026-01-31T00:00", "2026-02-28T00:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 13 * FRI", ["2026-01-09T00:00", "2026-01-13T00:00"]),  # both days are restricted: either will do
        ("5/20 1 * jan-mar mon", ["2026-01-05T01:05", "2026-01-05T01:25"]),
        ("0 0 * * 5-7", ["2026-01-03T00:00", "2026-01-04T00:00"]),
        ("0 0 * * SAT-SUN", ["2026-01-03T00:00", "2026-01-04T00:00"]),
        ("0 0 1 1 *", ["2027-01-01T00:00", "2028-01-01T00:00"]),
    ],
)
def test_what_an_expression_means(expression: str, following: list[str]) -> None:
    cron, at, found = Cron(expression), moment("2026-01-02T00:00"), []
    for _ in following:
        at = cron.next_after(at) or 0.0
        found.append(datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M"))
    assert found == following


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("60 3 * * *", r"minute '60': '60' is not one of 0 to 59"),
        ("0 24 * * *", r"hour '24': '24' is not one of 0 to 23"),
        ("0 0 0 * *", r"day of month '0': '0' is not one of 1 to 31"),
        ("0 0 * 13 *", r"month '13': '13' is not one of 1 to 12, or JAN to DEC"),
        ("0 0 * JLY *", r"'JLY' is not one of .* Did you mean 'JUL'\?"),
        ("0 0 * * 8", r"day of week '8': '8' is not one of 0 to 7, or SUN to SAT"),
        ("*/0 * * * *", r"minute '\*/0': the step '0' must be a whole number above 0"),
        ("*/90 * * * *", r"the step 90 is larger than 59"),
        ("0 22-3 * * *", r"hour '22-3': the range 22-3 runs backwards; write 22-23,0-3"),
        ("0 0 31 2 *", r"never comes: no such month has a day 31"),
        ("0 3 * *", r"has 4 fields; write five: minute, hour, day of month, month, day of week"),
        ("0 0 3 * * *", r"has 6 fields.*Seconds are not part of it; every= takes them"),
        ("@dayly", r"is no shorthand of cron; .* Did you mean '@daily'\?"),
        ("", r"has 0 fields"),
        ("1" * 300, r"at most 200 characters"),
        ("٣ 0 * * *", r"is not one of 0 to 59"),
    ],
)
def test_what_is_wrong_with_an_expression_is_said(expression: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        Cron(expression)


def test_all_wrong_fields_are_named_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        Cron("61 25 0 * *")
    assert [mistake.split()[0] for mistake in caught.value.mistakes] == ["minute", "hour", "day"]


@pytest.mark.parametrize("name", ["Europe/Olso", "../../etc/passwd", "", "Mars/Base\0"])
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="is no time zone"):
        Cron("0 3 * * *", name)


def test_an_unknown_zone_comes_with_the_nearest_name() -> None:
    with pytest.raises(InvalidInputError, match="Did you mean 'Europe/Oslo'"):
        Cron("0 3 * * *", "Europe/Olso")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(alphabet="0123456789*/,-LMON@", min_size=1, max_size=5), min_size=4, max_size=6))
def test_a_text_is_refused_or_has_times_to_come(texts: list[str]) -> None:
    try:
        cron = Cron(" ".join(texts))
    except InvalidInputError:
        return
    assert (cron.next_after(0.0) or 0.0) > 0.0
