"""Estimators and pipelines of scikit-learn, as skops files where those suffice: reading them runs no code."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import InvalidInputError, UntrustedError
from cargobike.core.registering.modelling import Predictor
from cargobike.models.flavours.files import check_archive, reading
from cargobike.models.flavours.flavour import Flavour, Given, Saved
from cargobike.models.flavours.pickling import read_pickle, write_pickle
from cargobike.models.flavours.tables import TablePredictor

_log = logging.getLogger(__name__)
_SKOPS: Final = "model.skops"
_PICKLE: Final = "model.pkl"
METHODS: Final = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score_samples")

_KNOWN: Final = frozenset(
    {
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._dist_metrics.EuclideanDistance32",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
    }
)
"""Classes of scikit-learn that hold numbers only, which skops leaves to its users to allow."""


class SklearnFlavour(Flavour):
    """Keeps an estimator as skops file if that can hold it, else as a pickle."""

    def save(self, given: Given, folder: Path) -> Saved:
        """Write the estimator."""
        model = given.model
        details = {"method": method_of(given), "kept_as": "skops"}
        types = _write_skops(model, folder / _SKOPS)
        if types is not None:
            return Saved(flavour="sklearn", details={**details, "types": types}, libraries=("sklearn", "skops.io"))
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
        model = _read_skops(folder / _SKOPS, saved) if is_skops else read_pickle(folder / _PICKLE, saved)
        return TablePredictor(getattr(model, known_method(saved)), names_of(model))


def method_of(given: Given) -> str:
    """Return which method of an estimator predicts.

    Raises:
        InvalidInputError: If it has no such method; says which it has.
    """
    model = given.model
    method = given.method or next((name for name in ("predict", "transform") if hasattr(model, name)), "predict")
    if method not in METHODS or not hasattr(model, method):
        able = [name for name in METHODS if hasattr(model, name)]
        raise InvalidInputError(
            f"{type(model).__name__} cannot predict with {method!r}; give the estimator, or one of its methods: "
            f"{', '.join(able) or 'it has none that predicts'}."
        )
    return method


def known_method(saved: Saved) -> str:
    """Return the method that a saved model names, if it is one that predicts."""
    method: str = saved.details.get("method", "predict")
    if method not in METHODS:
        raise InvalidInputError(f"{method!r} is no method that predicts; known are {', '.join(METHODS)}.")
    return method


def names_of(model: Any) -> list[str]:
    """Return the names of columns that an estimator was fitted with; nothing if it was fitted with an array."""
    return [str(name) for name in getattr(model, "feature_names_in_", ())]


def _write_skops(model: Any, path: Path) -> list[str] | None:
    """Write a skops file that runs no code, and return the types that skops leaves to its users; `None` if it would."""
    try:
        import skops.io as skops  # noqa: PLC0415 - an extra; without it estimators are pickled
    except ImportError:
        return None
    try:
        skops.dump(model, path)
        types = skops.get_untrusted_types(file=path)
        if _KNOWN.issuperset(types):
            skops.load(path, trusted=types)
            return list(types)
    except Exception as error:  # noqa: BLE001 - whatever it cannot hold is pickled
        _log.debug("skops cannot keep this %s: %s", type(model).__name__, error)
    path.unlink(missing_ok=True)
    return None


def _read_skops(path: Path, saved: Saved) -> Any:
    import skops.io as skops  # noqa: PLC0415 - only for estimators that were kept so

    with reading(path):
        check_archive(path)
        types = skops.get_untrusted_types(file=path)
        if (unknown := sorted(set(types) - _KNOWN)) and not saved.runs_code:
            raise UntrustedError(
                f"{path.name} of this model holds classes that could run code, and a file that was saved here would "
                f"not: {', '.join(unknown)}. Do not load it unless you know who wrote it."
            )
        return skops.load(path, trusted=types)
