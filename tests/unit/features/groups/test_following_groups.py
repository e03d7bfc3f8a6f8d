from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cargobike import features, monitoring, project
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.registering.following import log_keeper
from cargobike.monitoring.record import folder_of
from cargobike.monitoring.running.process import watch_until


def teams(first: int, count: int, *, budget: float = 5.0) -> pa.Table:
    random = np.random.default_rng(first)
    at = pa.array(np.datetime64("2026-05-01", "us") + np.arange(first, first + count) * np.timedelta64(1, "s"))
    return pa.table(
        {
            "team_id": np.arange(first, first + count),
            "at": at.cast(pa.timestamp("us", "UTC")),
            "budget": random.normal(budget, 1, count),
            "city": random.choice(["Oslo", "Rome"], count),
        }
    )


def read_all(follower: Any, position: str = "", most: int = 70) -> tuple[list[float], str]:
    values: list[float] = []
    for _ in range(100):
        stretch = follower.read(position, most)
        values += stretch.rows["input.budget"].to_pylist() if stretch.rows.num_rows else []
        position = stretch.position
        if not stretch.more:
            return values, position
    raise AssertionError("it does not end")


def test_rows_of_a_group_come_once_and_without_keys() -> None:
    group = features.create_group("teams", key="team_id", event_time="at")
    follower = log_keeper("group").follow("teams", project.current())
    assert read_all(follower) == ([], '{"commit":-1,"rows":0}')
    group.insert(teams(0, 100))
    group.insert(teams(100, 50))
    first = follower.read("", 120)
    assert first.rows.num_rows == 120
    assert first.more
    assert {name for name in first.rows.column_names if "." in name} == {"input.budget", "input.city"}
    assert first.rows["at"].to_pylist()[0].isoformat() == "2026-05-01T00:00:00+00:00"
    rest, position = read_all(log_keeper("group").follow("teams", project.current()), first.position)
    assert len(rest) == 30
    assert sorted(first.rows["input.budget"].to_pylist() + rest) == sorted(group.read()["budget"].to_pylist())
    assert follower.end() == position
    group.insert(teams(40, 1, budget=99.0))
    group.delete([41])
    group.compact()
    changed, _ = read_all(follower, position)
    assert changed == [pytest.approx(99, abs=5)], "a new value comes, what was deleted or compacted does not"
    with pytest.raises(StoreError, match="was read up to 99 before: it was deleted and made anew"):
        follower.read('{"commit":99,"rows":0}', 10)
    with pytest.raises(InvalidInputError, match="'x' is no position in a feature group"):
        follower.read("x", 10)


def test_new_rows_of_a_group_are_compared_with_those_before() -> None:
    group = features.create_group("teams", key="team_id", event_time="at")
    with pytest.raises(InvalidInputError, match="The feature group teams has no rows yet"):
        monitoring.watch(group, start=False)
    group.insert(teams(0, 1000))
    monitor = monitoring.watch(group, window=100, alarm="2 of 2", start=False)
    assert monitoring.watch("group:teams", window=100, alarm="2 of 2", start=False).name == monitor.name == "teams"
    assert monitor.record().watched.kind == "group"
    assert sorted(monitor.record().watched.columns) == ["budget", "city"]
    group.insert(teams(1000, 200))
    group.insert(teams(2000, 300, budget=6.0))
    over = threading.Event()
    thread = threading.Thread(target=watch_until, args=(over, folder_of(project.current(), "teams")))
    thread.start()
    try:
        for _ in range(600):
            if len(monitor.windows()) >= 5:
                break
            over.wait(0.05)
    finally:
        over.set()
        thread.join(30)
    assert [window.unusual for window in monitor.windows()] == [False, False, True, True, True]
    (alarm,) = monitor.alarms()
    assert alarm.raised.moved[0].feature == "budget"


def test_what_cannot_be_watched_is_said() -> None:
    for wrong in ("table:x", "", 3):
        with pytest.raises(InvalidInputError, match="cannot be watched; give the name of a deployment"):
            monitoring.watch(wrong, start=False)
    with pytest.raises(InvalidInputError, match="a feature group is watched with 'local'"):
        monitoring.watch("group:teams", engine="spark", start=False)
