"""How wrong predictions are, row by row: by name, or by a function of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.registering.lazy import load

Metric = Callable[[Any, Any], Any]
"""Takes predictions and labels as arrays, and returns how wrong each is: an array, lower is better."""


def _error(predictions: Any, labels: Any) -> Any:
    if predictions.dtype.kind in "biuf" and labels.dtype.kind in "biuf":
        return (predictions.astype(np.float64) != labels.astype(np.float64)).astype(np.float64)
    same = [str(one) == str(other) for one, other in zip(predictions, labels, strict=True)]
    return 1.0 - np.array(same, np.float64)


def _absolute(predictions: Any, labels: Any) -> Any:
    return np.abs(predictions.astype(np.float64) - labels.astype(np.float64))


def _squared(predictions: Any, labels: Any) -> Any:
    return (predictions.astype(np.float64) - labels.astype(np.float64)) ** 2


def _log_loss(predictions: Any, labels: Any) -> Any:
    chance = np.clip(predictions.astype(np.float64), 1e-7, 1 - 1e-7)
    truth = labels.astype(np.float64)
    return -(truth * np.log(chance) + (1 - truth) * np.log(1 - chance))


METRICS: Final[dict[str, Metric]] = {
    "error": _error,
    "mae": _absolute,
    "mse": _squared,
    "log_loss": _log_loss,
}
"""Those with a name: wrong or not, distance, squared distance, log loss of a probability."""


def choose_metrics(given: Sequence[str | Metric]) -> dict[str, Metric]:
    """Return metrics by name; functions have the name that Python gives them.

    Raises:
        InvalidInputError: If one is neither a known name nor a function.
    """
    chosen: dict[str, Metric] = {}
    mistakes = []
    for one in given:
        if callable(one):
            chosen[getattr(one, "__name__", type(one).__name__)] = one
        elif one in METRICS:
            chosen[one] = METRICS[one]
        elif ":" in str(one):
            chosen[one] = _imported(one)
        else:
            hint = nearest(str(one), list(METRICS))
            mistakes.append(f"{one!r} is none; there are {', '.join(METRICS)}, or give a function.{hint}")
    if not chosen and not mistakes:
        mistakes.append("at least one is needed")
    if mistakes:
        raise InvalidInputError("metrics cannot be used.", mistakes)
    return chosen


def name_of(metric: str | Metric) -> str:
    """Return what a metric is kept as: its name, or `module:function`, so that another process finds it.

    Raises:
        InvalidInputError: If another process could not import it.
    """
    if isinstance(metric, str):
        return metric
    module, name = getattr(metric, "__module__", ""), getattr(metric, "__qualname__", "")
    if not module or not name or "<" in name or module == "__main__":
        raise InvalidInputError(
            f"The metric {name or metric!r} is defined in {module or 'no module'}, where the process that watches "
            "cannot find it; put the function into a module of its own and import it."
        )
    return f"{module}:{name}"


def _imported(name: str) -> Metric:
    try:
        metric: Metric = load(name)
    except (ImportError, AttributeError) as error:
        raise InvalidInputError(f"The metric {name!r} cannot be imported: {error}") from error
    return metric


def measure(metrics: Mapping[str, Metric], predictions: Any, labels: Any) -> dict[str, Any]:
    """Return for each metric how wrong each row is.

    Raises:
        InvalidInputError: If a metric cannot be computed, or returns something else than a number for each row.
    """
    measured = {}
    for name, metric in metrics.items():
        try:
            values = np.asarray(metric(predictions, labels), np.float64)
        except Exception as error:
            raise InvalidInputError(f"The metric {name!r} cannot be computed of these labels: {error!r}") from error
        if values.shape != (len(labels),):
            raise InvalidInputError(
                f"The metric {name!r} returned {values.shape} for {len(labels)} rows; return a number for each row."
            )
        measured[name] = values
    return measured
