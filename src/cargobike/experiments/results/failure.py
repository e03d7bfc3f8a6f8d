"""The error for a run that failed: which rank, where, with which traceback, and what it printed last."""

from __future__ import annotations

from typing import Final

from cargobike.core.errors import TrialFailedError
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.results.result import Result
from cargobike.experiments.results.trial import RecordedTrial
from cargobike.experiments.trial.death import LAST_OUTPUT
from cargobike.workers.output import CRASH

_TAIL_LINES: Final = 20
_LONGEST_CALL: Final = 200
_TRACEBACK: Final = "Traceback (most recent call last):"


def failure_of(result: Result, trial: RecordedTrial) -> TrialFailedError:
    """Return the error for the trial of a single run that failed."""
    error = trial.error or "it left no message"
    rank, host = _failed_rank(trial.number, result.record)
    return TrialFailedError(
        f"the run {result.id} failed:\n{error}{debugging_hint(result, trial)}",
        experiment=result.id,
        trial=trial.number,
        rank=rank,
        host=host,
        traceback=_traceback_in(error),
        log_tail=_log_tail(trial, rank or 0),
        result=result,
    )


def debugging_hint(result: Result, trial: RecordedTrial) -> str:
    """Return a line that says how to look at a failure closely; empty where its author can do so already."""
    placement = result.asked.placement
    is_program = ":" not in result.asked.function  # its error says how it was run
    if placement.workers == 0 or placement.gang.is_distributed or not trial.attempts or is_program:
        return ""
    name = result.asked.function.rpartition(":")[2].rpartition(".")[2]
    name = name if name.isidentifier() else "train"
    call = f"{name}({', '.join(f'{key}={value!r}' for key, value in trial.params.items())})"
    if len(call) > _LONGEST_CALL:
        call = f"{name}(**params)"
    return f"\nTo debug it, call {call}, or launch with workers=0: breakpoint() and debuggers work there."


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
    text = error.partition(f"\n{LAST_OUTPUT}\n")[0]
    _, begin, rest = text.partition(_TRACEBACK if _TRACEBACK in text else CRASH)
    return begin + rest


def _log_tail(trial: RecordedTrial, rank: int) -> str:
    """Return the last lines of what a rank printed, errors after the rest."""
    lines = [
        line for name in ("stdout", "stderr") for line in trial.output(name, rank=rank).splitlines()[-_TAIL_LINES:]
    ]
    return "\n".join(lines)
