"""Transformations of Hopsworks: built-in ones are ours, those of users are functions of pandas Series."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from cargobike.compat.hsfs.frames import column_name
from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.lazy import load

_udfs: Final[dict[str, Udf]] = {}
"""Functions that this process knows, by name: views of notebooks find theirs here."""


class Chosen:
    """A transformation of a feature of a view.

    Args:
        features: The features.
        what: The name of one of ours, or a function of arrays.
    """

    def __init__(self, features: Sequence[str], what: str | Callable[..., Any]) -> None:
        self.features = [column_name(name) for name in features]
        self.what = what

    @property
    def output(self) -> str:
        """What its column is called if it is made from several."""
        name = self.what if isinstance(self.what, str) else self.what.__name__
        return f"{name}_{'_'.join(self.features)}_"


class Builtin:
    """A built-in transformation: called with the name of a feature it says what is done to that.

    Args:
        name: What Hopsworks calls it.
        ours: What we call it; empty if there is none.
    """

    def __init__(self, name: str, ours: str) -> None:
        self.__name__ = self.name = name
        self.ours = ours

    def __call__(self, feature: str) -> Chosen:
        """Choose a feature."""
        if not self.ours:
            raise InvalidInputError(
                f"{self.name} is not there; a function does it: @hopsworks.udf(float), or one of label_encoder, "
                "one_hot_encoder, min_max_scaler, standard_scaler."
            )
        return Chosen([feature], self.ours)

    def __repr__(self) -> str:
        return self.name


BUILTIN: Final = {
    name: Builtin(name, ours)
    for name, ours in {
        "label_encoder": "ordinal",
        "one_hot_encoder": "one_hot",
        "min_max_scaler": "min_max",
        "standard_scaler": "standardize",
        "robust_scaler": "",
        "equal_width_binner": "",
        "equal_frequency_binner": "",
        "quantile_binner": "",
        "quantile_transformer": "",
        "rank_normalizer": "",
        "winsorize": "",
        "log_transform": "",
        "impute_mean": "",
        "impute_median": "",
        "impute_constant": "",
        "impute_mode": "",
        "impute_category": "",
    }.items()
}
"""By name."""


class Udf:
    """A function of a user; called with names of features it says what is done to them.

    As a function of arrays it is what a view of ours runs, in training and in look-ups.

    Args:
        function: Takes a Series for each feature and returns one; or values, in the mode `python`.
        mode: `default` and `pandas` give Series, `python` one value after the other.
        drop: Features that the result stands in place of.
    """

    def __init__(self, function: Callable[..., Any], mode: str, drop: Sequence[str]) -> None:
        names = list(inspect.signature(function).parameters)
        if "statistics" in names or "context" in names:
            raise InvalidInputError(
                f"{function.__name__} takes statistics of the training data, which functions of views do not get here; "
                "use a built-in transformation, or compute the feature before it is inserted."
            )
        if mode not in {"default", "pandas", "python"}:
            raise InvalidInputError(f"mode={mode!r} was given; there are 'default', 'pandas' and 'python'.")
        self.function = function
        self.mode = mode
        self.drop = list(drop)
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        _udfs[self.__name__] = self

    def __call__(self, *features: Any) -> Any:
        """Choose features by name; or, as a view does it, compute arrays from arrays."""
        if features and all(isinstance(one, np.ndarray) for one in features):
            return self._computed(*features)
        names = list(features) or list(inspect.signature(self.function).parameters)
        return Chosen(names, self)

    def _computed(self, *arrays: Any) -> Any:
        if self.mode == "python":
            return np.array([self.function(*values) for values in zip(*(one.tolist() for one in arrays), strict=True)])
        series = load("pandas:Series")
        return np.asarray(self.function(*(series(one) for one in arrays)))


def known_udf(name: str) -> Udf | None:
    """Return a function that this process knows."""
    return _udfs.get(name)


def udf(
    return_type: Any, drop: str | Sequence[str] | None = None, mode: str = "default"
) -> Callable[[Callable[..., Any]], Udf]:
    """Make a function a transformation: `@hopsworks.udf(float)`.

    Args:
        return_type: What it returns; a list of types would make several columns, which is not there.
        drop: Features that its result stands in place of.
        mode: `"pandas"` for functions of Series, `"python"` for functions of values.
    """
    if isinstance(return_type, list) and len(return_type) > 1:
        raise InvalidInputError("A function that returns several columns is not there; write one for each column.")
    return lambda function: Udf(function, mode, [drop] if isinstance(drop, str) else list(drop or ()))
