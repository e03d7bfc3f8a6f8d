"""What user code starts ends with its trial, however the trial ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from cargobike import experiment, trial
from support.watching import ancestors, marked, wait_for


def start_many() -> None:
    """Start children in every way that detaches them from their parent."""
    subprocess.Popen(["sleep", "1001"])
    subprocess.Popen(["sleep", "1002"], start_new_session=True)
    subprocess.Popen(["sh", "-c", "trap '' TERM HUP INT; (setsid sleep 1003 &) ; sleep 1004"])
    daemon = os.fork()
    if daemon == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1005)
        os._exit(0)
    os.waitpid(daemon, 0)


def sleepers(project: Path) -> list[str]:
    """Return the sleeping children of trials."""
    commands = []
    for process in marked(project):
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            commands.append(" ".join(process.cmdline()))
    return [command for command in commands if "sleep 100" in command and not command.startswith("sh")]


def _end(how: str, x: int) -> float:
    if how == "fail":
        raise ValueError("after starting children")
    if how == "exit":
        os._exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "overtime":
        time.sleep(1000)
    return float(x)


@pytest.mark.parametrize("how", ["return", "fail", "exit", "kill", "overtime"])
def test_children_end_before_the_next_trial_begins(how: str, tmp_path: Path) -> None:
    def train(x: int) -> float:
        if x % 2:
            return len(sleepers(tmp_path))
        start_many()
        return _end(how, x)

    result = experiment.launch(train, {"x": [0, 1, 2, 3]}, workers=1, trial_timeout_s=3.0, quiet=True)
    assert [ended.value for ended in result.trials][1::2] == [0.0, 0.0]
    assert {ended.state.value for ended in result.trials[::2]} == {"completed" if how == "return" else "failed"}
    assert marked(tmp_path) == []


@pytest.mark.parametrize("how", ["return", "fail", "exit", "overtime"])
def test_children_of_a_reused_process_end_with_the_experiment(how: str, tmp_path: Path) -> None:
    def train(x: int) -> float:
        if x == 0:
            start_many()
            return _end(how, x)
        return float(x)

    experiment.launch(train, {"x": [0, 1]}, workers=1, isolation="reuse", trial_timeout_s=3.0, quiet=True)
    assert marked(tmp_path) == []


def _with_pool(x: int) -> float:
    import multiprocessing

    context = multiprocessing.get_context("fork")
    pool = context.Pool(2)
    return float(sum(pool.map(abs, [x, -x])))


def _with_daemons(x: int) -> float:
    import multiprocessing

    context = multiprocessing.get_context("fork")
    for _ in range(2):
        context.Process(target=time.sleep, args=(1000,), daemon=True).start()
    return float(x)


def _with_executor(x: int) -> float:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    executor = ProcessPoolExecutor(2, mp_context=get_context("fork"))
    return float(sum(executor.map(abs, [x, -x])))


@pytest.mark.parametrize("isolation", ["fresh", "reuse"])
@pytest.mark.parametrize("train", [_with_pool, _with_daemons, _with_executor])
def test_worker_processes_of_libraries_end_too(train: Callable[[int], float], isolation: Any, tmp_path: Path) -> None:
    result = experiment.launch(train, {"x": [1, 2]}, workers=1, isolation=isolation, quiet=True)
    assert result.counts == {"completed": 2}
    assert marked(tmp_path) == []


def test_a_thread_that_never_ends_does_not_keep_a_trial(tmp_path: Path) -> None:
    def train(x: int) -> float:
        import threading

        threading.Thread(target=time.sleep, args=(1000,)).start()
        return x

    result = experiment.launch(train, {"x": [1, 2, 3]}, workers=1, quiet=True)
    assert result.counts == {"completed": 3}
    assert marked(tmp_path) == []


@pytest.mark.parametrize("killed", [["agent"], ["host", "agent"], ["host", "agent", "template", "runner"]])
def test_children_of_a_worker_that_is_killed_end_soon_and_those_of_others_live(
    killed: list[str], tmp_path: Path
) -> None:
    def train(x: int) -> float:
        if x == 1:
            child = subprocess.Popen(["sleep", "2000"])
            (tmp_path / "other").touch()
            wait_for((tmp_path / "again").exists, "the second attempt")
            assert child.poll() is None
        elif trial.attempt == 1:
            wait_for((tmp_path / "other").exists, "the other trial")
            start_many()
            processes = dict(zip(["runner", "template", "agent", "host"], [os.getpid(), *ancestors(3)], strict=True))
            for name in killed:
                os.kill(processes[name], signal.SIGKILL)
            time.sleep(1000)
        else:
            wait_for(lambda: not sleepers(tmp_path), "the children of the first attempt to end")
            (tmp_path / "again").touch()
        return x

    result = experiment.launch(train, {"x": [0, 1]}, workers=2, quiet=True)
    assert [ended.attempts for ended in result.trials] == [2, 1]
    assert marked(tmp_path) == []


@pytest.mark.parametrize("isolation", ["fresh", "reuse"])
@pytest.mark.parametrize("way", ["sys.exit", "raise", "return", "stopped"])
def test_a_forked_child_that_leaves_the_function_does_not_speak_for_its_trial(
    way: str, isolation: Any, tmp_path: Path
) -> None:
    def train(x: int) -> float:
        child = os.fork()
        if child == 0:
            if way == "sys.exit":
                sys.exit(x)
            if way == "raise":
                raise ValueError("in the child")
            if way == "stopped":
                raise trial.TrialStopped
            return -1.0
        _, status = os.waitpid(child, 0)
        return float(os.waitstatus_to_exitcode(status))

    result = experiment.launch(train, {"x": [3, 4, 5]}, workers=1, isolation=isolation, quiet=True)
    expected = {"sys.exit": [3.0, 4.0, 5.0], "raise": [1.0] * 3, "return": [0.0] * 3, "stopped": [0.0] * 3}
    assert [ended.value for ended in result.trials] == expected[way]
    assert ("ValueError: in the child" in result.logs(0, "stderr")) == (way == "raise")
    assert marked(tmp_path) == []
