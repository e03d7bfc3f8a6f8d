"""Estimators and pipelines of scikit-learn, as skops files where those suffice: reading them runs no code."""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import InvalidInputError, PredictionError
from cargobike.core.registering.modelling import Predictor
from cargobike.core.signatures import Datatype
from cargobike.models.flavours.answers import answers_of
from cargobike.models.flavours.flavour import Flavour, Given, Saved
from cargobike.models.flavours.pickling import damaged, missing, read_pickle, write_pickle
from cargobike.models.flavours.rows import stack

_log = logging.getLogger(__name__)
_SKOPS: Final = "model.skops"
_PICKLE: Final = "model.pkl"
_METHODS: Final = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score_samples")


class SklearnFlavour(Flavour):
    """Keeps an estimator as skops file if that can hold it, else as a pickle."""

    def save(self, given: Given, folder: Path) -> Saved:
        """Write the estimator; raises `InvalidInputError` if it has no such method, or is not fitted."""
        model = given.model
        method = given.method or next((name for name in ("predict", "transform") if hasattr(model, name)), "predict")
        if method not in _METHODS or not hasattr(model, method):
            able = [name for name in _METHODS if hasattr(model, name)]
            raise InvalidInputError(
                f"{type(model).__name__} cannot predict with {method!r}; give the estimator, or one of its methods: "
                f"{', '.join(able) or 'it has none that predicts'}."
            )
        names = [str(name) for name in getattr(model, "feature_names_in_", ())]
        details = {"method": method, "kept_as": "skops", "names": names}
        if _write_skops(model, folder / _SKOPS):
            return Saved(flavour="sklearn", details=details, libraries=("sklearn", "skops.io"))
        libraries = write_pickle(model, folder / _PICKLE, type(model).__name__)
        return Saved(
            flavour="sklearn",
            details={**details, "kept_as": "pickle"},
            libraries=tuple(sorted({"sklearn", *libraries})),
            runs_code=True,
        )

    def load(self, saved: Saved, folder: Path) -> Predictor:
        """Read the estimator."""
        is_skops = saved.details.get("kept_as") == "skops"
        model = _read_skops(folder / _SKOPS) if is_skops else read_pickle(folder / _PICKLE, saved)
        return _Estimator(model, saved.details.get("method", "predict"))


class _Estimator:
    floats: Datatype = "FP64"

    def __init__(self, model: Any, method: str) -> None:
        if method not in _METHODS:
            raise InvalidInputError(f"{method!r} is no method that predicts; known are {', '.join(_METHODS)}.")
        self._predict = getattr(model, method)
        self._names = [str(name) for name in getattr(model, "feature_names_in_", ())]

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Return one plain answer for each row."""
        return answers_of(self._predict(self._table(rows)), len(rows))

    def _table(self, rows: list[Any]) -> Any:
        stacked = stack(rows)
        if isinstance(stacked, dict):
            wrong = [name for name in self._names if name not in stacked]
            if wrong:
                raise PredictionError(f"The model was fitted with fields that the rows lack: {', '.join(wrong)}.")
            return _frame({name: stacked[name] for name in self._names or stacked})
        if self._names and stacked.ndim <= 2:
            columns = stacked.reshape(len(rows), -1).T
            if len(columns) != len(self._names):
                raise PredictionError(
                    f"Rows have {len(columns)} values, and the model takes {len(self._names)}: "
                    f"{', '.join(self._names)}."
                )
            return _frame(dict(zip(self._names, columns, strict=True)))
        return stacked.reshape(-1, 1) if stacked.ndim == 1 and stacked.dtype.kind in "biuf" else stacked


def _frame(columns: dict[str, Any]) -> Any:
    import pandas as pd  # noqa: PLC0415 - only for estimators that were fitted with names, which came from pandas

    return pd.DataFrame(columns, copy=False)


def _write_skops(model: Any, path: Path) -> bool:
    """Write a skops file that can be read without trusting any type; tell whether that is possible."""
    try:
        import skops.io as skops  # noqa: PLC0415 - an extra; without it estimators are pickled
    except ImportError:
        return False
    try:
        skops.dump(model, path)
        if not skops.get_untrusted_types(file=path):
            skops.load(path)
            return True
    except Exception as error:  # noqa: BLE001 - whatever it cannot hold is pickled
        _log.debug("skops cannot keep this %s: %s", type(model).__name__, error)
    path.unlink(missing_ok=True)
    return False


def _read_skops(path: Path) -> Any:
    import skops.io as skops  # noqa: PLC0415 - only for estimators that were kept so

    try:
        with zipfile.ZipFile(path) as archive:
            if (name := archive.testzip()) is not None:
                raise zipfile.BadZipFile(f"{name} in it is damaged")
        return skops.load(path, trusted=[])
    except FileNotFoundError:
        raise missing(path) from None
    except Exception as error:
        raise damaged(path, error) from error
