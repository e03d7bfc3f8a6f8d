"""Reports how well an estimator of scikit-learn does while it is being fitted, or from fold to fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import check_scoring
from sklearn.utils.multiclass import unique_labels

from cargobike.core.errors import InvalidInputError
from cargobike.experiments.trial import context
from cargobike.experiments.trial.callbacks.reporting import Reporting

Scoring = str | Callable[..., float] | Sequence[str] | Mapping[str, str | Callable[..., float]] | None
"""What to measure, as in scikit-learn's `cross_validate`."""


class SklearnReport:
    """Train an estimator of scikit-learn in steps, and report its score on validation data after each.

    Args:
        inputs: The validation data.
        targets: Its targets.
        scoring: What to measure: the name of a scorer, a function of estimator, inputs and targets, several names, or
            a dict of such; the estimator's own `score` if left out.
        name: What the score is called, if there is one; by default the name of the scorer, or `"score"`.
        checkpoint: Whether to save the estimator after each step. A later attempt goes on with it by itself.
    """

    def __init__(
        self, inputs: Any, targets: Any, scoring: Scoring = None, *, name: str | None = None, checkpoint: bool = False
    ) -> None:
        self._data = (inputs, targets)
        self._scoring = scoring
        self._name = name or _name_of(scoring)
        self._checkpoint = checkpoint
        self._reporting = Reporting("SklearnReport", None)

    def fit(self, estimator: Any, inputs: Any, targets: Any, *, steps: int) -> Any:
        """Train an estimator in steps and return it.

        One with `partial_fit` sees all data once in each step. One that grows with `warm_start` (forests, boosted
        trees) gets an equal share of its trees in each step.

        Raises:
            InvalidInputError: If the estimator cannot learn in steps.
            TrialStopped: If the trial is to end here.
        """
        size = _size_that_grows(estimator)
        total = 0 if size is None else estimator.get_params()[size]
        done = 0
        saves = self._checkpoint and context.is_inside()
        if saves:
            done, estimator = context.current().checkpoint.load((0, estimator))
        if size is None:
            learn = _by_seeing_all(estimator, inputs, targets)
        else:
            learn = _by_growing(estimator, inputs, targets, size=size, total=total, steps=steps)
        for step in range(done, steps):
            learn(step)
            self._reporting.report(_measure(estimator, self._scoring, self._data, self._name), step)
            if saves and not self._reporting.is_stopping:
                context.current().checkpoint.save((step + 1, estimator), step=step)
            self._reporting.end()
        return estimator


class FoldsReport:
    """A scorer for cross-validation that reports the mean of the folds so far, after each fold.

    Give it as `scoring=` to `cross_val_score` or `cross_validate`: a trial whose first folds are bad can be stopped
    before the others are computed. Folds that run in other processes (`n_jobs`) cannot report.

    Args:
        scoring: What to measure: the name of a scorer, or a function of estimator, inputs and targets.
        name: What the mean is called; by default the name of the scorer, or `"score"`.
    """

    def __init__(self, scoring: str | Callable[..., float] | None = None, *, name: str | None = None) -> None:
        self._scoring = scoring
        self._name = name or _name_of(scoring)
        self._scores: list[float] = []

    def __call__(self, estimator: Any, inputs: Any, targets: Any = None) -> float:
        """Score a fold and report the mean.

        Raises:
            TrialStopped: If the trial is to end here.
        """
        score = float(_measure(estimator, self._scoring, (inputs, targets), self._name)[self._name])
        self._scores.append(score)
        mean = sum(self._scores) / len(self._scores)
        context.current().report({self._name: mean}, len(self._scores) - 1)
        return score


def _name_of(scoring: Scoring) -> str:
    return scoring if isinstance(scoring, str) else "score"


def _measure(estimator: Any, scoring: Scoring, data: tuple[Any, Any], name: str) -> dict[str, Any]:
    scores = check_scoring(estimator, scoring)(estimator, *data)
    return dict(scores) if isinstance(scores, Mapping) else {name: scores}


def _by_seeing_all(estimator: Any, inputs: Any, targets: Any) -> Callable[[int], None]:
    """Return what trains an estimator for one step, in which it sees all data once.

    Raises:
        InvalidInputError: If it cannot learn in steps.
    """
    if not hasattr(estimator, "partial_fit"):
        raise InvalidInputError(
            f"{type(estimator).__name__} cannot be trained in steps: it has neither partial_fit nor trees that "
            "warm_start adds to. Fit it as usual and return its score, or report folds with FoldsReport."
        )
    arguments = {"classes": unique_labels(targets)} if is_classifier(estimator) else {}

    def see_all(step: int) -> None:
        estimator.partial_fit(inputs, targets, **arguments)

    return see_all


def _by_growing(
    estimator: Any, inputs: Any, targets: Any, *, size: str, total: int, steps: int
) -> Callable[[int], None]:
    """Return what trains an estimator for one step, in which it gets its share of trees."""
    if not 1 <= steps <= total:
        raise InvalidInputError(f"steps={steps} must be a number from 1 to {size}={total}, which they share.")

    def grow(step: int) -> None:
        estimator.set_params(warm_start=True, **{size: total * (step + 1) // steps})
        estimator.fit(inputs, targets)

    return grow


def _size_that_grows(estimator: Any) -> str | None:
    """Return the parameter that counts what `warm_start` adds to, `None` if there is none."""
    if isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        return "max_iter"
    parameters = estimator.get_params()
    return "n_estimators" if "warm_start" in parameters and "n_estimators" in parameters else None
