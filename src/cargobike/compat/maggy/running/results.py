"""Our result as the dict that Maggy returned, with the words of all its versions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cargobike.compat.maggy.trial import Trial as TheirTrial
from cargobike.core.records import Trial, TrialState

if TYPE_CHECKING:
    from cargobike.results import Result


def as_dict(result: Result, direction: str, trial_type: str = "optimization") -> dict[str, Any]:
    """Return what `launch` and `lagom` returned: best and worst trial, the average, how many there were.

    Only trials that completed compete. `experiment_id` is ours: `cargobike.experiment.load` finds everything by it.
    """
    runs = [run for trial in result.trials for run in result.repeats(trial) or [trial]]
    scored = [trial for trial in runs if trial.value is not None and math.isfinite(trial.value)]
    highest = max(scored, key=lambda trial: trial.value or 0.0, default=None)
    lowest = min(scored, key=lambda trial: trial.value or 0.0, default=None)
    best, worst = (lowest, highest) if direction == "min" else (highest, lowest)
    values = [trial.value for trial in scored if trial.value is not None]
    found: dict[str, Any] = {}
    for word, trial in (("best", best), ("worst", worst), ("max", highest), ("min", lowest)):
        found |= _described(word, trial, trial_type)
    ended = [trial for trial in runs if trial.state.is_final]
    return {
        **found,
        "avg": sum(values) / len(values) if values else None,
        "metric_list": values,
        "num_trials": len(ended),
        "early_stopped": sum(trial.state is TrialState.STOPPED for trial in ended),
        "failed": sum(trial.state is TrialState.FAILED for trial in ended),
        "num_epochs": len(best.curve) if best is not None else 0,
        "trial_id": found["best_id"],
        "experiment_id": result.id,
    }


def _described(word: str, trial: Trial | None, trial_type: str) -> dict[str, Any]:
    params = dict(trial.params) if trial is not None else None
    return {
        f"{word}_id": TheirTrial(dict(params), trial_type).trial_id if params is not None else None,
        f"{word}_val": trial.value if trial is not None else None,
        f"{word}_hp": params,
        f"{word}_config": params,
    }
