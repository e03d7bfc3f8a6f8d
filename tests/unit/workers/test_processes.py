"""Waiting for processes that end by themselves."""

from __future__ import annotations

import subprocess

from cargobike.workers.processes import await_ends


def test_processes_that_end_by_themselves_are_waited_for() -> None:
    first = subprocess.Popen(["sh", "-c", "read line; exit 3"], stdin=subprocess.PIPE)
    second = subprocess.Popen(["sh", "-c", "exit 4"])
    assert second.wait() == 4
    assert first.stdin is not None
    first.stdin.close()
    await_ends([first.pid, second.pid], patience_s=30.0)
    assert first.poll() == 3


def test_a_process_that_does_not_end_is_given_up_and_left_alone() -> None:
    with subprocess.Popen(["sleep", "1000"]) as stubborn, subprocess.Popen(["true"]) as other:
        await_ends([stubborn.pid, other.pid], patience_s=0.5)
        assert stubborn.poll() is None
        stubborn.kill()


def test_there_may_be_none_to_wait_for() -> None:
    await_ends([], patience_s=30.0)
