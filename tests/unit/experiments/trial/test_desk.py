"""The directory that trials work in, when several processes come and go."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cargobike.experiments.trial.desk import Desk


@pytest.fixture(autouse=True)
def _back() -> Iterator[None]:
    here = os.getcwd()
    yield
    os.chdir(here)


def _other_process(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(type(error).__name__, error, file=sys.stderr)
            os._exit(1)
    return pid


def _ended_well(pid: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_an_empty_directory_goes_with_its_worker_to_the_next_trial(tmp_path: Path) -> None:
    desk = Desk(str(tmp_path))
    desk.move_to("a")
    before = (tmp_path / "a").stat().st_ino
    desk.move_to("b")
    assert os.listdir(tmp_path) == ["b"]
    assert (tmp_path / "b").stat().st_ino == before
    assert os.getcwd() == str(tmp_path / "b")
    desk.clear()
    assert os.listdir(tmp_path) == []


def test_what_was_left_in_it_stays(tmp_path: Path) -> None:
    desk = Desk(str(tmp_path))
    desk.move_to("a")
    Path("left").touch()
    desk.move_to("b")
    desk.clear()
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "left"]


@pytest.mark.parametrize("leaving", ["for another trial", "for good"])
def test_one_that_leaves_takes_nothing_from_another_who_goes_on_there(tmp_path: Path, leaving: str) -> None:
    first, second = Desk(str(tmp_path)), Desk(str(tmp_path))
    first.move_to("a")
    second.move_to("a")
    if leaving == "for good":
        first.clear()
    else:
        first.move_to("b")
    os.chdir(tmp_path / "a")
    Path("found").touch()
    second.clear()
    assert (tmp_path / "a" / "found").exists()


def test_the_last_to_leave_removes_it(tmp_path: Path) -> None:
    first, second = Desk(str(tmp_path)), Desk(str(tmp_path))
    first.move_to("a")
    second.move_to("a")
    first.clear()
    assert os.listdir(tmp_path) == ["a"]
    second.clear()
    assert os.listdir(tmp_path) == []


def test_processes_that_come_and_go_in_one_directory_find_it(tmp_path: Path) -> None:
    def come_and_go() -> None:
        desk = Desk(str(tmp_path))
        for turn in range(300):
            desk.move_to("a", with_others=True)
            Path(str(os.getpid())).touch()
            Path(str(os.getpid())).unlink()
            if turn % 3 == 0:
                desk.clear()
            elif turn % 3 == 1:
                desk.move_to(f"mine-{os.getpid()}")
        desk.clear()

    processes = [_other_process(come_and_go) for _ in range(4)]
    assert [_ended_well(pid) for pid in processes] == [True] * 4
    assert os.listdir(tmp_path) == []
