"""What MLflow calls to run a version that was exported to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cargobike.core.registering.modelling import Predictor
from cargobike.core.signatures import Signature
from cargobike.models.flavours.registry import load
from cargobike.models.flavours.rows import rows_of
from cargobike.models.mlflow.exporting import read_description


def _load_pyfunc(path: str) -> PythonFunction:
    """Return what predicts; MLflow's contract for the module that an `MLmodel` file names."""
    description = read_description(Path(path).parent)
    return PythonFunction(load(description.saved, Path(path)), description.signature)


class PythonFunction:
    """A predictor with the interface that MLflow expects."""

    def __init__(self, predictor: Predictor, signature: Signature | None) -> None:
        self._predictor = predictor
        self._signature = signature

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Return predictions for a DataFrame, an array, a list of rows, or a dict of columns.

        Returns:
            An array if answers are numbers, texts or lists of them of one length; else a list.
        """
        answers = list(self._predictor(self._rows(model_input)))
        if answers and isinstance(answers[0], Mapping):
            return answers
        try:
            return np.asarray(answers)
        except ValueError:
            return answers

    def _rows(self, given: Any) -> list[Any]:
        wants_vector = self._signature is not None and len(self._signature.inputs) == 1
        if wants_vector and hasattr(given, "columns") and len(given.columns) > 1:
            given = given.to_numpy()  # columns of numbers, where one vector is wanted
        return rows_of(given)
