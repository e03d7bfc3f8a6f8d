"""Models that only MLflow can run: its folder is kept whole, and it is asked to predict."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import mlflow.pyfunc
import pandas as pd

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.modelling import Predictor
from cargobike.models.flavours.answers import answers_of
from cargobike.models.flavours.files import reading
from cargobike.models.flavours.flavour import Flavour, Given, Saved
from cargobike.models.flavours.pickling import announced
from cargobike.models.flavours.rows import stack


class MLflowFlavour(Flavour):
    """Keeps a folder of MLflow; loading it runs what is in it."""

    def save(self, given: Given, folder: Path) -> Saved:
        """Copy the folder."""
        if not isinstance(given.model, str | os.PathLike) or not Path(given.model, "MLmodel").is_file():
            raise InvalidInputError("Give the path of a folder of MLflow, which holds a file MLmodel.")
        shutil.copytree(given.model, folder, dirs_exist_ok=True)
        return Saved(flavour="mlflow", libraries=("mlflow.pyfunc",), runs_code=True)

    def load(self, saved: Saved, folder: Path) -> Predictor:
        """Let MLflow load it."""
        announced(folder / "MLmodel", saved)
        with reading(folder / "MLmodel"):
            return _FolderPredictor(mlflow.pyfunc.load_model(str(folder)))


class _FolderPredictor:
    def __init__(self, model: Any) -> None:
        self._model = model
        schema = model.metadata.get_input_schema()
        self._names = [] if schema is None or schema.is_tensor_spec() else schema.input_names()
        self._types = [] if schema is None or not schema.is_tensor_spec() else list(schema.input_types())

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Return one plain answer for each row."""
        return answers_of(self._model.predict(self._input(rows)), len(rows))

    def _input(self, rows: list[Any]) -> Any:
        stacked = stack(rows)
        if isinstance(stacked, dict):
            if self._types:
                by_name = dict(zip(stacked, self._types, strict=False))
                return {name: column.astype(by_name[name]) for name, column in stacked.items()}
            return pd.DataFrame(stacked)
        if self._names:
            return pd.DataFrame(stacked.reshape(len(rows), -1), columns=self._names)
        return stacked.astype(self._types[0]) if len(self._types) == 1 else stacked
