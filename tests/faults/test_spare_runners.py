"""A runner that was forked ahead of need: used once, never out of date, and nobody's loss when it dies."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import psutil

from cargobike import experiment
from cargobike.workers.processes import children_of
from support.watching import ancestors, marked, wait_for


def spares() -> list[int]:
    """Return, from a train function, who else waits below the same template."""
    return [pid for pid in children_of(os.getppid()) if pid != os.getpid()]


def is_dead(pid: int) -> bool:
    return not psutil.pid_exists(pid)


def test_from_the_second_trial_on_the_next_process_is_there_already() -> None:
    def train(x: int) -> dict[str, float]:
        if x:
            wait_for(spares, "a spare")
        return {"metric": x, "me": os.getpid(), "spare": max(spares(), default=0)}

    result = experiment.launch(train, {"x": [0, 1, 2, 3]}, workers=1, metric="metric", quiet=True)
    seen = [(int(ended.metrics["me"]), int(ended.metrics["spare"])) for ended in result.trials]
    assert len({me for me, _ in seen}) == 4
    assert seen[0][1] == 0
    assert [spare for _, spare in seen[1:-1]] == [me for me, _ in seen[2:]]


def test_a_kept_process_needs_no_spare() -> None:
    def train(x: int) -> float:
        return len(spares())

    result = experiment.launch(train, {"x": [0, 1, 2, 3]}, workers=1, isolation="reuse", quiet=True)
    assert {ended.value for ended in result.trials} == {0.0}


def test_a_spare_that_lacks_what_the_last_trial_imported_is_replaced() -> None:
    def train(x: int) -> float:
        is_there = "wave" in sys.modules
        if x == 2:
            wait_for(spares, "a spare")
            __import__("wave")
        return float(is_there)

    result = experiment.launch(train, {"x": [0, 1, 2, 3]}, workers=1, quiet=True)
    assert [ended.value for ended in result.trials] == [0.0, 0.0, 0.0, 1.0]


def test_a_spare_that_dies_is_nobodys_loss() -> None:
    def train(x: int) -> float:
        if x in (1, 2):
            wait_for(spares, "a spare")
            [spare] = spares()
            os.kill(spare, signal.SIGKILL)
            wait_for(lambda: is_dead(spare), "its burial")
        return x

    result = experiment.launch(train, {"x": [0, 1, 2, 3, 4]}, workers=1, quiet=True)
    assert [ended.value for ended in result.trials] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert {ended.attempts for ended in result.trials} == {1}


def test_a_spare_that_dies_with_an_assignment_it_has_not_read_costs_no_attempt(tmp_path: Path) -> None:
    note = tmp_path / "spare"

    def train(x: int) -> float:
        if x == 1:
            wait_for(spares, "a spare")
            os.kill(spares()[0], signal.SIGSTOP)
            (tmp_path / "new").write_text(f"{os.getpid()} {spares()[0]} {os.getppid()}")
            (tmp_path / "new").rename(note)
        return x

    def end_it_once_it_is_chosen() -> None:
        wait_for(note.exists, "a spare that stands still")
        first, spare, template = map(int, note.read_text().split())
        wait_for(lambda: set(children_of(template)) - {first, spare}, "the next spare")
        os.kill(spare, signal.SIGKILL)

    killer = threading.Thread(target=end_it_once_it_is_chosen)
    killer.start()
    result = experiment.launch(train, {"x": [0, 1, 2, 3]}, workers=1, quiet=True)
    killer.join()
    assert [ended.value for ended in result.trials] == [0.0, 1.0, 2.0, 3.0]
    assert {ended.attempts for ended in result.trials} == {1}


def test_a_spare_ends_with_its_template(tmp_path: Path) -> None:
    def train(x: int) -> float:
        if x == 1 and not (tmp_path / "killed").exists():
            wait_for(spares, "a spare")
            (tmp_path / "killed").write_text(str(spares()[0]))
            os.kill(ancestors(1)[0], signal.SIGKILL)
            signal.pause()
        if x == 1:
            wait_for(lambda: is_dead(int((tmp_path / "killed").read_text())), "the spare to end")
        return x

    result = experiment.launch(train, {"x": [0, 1, 2]}, workers=1, quiet=True)
    assert [ended.value for ended in result.trials] == [0.0, 1.0, 2.0]
    assert marked(tmp_path) == []
