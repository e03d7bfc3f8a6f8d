"""A task that is killed leaves nothing running, however it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import HERE

TASK = """
import signal, sys
from types import SimpleNamespace
from cargobike_provider.operators import CargobikeFunctionOperator

operator = CargobikeFunctionOperator(task_id="one", function="tasks.py:wait", op_args=[sys.argv[1]])
signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())  # as Airflow's own runner of tasks does
instance = SimpleNamespace(dag_id="d", run_id="r", task_id="one", map_index=-1, try_number=1)
operator.execute({"ti": instance, "dag": SimpleNamespace(fileloc=sys.argv[2])})
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_task_leaves_nothing_running(project: Path, tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", TASK, str(tmp_path), str(HERE / "dag.py")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as task:
        await_truth((tmp_path / "started").exists)
        program, child = (int((tmp_path / name).read_text()) for name in ("started", "child"))
        task.send_signal(number)
        printed = task.communicate(timeout=60)[1]
    await_truth(lambda: not is_running(program) and not is_running(child))
    assert (tmp_path / "cleaned").exists()  # what the function does at its end was done
    if number is signal.SIGTERM:
        assert "The task was killed; what it ran was ended" in printed


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def await_truth(is_so: Callable[[], bool], timeout_s: float = 60.0) -> None:
    give_up_at = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < give_up_at, "it did not come true"
        time.sleep(0.02)
    os.sched_yield()
