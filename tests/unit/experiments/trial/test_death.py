"""What it means for an attempt that its process has died."""

from __future__ import annotations

import signal

import pytest

from cargobike.experiments.trial.death import end_of_dead, with_last_output
from cargobike.workers.wire.messages import Died


def died(code: int = -signal.SIGSEGV, *, halted: bool = False, killed: bool = False) -> Died:
    return Died(7, 1, code, halted, killed, peak_memory_bytes=5 << 20)


def test_a_process_that_dies_by_itself_is_a_failure_of_the_trial() -> None:
    end = end_of_dead(died(), has_peers=False)
    assert (end.outcome, end.alike, end.peak_memory_bytes) == ("failed", "was ended by SIGSEGV", 5 << 20)
    assert end.error == "the process of the trial was ended by SIGSEGV before the train function returned"


def test_a_kill_by_the_system_may_mean_that_memory_has_run_out() -> None:
    error = end_of_dead(died(-signal.SIGKILL), has_peers=False).error
    assert error is not None
    assert "may have run out of memory (peak 5 MiB)" in error


def test_an_exit_is_described_by_its_code() -> None:
    assert end_of_dead(died(3), has_peers=False).alike == "exited with code 3"


def test_a_rank_that_wanted_to_end_is_not_tried_again() -> None:
    end = end_of_dead(died(0), has_peers=True)
    assert end.outcome == "failed"
    assert "sys.exit(0)" in (end.error or "")
    assert end_of_dead(died(1), has_peers=True).outcome == "lost"
    assert end_of_dead(died(0, killed=True), has_peers=True).outcome == "stopped"


@pytest.mark.parametrize("killed", [False, True])
def test_one_that_was_asked_to_stop_has_stopped(killed: bool) -> None:
    end = end_of_dead(died(halted=True, killed=killed), has_peers=False)
    assert (end.outcome, end.error) == ("stopped", None)


def test_a_rank_is_lost_unless_it_was_killed_with_the_others() -> None:
    assert end_of_dead(died(), has_peers=True).outcome == "lost"
    assert end_of_dead(died(halted=True), has_peers=True).outcome == "lost", "it may have been the cause itself"
    assert end_of_dead(died(halted=True, killed=True), has_peers=True).outcome == "stopped"


def test_what_was_printed_last_follows_the_error() -> None:
    assert with_last_output("it broke", "step 3\n") == "it broke\nLast output:\nstep 3\n"
    assert with_last_output(None, "step 3\n") == "Last output:\nstep 3\n"
    assert with_last_output(None, "") is None
