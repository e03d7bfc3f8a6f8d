"""What is raised when a run fails carries what a program wants to know."""

from __future__ import annotations

import socket

import pytest

from cargobike import experiment, trial
from cargobike.errors import ExperimentFailedError, TrialFailedError


def fail(x: int) -> float:
    print("working on", x)
    raise ArithmeticError(f"cannot do {x}")


def fail_on_rank_1() -> float:
    print("this is rank", trial.rank)
    if trial.rank == 1:
        raise ArithmeticError("rank 1 cannot")
    trial.barrier()
    return 1.0


def test_a_single_run() -> None:
    with pytest.raises(TrialFailedError, match="cannot do 7") as raised:
        experiment.launch(fail, params={"x": 7}, quiet=True)
    error = raised.value
    assert (error.trial, error.rank, error.host) == (0, 0, socket.gethostname())
    assert error.traceback.startswith("Traceback")
    assert error.traceback.endswith("ArithmeticError: cannot do 7")
    assert error.log_tail == "working on 7"
    assert error.result.id == error.experiment == experiment.load("last").id


def test_a_rank_of_a_gang() -> None:
    with pytest.raises(TrialFailedError, match="rank 1 cannot") as raised:
        experiment.allreduce(fail_on_rank_1, workers=2, quiet=True)
    error = raised.value
    assert (error.trial, error.rank, error.host) == (0, 1, socket.gethostname())
    assert error.traceback.endswith("ArithmeticError: rank 1 cannot")
    assert "this is rank 1" in error.log_tail


def test_a_search_of_which_all_trials_fail() -> None:
    with pytest.raises(ExperimentFailedError) as raised:
        experiment.launch(fail, {"x": [1, 2]}, workers=1, quiet=True)
    failures = raised.value.result.failures
    assert [failed.logs for failed in failures] == ["working on 1\n", "working on 2\n"]
