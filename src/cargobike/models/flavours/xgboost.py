"""Models of XGBoost, in its own format; reading it runs no code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import xgboost

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.modelling import Predictor
from cargobike.models.flavours.files import reading
from cargobike.models.flavours.flavour import Flavour, Given, Saved
from cargobike.models.flavours.sklearn import known_method, method_of, names_of
from cargobike.models.flavours.tables import TablePredictor

_FILE: Final = "model.ubj"
_CLASSES: Final = ("Booster", "XGBClassifier", "XGBRegressor", "XGBRanker", "XGBRFClassifier", "XGBRFRegressor")


class XGBoostFlavour(Flavour):
    """Keeps boosters and estimators of XGBoost."""

    def save(self, given: Given, folder: Path) -> Saved:
        """Write the model."""
        name = _class_of(type(given.model).__name__)
        method = method_of(given) if name != "Booster" else "predict"
        given.model.save_model(folder / _FILE)
        return Saved(flavour="xgboost", details={"class": name, "method": method}, libraries=("xgboost",))

    def load(self, saved: Saved, folder: Path) -> Predictor:
        """Read the model."""
        path = folder / _FILE
        model = getattr(xgboost, _class_of(saved.details.get("class", "Booster")))()
        with reading(path):
            model.load_model(path)
        if isinstance(model, xgboost.Booster):
            return TablePredictor(lambda table: _predict(model, table), model.feature_names or ())
        return TablePredictor(getattr(model, known_method(saved)), names_of(model))


def _predict(model: Any, table: Any) -> Any:
    return model.predict(xgboost.DMatrix(table))


def _class_of(name: str) -> str:
    if name not in _CLASSES:
        raise InvalidInputError(f"A {name} of XGBoost cannot be saved; known are {', '.join(_CLASSES)}.")
    return name
