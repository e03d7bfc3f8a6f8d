"""Reports what LightGBM measures after each round of boosting."""

from __future__ import annotations

from typing import Any

from cargobike.experiments.trial.callbacks.boosting import rounds_left
from cargobike.experiments.trial.callbacks.reporting import Metrics, Reporting


class LightGBMReport:
    """Report the metrics of each round of `lightgbm.train`, `cv` or a model's `fit`; end it when the trial is to stop.

    Args:
        metrics: The name of a metric with its data, such as `"valid_0-binary_logloss"`, several, `{"name to report":
            "valid_0-binary_logloss"}`, or nothing for all of them.
        checkpoint_every: After how many rounds to save the model; 0 for never. A later attempt goes on with it by
            `lightgbm.train(…, num_boost_round=report.rounds_left(100), init_model=trial.checkpoint.load())`.
    """

    before_iteration = False
    order = 40  # after LightGBM's own callbacks, of which `early_stopping` is the last with 30

    def __init__(self, metrics: Metrics = None, *, checkpoint_every: int = 0) -> None:
        self._reporting = Reporting("LightGBMReport", metrics)
        self._every = checkpoint_every

    def rounds_left(self, total: int) -> int:
        """Return how many rounds of a total are left after those of the trial's checkpoint."""
        return rounds_left(total)

    def __call__(self, env: Any) -> None:
        """Report a round. LightGBM has no hook for the end of a training, and none is needed: it has nothing open."""
        results = env.evaluation_result_list or []
        self._reporting.report({f"{result[0]}-{result[1]}": result[2] for result in results}, env.iteration)
        if self._every and hasattr(env.model, "save_model") and (env.iteration + 1) % self._every == 0:
            self._reporting.save(env.model.save_model, "model.txt", env.iteration)
        self._reporting.end()
