"""A driver that dies in the middle of a search, whatever searches, is taken up with the same suggestions."""

from __future__ import annotations

import pytest

from cargobike import Searchspace, experiment, trial
from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import ExperimentState
from cargobike.experiments.results.result import Result
from support.cut_copies import cut_copy

SPACE = Searchspace(
    lr=("DOUBLE", [1e-4, 1e-1], "log"), layers=("INTEGER", [1, 4]), act=("CATEGORICAL", ["relu", "gelu"])
)
OURS = ("random", "sobol", "tpe", "de", "asha", "hyperband", "bohb", "dehb", "pbt", "auto")
THROUGH_OPTUNA = ("cmaes", "nsga2", "gp")


def train(lr: float, layers: int, act: str) -> float:
    score = -((lr - 0.01) ** 2) + 0.1 * layers + (0.05 if act == "gelu" else 0.0)
    for step in range(trial.checkpoint.load(default=0), 9):
        trial.report(score=score * (1 - 0.7 ** (step + 1)), step=step)
        trial.checkpoint.save(step + 1)
    return score


def told(result: Result) -> list[object]:
    return [(one.params, one.state, one.value) for one in result.trials]


@pytest.mark.parametrize("optimizer", [*OURS, *THROUGH_OPTUNA])
def test_a_search_cut_in_the_middle_ends_like_an_unbroken_one(optimizer: str) -> None:
    if optimizer in THROUGH_OPTUNA:
        pytest.importorskip("optuna")
    whole = experiment.launch(
        train, SPACE, optimizer=optimizer, num_trials=12, workers=2, seed=3, deterministic=True, quiet=True
    )
    length = len(ExperimentFolder(whole.folder).journal.read_bytes().splitlines())
    for lines in (length // 3, 2 * length // 3):
        resumed = experiment.resume(cut_copy(whole, lines), quiet=True)
        assert resumed.state is ExperimentState.COMPLETED
        assert told(resumed) == told(whole), f"cut after line {lines}"
