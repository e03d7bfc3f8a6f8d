"""How experiments and trials are printed: documented keys for programs, coloured states for people."""

from __future__ import annotations

import time
from typing import Any

from rich.text import Text

from cargobike.cli.printing import utc
from cargobike.core.records import ExperimentState, TrialState
from cargobike.experiments.index.index import ExperimentRow, TrialRow

_STYLES: dict[str, str] = {
    ExperimentState.RUNNING: "cyan",
    ExperimentState.COMPLETED: "green",
    ExperimentState.INTERRUPTED: "yellow",
    ExperimentState.LOST: "magenta",
    TrialState.PENDING: "dim",
    TrialState.PAUSED: "blue",
    TrialState.STOPPED: "yellow",
    TrialState.FAILED: "red",
}


def state_cell(state: ExperimentState | TrialState) -> Text:
    """Make the coloured cell of a state."""
    return Text(state.value, style=_STYLES.get(state, ""))


def spent_s(row: ExperimentRow) -> float:
    """Return how long an experiment took, or has been taking until now."""
    return row.lasted_s(time.time())


def experiment_as_json(row: ExperimentRow) -> dict[str, Any]:
    """Return the documented keys of an experiment."""
    best = None
    if row.best_trial is not None:
        best = {"trial": row.best_trial, "value": row.best_value, "params": row.best_params}
    return {
        "id": row.id,
        "name": row.name,
        "state": row.state.value,
        "reason": row.reason,
        "function": row.header.function,
        "optimizer": row.header.optimizer,
        "direction": row.header.direction,
        "metric": row.metric,
        "num_trials": row.header.num_trials,
        "trials": row.trials,
        "trials_done": row.trials_done,
        "counts": {state.value: count for state, count in row.counts.items()},
        "best": best,
        "started_at": utc(row.started_at),
        "ended_at": utc(row.ended_at),
        "duration_s": round(spent_s(row), 3),
        "user": row.header.user,
        "worker_seconds": round(row.worker_seconds, 3),
        "tags": row.tags,
        "problem": row.problem,
    }


def trial_as_json(row: TrialRow) -> dict[str, Any]:
    """Return the documented keys of a trial."""
    return {
        "trial": row.number,
        "state": row.state.value,
        "value": row.value,
        "params": row.params,
        "metrics": row.metrics,
        "extras": row.extras,
        "last_step": row.last_step,
        "last_value": row.last_value,
        "points": row.points,
        "attempts": row.attempts,
        "worker": row.worker,
        "seed": row.seed,
        "peak_memory_bytes": row.peak_memory_bytes,
        "started_at": utc(row.started_at),
        "ended_at": utc(row.ended_at),
        "duration_s": row.duration_s,
        "error": row.error,
    }
