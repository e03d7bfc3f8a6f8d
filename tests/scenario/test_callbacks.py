"""A callback inside a real search: trials are stopped, paused and go on without a line in the training loop."""

from __future__ import annotations

import pytest

from cargobike import Searchspace, experiment
from cargobike.optimizers import ASHA
from cargobike.results import TrialState


def train(alpha: float) -> dict[str, float]:
    import numpy as np
    from sklearn.linear_model import SGDClassifier

    from cargobike.callbacks import SklearnReport

    inputs = np.random.default_rng(0).normal(size=(64, 4))
    targets = (inputs[:, 0] > 0).astype(int)
    report = SklearnReport(inputs, targets, name="accuracy", checkpoint=True)
    model = report.fit(SGDClassifier(alpha=alpha, random_state=0), inputs, targets, steps=9)
    return {"accuracy": model.score(inputs, targets)}


@pytest.mark.parametrize("variant", ["promotion", "stopping"])
def test_a_search_stops_and_pauses_what_scikit_learn_trains(variant: str) -> None:
    space = Searchspace(alpha=("DOUBLE", [1e-6, 10.0], "log"))
    optimizer = ASHA(variant=variant)  # type: ignore[arg-type]
    result = experiment.launch(train, space, optimizer=optimizer, num_trials=6, workers=1, seed=3, quiet=True)
    completed = result.of_state(TrialState.COMPLETED)
    assert completed
    assert result.counts["stopped"] == 6 - len(completed) > 0
    for one in result.trials:
        steps = list(one.curves["accuracy"].steps)
        assert steps == list(range(len(steps)))  # each step once: a paused trial went on where it was
    assert len(completed[0].curves["accuracy"].steps) == 9
