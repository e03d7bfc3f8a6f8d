"""Scores of any numeric library; apart from other stories, because workers import what a file mentions."""

from __future__ import annotations

from typing import Any

from cargobike import experiment


def test_every_kind_of_number_is_a_score() -> None:
    def train(kind: str) -> Any:
        import numpy
        import torch

        return {
            "int": 2,
            "float": 2.0,
            "numpy": numpy.float32(2),
            "numpy int": numpy.int64(2),
            "numpy array of one": numpy.array([2.0]),
            "torch": torch.tensor(2.0, requires_grad=True),
            "torch of one": torch.ones(1) * 2,
            "dict of one": {"accuracy": 2.0},
            "dict of one tensor": {"accuracy": torch.tensor(2)},
        }[kind]

    kinds = [
        "int",
        "float",
        "numpy",
        "numpy int",
        "numpy array of one",
        "torch",
        "torch of one",
        "dict of one",
        "dict of one tensor",
    ]
    result = experiment.launch(train, {"kind": kinds}, quiet=True)
    assert {trial.params["kind"]: trial.value for trial in result.trials} == dict.fromkeys(kinds, 2.0)
