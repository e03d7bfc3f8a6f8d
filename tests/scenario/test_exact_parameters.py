"""Hyperparameters reach train functions and results as what they were, also after a resume."""

from __future__ import annotations

from typing import Any

import pytest

from cargobike import experiment

VALUES = [(64, 64), (32, (1, None)), True, 1, -0.0, None, "(64, 64)"]


@pytest.mark.parametrize("as_list", [True, False])
def test_tuples_stay_tuples_and_the_search_can_be_resumed(as_list: bool) -> None:
    def train(value: Any) -> float:
        print(repr(value))
        return 1.0

    space: Any = [{"value": value} for value in VALUES] if as_list else {"value": [v for v in VALUES if v != 1]}
    expected = [repr(one["value"]) for one in space] if as_list else list(map(repr, space["value"]))
    first = experiment.launch(train, space, num_trials=2 if as_list else None, workers=1, quiet=True)
    result = experiment.resume(first, num_trials=len(expected), quiet=True)
    assert [repr(one.params["value"]) for one in result.trials] == expected
    assert [result.logs(one).strip() for one in result.trials] == expected
    assert [repr(one.params["value"]) for one in experiment.load(result.id).trials] == expected
