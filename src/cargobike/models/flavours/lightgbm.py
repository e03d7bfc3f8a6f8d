"""Models of LightGBM, as the text that it writes itself; reading it runs no code."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import lightgbm
import numpy as np

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.modelling import Predictor
from cargobike.models.flavours.files import reading
from cargobike.models.flavours.flavour import Flavour, Given, Saved
from cargobike.models.flavours.sklearn import method_of
from cargobike.models.flavours.tables import TablePredictor

_FILE: Final = "model.txt"
_METHODS: Final = ("predict", "predict_proba")


class LightGBMFlavour(Flavour):
    """Keeps boosters, and the booster of an estimator with the classes that it knows."""

    def save(self, given: Given, folder: Path) -> Saved:
        """Write the model."""
        model = given.model
        details: dict[str, Any] = {"method": "predict"}
        if not isinstance(model, lightgbm.Booster):
            details["method"] = method_of(given)
            if details["method"] not in _METHODS:
                raise InvalidInputError(f"LightGBM predicts with {' or '.join(_METHODS)}, not {details['method']}.")
            details["classes"] = np.asarray(getattr(model, "classes_", ())).tolist()
            details["names"] = [str(name) for name in getattr(model, "feature_names_in_", ())]
            model = model.booster_
        model.save_model(folder / _FILE)
        details["sha256"] = _digest(folder / _FILE)
        return Saved(flavour="lightgbm", details=details, libraries=("lightgbm",))

    def load(self, saved: Saved, folder: Path) -> Predictor:
        """Read the model."""
        path = folder / _FILE
        with reading(path):
            # LightGBM ends the whole process when it reads a text that is cut.
            if _digest(path) != saved.details.get("sha256"):
                raise ValueError("its content is not what was saved")
            model = lightgbm.Booster(model_file=path)
        classes = saved.details.get("classes") or []
        by_method = {"predict": lambda table: _labels(model.predict(table), classes)} if classes else {}
        probabilities = {"predict_proba": lambda table: _probabilities(model.predict(table))}
        predict = {**probabilities, **by_method}.get(saved.details.get("method", "predict"), model.predict)
        return TablePredictor(predict, _names(saved))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _names(saved: Saved) -> list[str]:
    names = saved.details.get("names") or []
    return names if not all(name.startswith("Column_") for name in names) else []


def _probabilities(scores: Any) -> Any:
    """Return one column for each class; of two classes a booster tells the second only."""
    return np.column_stack([1 - scores, scores]) if scores.ndim == 1 else scores


def _labels(scores: Any, classes: list[Any]) -> Any:
    return np.asarray(classes)[np.argmax(_probabilities(scores), axis=1)]
