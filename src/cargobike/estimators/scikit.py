"""A train function as an estimator of scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.values.times import Seconds
from cargobike.engines.engine import Engine
from cargobike.estimators.fitting import Predict, Run, Train, check_names, fit, hyperparameters

_SETTINGS = ("train", "predict", "kind", "label", "workers", "engine", "name", "seed", "timeout_s", "quiet")


def _is_classifier(estimator: Any) -> bool:
    return bool(estimator.kind == "classifier")


class Estimator(BaseEstimator):
    """Fit a train function through a tracked run, and predict with the model that it saved.

    The rows that the function gets as `data` have the columns of `X` (`x0`, `x1` and so on if it is an array) and the
    target. Parameters of the function are parameters of the estimator: they can be set, cloned and searched.

    Args:
        train: `train(data, **params)`: saves its model with `trial.checkpoint.save(model)`, and returns a score.
        predict: `predict(model, batch)`: returns one value for each row of a pandas DataFrame. A classifier returns the
            number of a class, or one probability for each class.
        kind: `"regressor"` or `"classifier"`; the target of a classifier is the number of the class in `classes_`.
        label: What the column of the target is called.
        workers: How many ranks train together; 0 trains in this process, which is quickest for small models.
        engine: Where workers live, as in `experiment.launch`.
        name: What the experiments are called; by default like the function.
        seed: For the train function.
        timeout_s: End training after this time.
        quiet: Show no progress.
        params: Parameters of the train function.

    Attributes:
        model_: What the function saved last.
        value_: What it returned.
        experiment_: The id of the experiment that trained it.
        classes_: The classes of a classifier.

    Example:
        >>> import numpy as np
        >>> from cargobike import trial
        >>> def train(data, shrink=0.0):
        ...     rows = data.to_pandas()
        ...     trial.checkpoint.save((1 - shrink) * rows["y"].mean())
        ...     return 0.0
        >>> def predict(model, batch):
        ...     return np.full(len(batch), model)
        >>> estimator = Estimator(train, predict, shrink=0.5, workers=0)
        >>> estimator.fit([[1.0], [2.0]], [10.0, 30.0]).predict([[5.0]]).tolist()
        [10.0]
    """

    def __init__(
        self,
        train: Train,
        predict: Predict,
        *,
        kind: Literal["regressor", "classifier"] = "regressor",
        label: str = "y",
        workers: int = 1,
        engine: str | Engine = "local",
        name: str = "",
        seed: int | None = None,
        timeout_s: Seconds | None = None,
        quiet: bool = True,
        **params: Any,
    ) -> None:
        check_names(train, params, frozenset(_SETTINGS))
        self.train = train
        self._predict = predict  # `predict` is the method
        self.kind = kind
        self.label = label
        self.workers = workers
        self.engine = engine
        self.name = name
        self.seed = seed
        self.timeout_s = timeout_s
        self.quiet = quiet
        self._params = params

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings and the parameters of the train function, with their defaults."""
        named, _ = hyperparameters(self.train)
        defaults = {name: value for name, value in named.items() if value is not inspect.Parameter.empty}
        settings = {name: self._predict if name == "predict" else getattr(self, name) for name in _SETTINGS}
        return {**settings, **defaults, **self._params}

    def set_params(self, **params: Any) -> Self:
        """Set some of them.

        Raises:
            InvalidInputError: If there is no such parameter.
        """
        train = params.get("train", self.train)
        named, takes_any = hyperparameters(train)
        unknown = [name for name in params if name not in _SETTINGS and name not in named and not takes_any]
        if unknown:
            allowed = [*named, *_SETTINGS]
            raise InvalidInputError(
                f"Estimator has the parameters {', '.join(allowed)}.",
                [f"Invalid parameter {name!r}.{nearest(name, allowed)}" for name in unknown],
            )
        for name, value in params.items():
            if name == "predict":
                self._predict = value
            elif name in _SETTINGS:
                setattr(self, name, value)
            else:
                self._params = {**self._params, name: value}
        return self

    def fit(self, X: Any, y: Any) -> Self:
        """Train the function with these rows.

        Raises:
            InvalidInputError: If something given cannot be used.
            TrialFailedError: If the function failed.
        """
        if self.kind not in ("regressor", "classifier"):
            raise InvalidInputError(f"kind={self.kind!r} was given; allowed are 'regressor' and 'classifier'.")
        rows, target = self._checked(X, y)
        if self.label in rows.columns:
            raise InvalidInputError(
                f"X has a column {self.label!r} already, which is what the target is called; call it otherwise: "
                "Estimator(…, label='target')."
            )
        if _is_classifier(self):
            check_classification_targets(target)
            self.classes_, target = np.unique(target, return_inverse=True)
        run = Run(self.workers, self.engine, self.name, self.seed, self.timeout_s, self.quiet)
        fitted = fit(self.train, self._params, rows.assign(**{self.label: target}), run)
        self.model_ = fitted.checkpoint.load()
        self.experiment_, self.value_ = fitted.experiment, fitted.value
        return self

    def _checked(self, X: Any, y: Any = None, *, reset: bool = True) -> tuple[pd.DataFrame, Any]:
        """Return rows as a DataFrame, and the target if there is one."""
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if reset:
                if y is None:
                    raise InvalidInputError(_NO_TARGET)
                check_consistent_length(X, y)
                y = column_or_1d(y, warn=True)
            return X.reset_index(drop=True), y
        if reset:
            if y is None:
                raise InvalidInputError(_NO_TARGET)
            X, y = validate_data(self, X, y, y_numeric=not _is_classifier(self))
        else:
            X = validate_data(self, X, reset=False)
        return pd.DataFrame(X, columns=[f"x{number}" for number in range(X.shape[1])]), y

    def predict(self, X: Any) -> Any:
        """Return a value, or a class, for each row."""
        answers = self._answers(X)
        if not _is_classifier(self):
            return answers
        return self.classes_[answers.argmax(axis=1) if answers.ndim == 2 else answers.astype(int)]

    @available_if(_is_classifier)
    def predict_proba(self, X: Any) -> Any:
        """Return one probability for each class and row, if that is what the function returns.

        Raises:
            InvalidInputError: If it returns classes.
        """
        answers = self._answers(X)
        if answers.ndim != 2:
            raise InvalidInputError("predict returns classes; return one probability for each class and row instead.")
        return answers

    def _answers(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        rows, _ = self._checked(X, reset=False)
        answers = np.asarray(self._predict(self.model_, rows))
        wanted = (len(rows), len(self.classes_)) if _is_classifier(self) and answers.ndim == 2 else (len(rows),)
        if answers.shape != wanted:
            raise InvalidInputError(
                f"predict was given {len(rows)} rows and returned an array of shape {answers.shape}; return one of "
                f"shape {wanted}."
            )
        return answers

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, the coefficient of determination of a regressor."""
        measure = accuracy_score if _is_classifier(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type = self.kind
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags() if _is_classifier(self) else None
        tags.regressor_tags = None if _is_classifier(self) else RegressorTags()
        return tags


_NO_TARGET = "This estimator requires y to be passed, but the target y is None."
