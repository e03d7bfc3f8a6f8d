"""Reports what XGBoost measures after each round of boosting."""

from __future__ import annotations

from typing import Any

from xgboost.callback import TrainingCallback

from cargobike.experiments.trial.callbacks.boosting import rounds_left
from cargobike.experiments.trial.callbacks.reporting import Metrics, Reporting


class XGBoostReport(TrainingCallback):
    """Report the metrics of each round of `xgboost.train`, `cv` or a model's `fit`; end it when the trial is to stop.

    Args:
        metrics: The name of a metric with its data, such as `"validation_0-logloss"`, several, `{"name to report":
            "validation_0-logloss"}`, or nothing for all of them.
        checkpoint_every: After how many rounds to save the model; 0 for never. A later attempt goes on with it by
            `xgboost.train(…, num_boost_round=report.rounds_left(100), xgb_model=trial.checkpoint.load())`.
    """

    def __init__(self, metrics: Metrics = None, *, checkpoint_every: int = 0) -> None:
        super().__init__()
        self._reporting = Reporting("XGBoostReport", metrics)
        self._every = checkpoint_every

    def rounds_left(self, total: int) -> int:
        """Return how many rounds of a total are left after those of the trial's checkpoint."""
        return rounds_left(total)

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Report a round; true ends the training."""
        is_one_model = hasattr(model, "save_model")  # and not the models of a cross-validation
        step = model.num_boosted_rounds() - 1 if is_one_model else epoch
        self._reporting.report(_last(evals_log), step)
        if self._every and is_one_model and (step + 1) % self._every == 0:
            self._reporting.save(model.save_model, "model.ubj", step)
        return self._reporting.is_stopping

    def after_training(self, model: Any) -> Any:
        """End the trial, if it was to stop."""
        self._reporting.end()
        return model


def _last(evals_log: Any) -> dict[str, Any]:
    """Return the newest value of each metric; of a cross-validation the mean."""
    newest = {f"{data}-{name}": values[-1] for data, named in evals_log.items() for name, values in named.items()}
    return {name: value[0] if isinstance(value, tuple) else value for name, value in newest.items()}
