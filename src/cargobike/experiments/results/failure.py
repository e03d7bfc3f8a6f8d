"""The error for a run that failed: which rank, where, with which traceback, and what it printed last."""

from __future__ import annotations

from typing import Final

from cargobike.core.errors import TrialFailedError
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.results.result import Result
from cargobike.experiments.results.trial import RecordedTrial
from cargobike.experiments.trial.death import LAST_OUTPUT

_TAIL_LINES: Final = 20
_TRACEBACK: Final = "Traceback (most recent call last):"


def failure_of(result: Result, trial: RecordedTrial) -> TrialFailedError:
    """Return the error for the trial of a single run that failed."""
    error = trial.error or "it left no message"
    rank, host = _failed_rank(trial.number, result.record)
    return TrialFailedError(
        f"the run {result.id} failed:\n{error}",
        experiment=result.id,
        trial=trial.number,
        rank=rank,
        host=host,
        traceback=_traceback_in(error),
        log_tail=_log_tail(trial, rank or 0),
        result=result,
    )


def _failed_rank(number: int, record: ExperimentRecord) -> tuple[int | None, str]:
    """Return the rank whose error it was, and its host; no rank if it was a parameter server or nothing is known."""
    attempts = record.attempts.get(number)
    if not attempts:
        return None, ""
    workers = attempts[-1].workers
    name = attempts[-1].failed_worker or (workers[0] if len(workers) == 1 else "")
    if name not in workers:
        return None, ""
    rank = workers.index(name)
    trains = len(workers) - record.header.asked.placement.gang.servers
    seen = record.workers.get(name)
    return rank if rank < trains else None, "" if seen is None else seen.host


def _traceback_in(error: str) -> str:
    """Return the traceback in the text of an error, without the name before it and the output after it."""
    _, begin, rest = error.partition(_TRACEBACK)
    return (begin + rest).partition(f"\n{LAST_OUTPUT}\n")[0]


def _log_tail(trial: RecordedTrial, rank: int) -> str:
    """Return the last lines of what a rank printed, errors after the rest."""
    lines = [
        line for name in ("stdout", "stderr") for line in trial.output(name, rank=rank).splitlines()[-_TAIL_LINES:]
    ]
    return "\n".join(lines)
