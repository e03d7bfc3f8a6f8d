from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import Stretch
from cargobike.monitoring.facts import AlarmRaised, Hooks, MonitorStarted, Watched, WindowChoice, WindowJudged
from cargobike.monitoring.hooks.telling import Teller
from cargobike.monitoring.record import MonitorFolder, MonitorRecord, find_record, folder_of
from cargobike.monitoring.running.keeping import Keeper, Kept
from cargobike.monitoring.running.watcher import Watcher
from support.watched_rows import START, logged, small_reference

WATCHED = Watched(subject="digits", window=WindowChoice(rows=50), alarm="1 of 1", columns=("age", "town"))


class Killed(BaseException):
    """Ends a process where it stands."""


class Rows:
    """A log in memory: a position is how many rows were read."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self.is_gone = False

    def read(self, position: str, most: int) -> Stretch:
        if self.is_gone:
            raise StoreError("the log is gone")
        start = int(position or 0)
        end = min(self.rows.num_rows, start + min(most, 35))
        return Stretch(self.rows.slice(start, end - start), str(end), more=end < self.rows.num_rows)

    def end(self) -> str:
        return str(self.rows.num_rows)

    def close(self) -> None:
        """Nothing is open."""


def begin(tmp_path: Path) -> MonitorFolder:
    folder = folder_of(ProjectFolder(tmp_path), "digits")
    keeper = Keeper(folder)
    keeper.commit(Kept(), [MonitorStarted(at=START, id="digits", watched=WATCHED)])
    keeper.close()
    return folder


def start(folder: MonitorFolder, rows: Rows, kill_at: int = -1) -> tuple[Watcher, Keeper]:
    """Return a watcher that is killed before it writes something for the nth time."""
    count = iter(range(10**6))

    def before(_: str) -> None:
        if next(count) == kill_at:
            raise Killed

    keeper = Keeper(folder, before)
    watcher = Watcher(
        folder,
        WATCHED,
        small_reference(),
        keeper,
        opened=lambda: rows,
        teller=Teller("digits", "digits", Hooks()),
        clock=lambda: START + 1000,
    )
    return watcher, keeper


def check(record: MonitorRecord, rows: int) -> None:
    assert [window.number for window in record.windows] == [*range(1, rows // 50 + 1)]
    for place, window in enumerate(record.windows):
        assert (window.first_at, window.last_at) == (START + 50 * place, START + 50 * place + 49), "each row once"


@given(st.lists(st.integers(0, 14), max_size=12))
@settings(max_examples=30, deadline=None)
def test_whatever_is_killed_each_row_counts_once(tmp_path_factory: Any, kills: list[int]) -> None:
    folder = begin(tmp_path_factory.mktemp("project"))
    rows = Rows(logged(220))
    for kill_at in [*kills, -1]:
        watcher, keeper = start(folder, rows, kill_at)
        try:
            while watcher.step():
                pass
        except Killed:
            pass
        finally:
            keeper.close()
    check(find_record(folder.project, "digits"), 220)
    assert sorted(path.name for path in (folder.root / "windows").glob("*.json")) == [f"{n}.json" for n in range(1, 5)]


def test_a_log_that_is_gone_is_said_once_waited_for_and_caught_up_with(tmp_path: Path) -> None:
    folder, rows = begin(tmp_path), Rows(logged(120))
    watcher, keeper = start(folder, rows)
    assert watcher.step()
    rows.is_gone = True
    for _ in range(3):
        with pytest.raises(StoreError, match="the log is gone"):
            watcher.step()
        watcher._say_trouble("the log is gone")
    assert find_record(folder.project, "digits").trouble == "the log is gone"
    rows.is_gone = False
    while watcher.step():
        pass
    keeper.close()
    record = find_record(folder.project, "digits")
    assert record.trouble == ""
    check(record, 120)
    assert _facts(folder).count("trouble") == 2, "that it began and that it ended"


def test_a_journal_that_cannot_be_written_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, rows = begin(tmp_path), Rows(logged(120))
    watcher, keeper = start(folder, rows)
    append = keeper._journal.append
    monkeypatch.setattr(keeper._journal, "append", _refuse)
    with pytest.raises(StoreError, match="no room"):
        _read_all(watcher)
    watcher._say_trouble("no room")
    monkeypatch.setattr(keeper._journal, "append", append)
    while watcher.step():
        pass
    keeper.close()
    check(find_record(folder.project, "digits"), 120)


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    folder = begin(tmp_path)
    folder.checkpoint.write_bytes(b"x")
    with pytest.raises(StoreError, match=r"checkpoint is damaged"):
        Keeper(folder)


def test_the_record_of_a_monitor_has_what_is_needed(tmp_path: Path) -> None:
    folder = begin(tmp_path)
    watcher, keeper = start(folder, Rows(logged(100, moved=2.0)))
    while watcher.step():
        pass
    keeper.close()
    record = find_record(folder.project, "digits")
    (alarm,) = record.alarms
    assert isinstance(alarm.raised, AlarmRaised)
    assert (alarm.state, record.is_drifting) == ("open", True)
    assert isinstance(record.windows[0], WindowJudged)
    assert record.windows[0].drift["age"] < 0.05 < record.windows[0].drift["town"]
    assert record.windows[0].psi.keys() == {"age", "town"}


def _read_all(watcher: Watcher) -> None:
    while watcher.step():
        pass


def _refuse(*_: object, **__: object) -> None:
    raise StoreError("no room")


def _facts(folder: MonitorFolder) -> list[str]:
    return [line.partition('"fact":"')[2].partition('"')[0] for line in folder.journal.read_text().splitlines()]
