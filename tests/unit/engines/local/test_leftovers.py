"""Processes with a mark are ended, however they were started; others are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from cargobike.core.settings import MARK
from cargobike.engines.local import leftovers
from cargobike.engines.local.leftovers import dead_among, end_marked, end_orphans, new_mark

Sleepers = list[subprocess.Popen[bytes]]
OWN_MARK = f"{MARK}_OF_TEST_{os.getpid()}"
"""Every driver that starts on this machine meanwhile ends what dead ones have left under the usual name."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sleepers]:
    monkeypatch.setattr(leftovers, "MARK", OWN_MARK)
    processes: Sleepers = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def sleep(started: Sleepers, mark: str | None, **options: Any) -> subprocess.Popen[bytes]:
    variables = os.environ if mark is None else {**os.environ, OWN_MARK: mark}
    started.append(subprocess.Popen(["sleep", "1000"], env=variables, **options))
    return started[-1]


def test_marked_processes_are_ended_and_no_others(started: Sleepers) -> None:
    mark = os.urandom(8).hex()
    ours = [sleep(started, mark), sleep(started, mark, start_new_session=True)]
    others = [sleep(started, None), sleep(started, f"{mark}0"), sleep(started, mark[:-1])]
    end_marked(mark)
    assert [process.wait(10) for process in ours] == [-signal.SIGKILL] * 2
    assert [process.poll() for process in others] == [None] * 3


def test_those_to_be_spared_live_with_what_is_below_them(started: Sleepers) -> None:
    mark = os.urandom(8).hex()
    script = "sleep 1000 & echo $!; wait"
    parent = subprocess.Popen(["sh", "-c", script], env={**os.environ, OWN_MARK: mark}, stdout=subprocess.PIPE)
    started.append(parent)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    other = sleep(started, mark)
    end_marked(mark, spare=[parent.pid])
    assert other.wait(10) == -signal.SIGKILL
    assert parent.poll() is None
    os.kill(child, 0)
    end_marked(mark)
    assert parent.wait(10) == -signal.SIGKILL
    assert parent.stdout.read() == b"", "it ends when the last one that could write to it has ended"
    parent.stdout.close()


def test_a_driver_that_carries_the_mark_itself_lives() -> None:
    program = "from cargobike.engines.local.leftovers import end_marked; end_marked('abc', patience_s=0.1)"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, MARK: "abc"}, check=True)


def mark_of_a_dead_driver() -> str:
    program = "from cargobike.engines.local.leftovers import new_mark; print(new_mark())"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_only_the_mark_of_a_driver_that_has_surely_ended_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    dead, own = mark_of_a_dead_driver(), mark_of_a_dead_driver()
    word, pid, host, start, numbering = dead.split()
    given_again = f"{word} {os.getpid()} {host} {start} {numbering}"
    living = [
        new_mark(),
        word,
        "",
        f"{word} {pid} {host} {start} of-another-container",
        f"{word} {pid} {host} - {numbering}",
        f"{dead} x",
        own,
    ]
    monkeypatch.setenv(MARK, own)
    assert dead_among([dead, *living, given_again, dead]) == {dead, given_again}


def test_what_dead_drivers_have_left_is_ended_and_nothing_of_living_ones(started: Sleepers) -> None:
    marks = [mark_of_a_dead_driver(), mark_of_a_dead_driver()]
    left = [sleep(started, marks[0]), sleep(started, marks[0], start_new_session=True), sleep(started, marks[1])]
    spared = [sleep(started, None), sleep(started, new_mark()), sleep(started, marks[0].split()[0])]
    end_orphans(lambda _: None)
    assert [process.wait(10) for process in left] == [-signal.SIGKILL] * 3
    assert [process.poll() for process in spared] == [None] * 3


def test_what_was_left_gets_time_to_end_by_itself(started: Sleepers) -> None:
    mark = mark_of_a_dead_driver()
    left = sleep(started, mark)

    def end_by_itself(_: float) -> None:
        left.terminate()
        left.wait(10)

    end_orphans(end_by_itself)
    assert left.returncode == -signal.SIGTERM
