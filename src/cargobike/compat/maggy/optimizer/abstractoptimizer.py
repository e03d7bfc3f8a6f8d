"""Maggy's optimizer interface, for optimizers that users have written; `running.driven` lets our driver run them."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Final

from cargobike.compat.maggy.pruner.hyperband import Hyperband
from cargobike.compat.maggy.trial import Trial
from cargobike.core.errors import InvalidInputError, nearest

__all__ = ["AbstractOptimizer"]

log = logging.getLogger(__name__)

SAMPLE_TYPES: Final = ("random", "random_forced", "model", "promoted", "grid")


class AbstractOptimizer(ABC):
    """What Maggy's users subclass to decide what to try next.

    Before `initialize`, `searchspace`, `num_trials`, `direction`, `trial_store` (running trials by id) and
    `final_store` (finished trials) are there, and the stores are kept up to date.

    Args:
        num_trials: How many trials; as in 0.1, together with `searchspace`. Later versions give neither.
        searchspace: What to search; as in 0.1.
        pruner: `"hyperband"`, for the optimizers that come with Maggy.
        pruner_kwargs: Its arguments.
    """

    searchspace: Any = None
    num_trials: Any = None
    direction: Any = None
    pruner: Hyperband | None = None

    def __init__(
        self,
        num_trials: Any = None,
        searchspace: Any = None,
        *_: Any,
        pruner: str | None = None,
        pruner_kwargs: dict[str, Any] | None = None,
    ) -> None:
        if isinstance(num_trials, str):  # in 1.0 the pruner came first
            num_trials, pruner = None, num_trials
            pruner_kwargs, searchspace = (searchspace if isinstance(searchspace, dict) else pruner_kwargs), None
        self.num_trials = num_trials
        self.searchspace = searchspace
        self.trial_buffer: list[Trial] = []
        self.trial_store: dict[str, Trial] = {}
        self.final_store: list[Trial] = []
        self.sampling_time_start = 0.0
        if pruner:
            self.init_pruner(pruner, pruner_kwargs or {})

    @abstractmethod
    def initialize(self) -> None:
        """Prepare, now that the space and the number of trials are known."""

    @abstractmethod
    def get_suggestion(self, trial: Trial | None = None) -> Any:
        """Return a `Trial`, `"IDLE"` if there is nothing just now, or `None` if there is nothing more."""

    @abstractmethod
    def finalize_experiment(self, trials: list[Trial]) -> None:
        """Look back once, when all trials have ended."""

    def name(self) -> str:
        """Return what it is called in records."""
        return type(self).__name__

    def init_pruner(self, pruner: str, pruner_kwargs: dict[str, Any]) -> None:
        """Take the budgets of a pruner."""
        if pruner != "hyperband":
            raise InvalidInputError(f"pruner={pruner!r}: there is one pruner, 'hyperband'.")
        self.pruner = Hyperband(**pruner_kwargs)

    def create_trial(
        self, hparams: dict[str, Any], sample_type: str, run_budget: int = 0, model_budget: int | None = None
    ) -> Trial:
        """Make a trial.

        Args:
            hparams: Its parameters; `budget` is added to them if there is one.
            sample_type: How they were found: `random`, `random_forced`, `model`, `promoted` or `grid`.
            run_budget: How long to train, 0 if that is not searched.
            model_budget: For `model`: the budget that the model was fitted to.
        """
        if sample_type not in SAMPLE_TYPES:
            hint = nearest(sample_type, SAMPLE_TYPES)
            raise InvalidInputError(f"sample_type={sample_type!r}; allowed are {', '.join(SAMPLE_TYPES)}.{hint}")
        if sample_type == "model" and model_budget is None:
            raise InvalidInputError("sample_type='model' needs a model_budget.")
        info: dict[str, Any] = {"run_budget": run_budget, "sample_type": sample_type}
        if self.sampling_time_start:
            info["sampling_time"] = time.time() - self.sampling_time_start
            self.sampling_time_start = 0.0
        if model_budget is not None:
            info["model_budget"] = model_budget
        params = {**hparams, "budget": run_budget} if run_budget > 0 else hparams
        return Trial(params, trial_type="optimization", info_dict=info)

    def hparams_exist(self, trial: Trial) -> bool:
        """Tell whether a trial with the same parameters runs or has ended, whatever its budget."""
        wanted = self._of_space(trial)
        return any(self._of_space(other) == wanted for other in (*self.final_store, *self.trial_store.values()))

    def _of_space(self, trial: Trial) -> dict[str, Any]:
        return {name: value for name, value in trial.params.items() if name in self.searchspace.keys()}  # noqa: SIM118

    def get_hparams_dict(self, trial_ids: str | Iterable[str] = "all") -> dict[str, dict[str, Any]]:
        """Return the parameters of finished trials by id."""
        return {trial.trial_id: trial.params for trial in self._finished(trial_ids)}

    def get_metrics_dict(self, trial_ids: str | Iterable[str] = "all") -> dict[str, float]:
        """Return the scores of finished trials by id, negated for `direction="max"`: the lowest is the best."""
        return {trial.trial_id: value for trial, value in self._losses(trial_ids)}

    def ybest(self, budget: int = 0) -> float:
        """Return the best score, as `get_metrics_dict` has them."""
        return min(self._of_budget(budget))

    def yworst(self, budget: int = 0) -> float:
        """Return the worst score, as `get_metrics_dict` has them."""
        return max(self._of_budget(budget))

    def ymean(self, budget: int = 0) -> float:
        """Return the mean score, as `get_metrics_dict` has them."""
        losses = self._of_budget(budget)
        return sum(losses) / len(losses)

    def get_max_budget(self) -> int:
        """Return the largest budget: the pruner's, or how often the first finished trial has reported."""
        if self.pruner is not None:
            return self.pruner.max_budget
        if not self.final_store:
            raise InvalidInputError("At least one finalized Trial is necessary to calculate max budget.")
        return len(self.final_store[0].metric_history)

    def _of_budget(self, budget: int) -> list[float]:
        losses = [value for trial, value in self._losses() if not budget or trial.params.get("budget") == budget]
        if not losses:
            raise InvalidInputError("No trial has finished yet, so that there is no score to look at.")
        return losses

    def _losses(self, trial_ids: str | Iterable[str] = "all") -> list[tuple[Trial, float]]:
        sign = -1 if self.direction == "max" else 1
        trials = self._finished(trial_ids)
        return [(trial, sign * trial.final_metric) for trial in trials if trial.final_metric is not None]

    def _finished(self, trial_ids: str | Iterable[str]) -> list[Trial]:
        wanted = (trial_ids,) if isinstance(trial_ids, str) else tuple(trial_ids)
        return [trial for trial in self.final_store if wanted == ("all",) or trial.trial_id in wanted]

    def _log(self, msg: object) -> None:
        log.info("%s: %s", self.name(), msg)
