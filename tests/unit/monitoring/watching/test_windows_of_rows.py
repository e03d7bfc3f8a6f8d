from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.monitoring.facts import AlarmEnded, AlarmRaised, AnyMonitorFact, Watched, WindowChoice, WindowJudged
from cargobike.monitoring.watching.features import features_of_log, fitted
from cargobike.monitoring.watching.watching import Watching, WatchingRecord
from cargobike.monitoring.watching.windows import Closed, Windows, WindowsRecord, seconds_of
from support.watched_rows import START, logged, small_reference

HOUR = WindowChoice(rows=0, seconds=3600.0, lateness_s=60.0)


def gather(windows: Windows, rows: pa.Table, now: float = START + 10**6) -> list[Closed]:
    features = fitted(features_of_log(rows), small_reference().summing.layout)
    return windows.feed(features, seconds_of(rows["at"]), rows["version"].to_numpy(), now)


def restarted(windows: Windows, choice: WindowChoice) -> Windows:
    """Return what another process makes of what was kept."""
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(windows.record()), type=WindowsRecord)
    return Windows(choice, small_reference().summing, kept)


def told(closed: list[Closed]) -> list[tuple[int, float, float, int]]:
    return [(one.version, one.first_at, one.last_at, one.rows) for one in closed]


@given(st.lists(st.integers(0, 40), max_size=12), st.booleans(), st.data())
@settings(max_examples=25, deadline=None)
def test_windows_do_not_depend_on_how_rows_come_or_who_is_killed(
    sizes: list[int], is_by_time: bool, data: st.DataObject
) -> None:
    choice = WindowChoice(rows=0, seconds=30.0, lateness_s=5.0) if is_by_time else WindowChoice(rows=30)
    versions = data.draw(st.lists(st.sampled_from((1, 1, 1, 2)), min_size=sum(sizes), max_size=sum(sizes)))
    rows = logged(sum(sizes), version=versions)
    whole = gather(Windows(choice, small_reference().summing), rows)
    windows, pieces, start = Windows(choice, small_reference().summing), list[Closed](), 0
    for size in sizes:
        windows = restarted(windows, choice)
        pieces += gather(windows, rows.slice(start, size))
        start += size
    key = sorted if is_by_time else list[Any]
    assert key(told(pieces)) == key(told(whole))
    assert sum(one.rows for one in pieces) + windows.waiting == sum(sizes), "each row is in one window"
    assert all(one.late == 0 for one in pieces)


def test_windows_by_count_have_so_many_rows_of_one_version() -> None:
    windows = Windows(WindowChoice(rows=30), small_reference().summing)
    closed = gather(windows, logged(100, version=[1] * 40 + [2] * 60))
    assert [(one.version, one.rows) for one in closed] == [(1, 30), (2, 30), (2, 30), (1, 10)], (
        "what is left of a version that gets no more requests is closed after two windows of the others"
    )
    assert windows.waiting == 0


def test_windows_by_time_are_hours_of_utc_and_wait_for_what_is_late() -> None:
    windows = Windows(HOUR, small_reference().summing)
    ats = START + np.array([10, 3500, 3601, 3590, 3659.0])
    assert gather(windows, logged(5, at=ats)) == []
    (first,) = gather(windows, logged(1, at=np.array([START + 3660.0])))
    assert (first.start, first.rows, first.first_at, first.last_at) == (START, 3, START + 10, START + 3590)
    assert gather(windows, logged(2, at=START + np.array([20.0, 3700]))) == [], "the first hour is closed"
    (second,) = gather(windows, logged(1, at=np.array([START + 4 * 3600.0])))
    assert (second.start, second.rows, second.late) == (START + 3600, 4, 1), "hours without rows are no windows"


def test_time_that_runs_backwards_or_far_ahead_closes_nothing() -> None:
    windows = Windows(HOUR, small_reference().summing)
    now = START + 100
    assert gather(windows, logged(3, at=START + np.array([50.0, 40, 30])), now) == []
    assert gather(windows, logged(1, at=np.array([START + 10**7])), now) == [], "a clock that is months ahead"
    assert gather(windows, logged(1, at=np.array([START + 60.0])), now) == []
    assert windows.tick(START + 3600) == []
    (closed,) = windows.tick(START + 3600 + 400)
    assert (closed.rows, closed.last_at) == (5, now + 300), "it counts as if it had come now"
    assert windows.tick(START + 10**6) == []


WATCHED = Watched(subject="digits", window=WindowChoice(rows=50), alarm="2 of 3", columns=("age", "town"))


def watch(*stretches: pa.Table) -> list[AnyMonitorFact]:
    """Return the facts of rows that come in stretches, in a process each."""
    facts, kept = list[AnyMonitorFact](), WatchingRecord()
    for number, rows in enumerate(stretches):
        watching = Watching(WATCHED, small_reference(), kept)
        outcome = watching.feed(rows, f"position {number}", START + 1000, dropped=1)
        facts += outcome.facts
        assert len(outcome.judgements) == sum(isinstance(fact, WindowJudged) for fact in outcome.facts)
        kept = msgspec.msgpack.decode(msgspec.msgpack.encode(watching.record()), type=WatchingRecord)
    return facts


def test_an_alarm_says_what_moved_since_when_and_is_raised_once() -> None:
    facts = watch(logged(100), logged(200, seed=2, moved=2.0, at=START + 100), logged(200, seed=3, at=START + 300))
    windows = [fact for fact in facts if isinstance(fact, WindowJudged)]
    assert [fact.number for fact in windows] == [*range(1, 11)]
    assert [fact.unusual for fact in windows[2:6]] == [True] * 4
    assert sum(fact.dropped for fact in windows) == 3
    (raised,) = [fact for fact in facts if isinstance(fact, AlarmRaised)]
    assert raised.id == "alarm-1"
    assert (raised.window, raised.windows, raised.since) == (4, (3, 4), START + 100)
    assert raised.moved[0].feature == "age"
    assert raised.moved[0].reference.startswith("mean 39.5")
    assert raised.moved[0].now.startswith("mean 59.6")
    assert raised.position == "position 1"
    assert "digits drifted: age" in raised.text
    (ended,) = [fact for fact in facts if isinstance(fact, AlarmEnded)]
    assert ended.id == "alarm-1"
    assert ended.window >= 8


def test_few_rows_are_not_judged_and_it_is_said() -> None:
    watched = msgspec.structs.replace(WATCHED, window=WindowChoice(rows=3))
    outcome = Watching(watched, small_reference()).feed(logged(3), "p", START)
    (window,) = outcome.facts
    assert isinstance(window, WindowJudged)
    assert window.reason == "it has 3 rows, and at least 20 are needed to judge"
    assert not outcome.judgements


@pytest.mark.parametrize("wrong", ["missing", "null", "text"])
def test_a_feature_that_is_gone_is_an_alarm_and_no_error(wrong: str) -> None:
    rows = logged(50)
    place = rows.column_names.index("input.age")
    if wrong == "missing":
        rows = rows.remove_column(place)
    else:
        column = pa.nulls(50, pa.float64()) if wrong == "null" else pa.array(["forty"] * 50)
        rows = rows.set_column(place, "input.age", column)
    (window, *_) = watch(rows)
    assert isinstance(window, WindowJudged)
    assert window.unusual
    assert window.moved[0].feature == "age"
    assert window.moved[0].now.endswith("100.0% missing")
