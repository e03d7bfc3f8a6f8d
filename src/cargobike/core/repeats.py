"""Repeats: several runs of one setting, each with a seed of its own, seen as one trial.

A journal speaks of runs. Everything that looks at an experiment sees one trial for each setting: the mean of its runs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from statistics import stdev

from cargobike.core.records import Curve, Trial, TrialState

REPEATED = "repeated"
"""Where `Trial.info` tells about the runs of a setting."""


def has_failed(runs: Iterable[Trial], planned: int) -> bool:
    """Tell whether so many runs failed that those that are left would not be most of what was planned."""
    return 2 * sum(run.state is TrialState.FAILED for run in runs) > planned


def is_decided(runs: Sequence[Trial], planned: int) -> bool:
    """Tell whether no further run of a setting is worth starting: one was stopped, or too many failed."""
    return has_failed(runs, planned) or any(run.state is TrialState.STOPPED and not run.is_interrupted for run in runs)


def state_of(runs: Sequence[Trial], planned: int, *, is_over: bool = False) -> TrialState:
    """Return the state of a setting.

    Args:
        runs: Those that were suggested so far.
        planned: How many there are to be.
        is_over: Whether no further run will be started, because the experiment has ended.
    """
    if is_over:  # what was never started stays pending, and does not hold up the others
        runs = [run for run in runs if run.attempts] or runs
    states = {run.state for run in runs}
    if TrialState.RUNNING in states:
        return TrialState.RUNNING
    are_all_there = len(runs) == planned or is_over or is_decided(runs, planned)
    if are_all_there and all(state.is_final for state in states):
        if has_failed(runs, planned):
            return TrialState.FAILED
        is_whole = len(runs) == planned and TrialState.STOPPED not in states
        return TrialState.COMPLETED if is_whole else TrialState.STOPPED
    if are_all_there and TrialState.PAUSED in states and TrialState.PENDING not in states:
        return TrialState.PAUSED
    return TrialState.RUNNING if any(run.attempts for run in runs) else TrialState.PENDING


def summarize(setting: Trial, runs: Sequence[Trial], planned: int, *, is_over: bool = False) -> None:
    """Write into the trial of a setting what its runs came to; its curve is left as it is.

    A setting completes when all of its runs have ended, none was stopped and at least half completed: their mean is its
    value. Otherwise it has stopped or failed.
    """
    completed = [run for run in runs if run.state is TrialState.COMPLETED]
    failed = [run for run in runs if run.state is TrialState.FAILED]
    setting.state = state = state_of(runs, planned, is_over=is_over)
    setting.values = [run.value if run.value is not None else (run.metrics or None) for run in runs]
    scores = [run.value for run in completed if run.value is not None]
    is_whole = state is TrialState.COMPLETED
    setting.value = mean_of(scores) if is_whole and scores and len(scores) == len(completed) else None
    setting.metrics = _means(completed) if is_whole else {}
    setting.attempts = sum(run.attempts for run in runs)
    setting.error = _error(setting, runs, failed) if state is not TrialState.COMPLETED else None
    setting.started_at = min((run.started_at for run in runs if run.started_at is not None), default=None)
    ends = [run.ended_at for run in runs if run.ended_at is not None]
    setting.ended_at = max(ends) if state.is_final and ends else None
    setting.worker = next((run.worker for run in reversed(runs) if run.worker is not None), None)
    memory = [run.peak_memory_bytes for run in runs if run.peak_memory_bytes is not None]
    setting.peak_memory_bytes = max(memory, default=None)
    setting.is_interrupted = state is TrialState.STOPPED and any(run.is_interrupted for run in runs)
    setting.has_checkpoint = any(run.has_checkpoint for run in runs)
    setting.extras = runs[0].extras
    setting.info = {
        **runs[0].info,
        REPEATED: {
            "trials": [run.number for run in runs],
            "planned": planned,
            "completed": len(completed),
            "failures": len(failed),
            "spread": spread_of(scores),
        },
    }


def mean_of(scores: Collection[float]) -> float:
    """Return the mean of scores, which may be NaN or infinite."""
    return sum(scores) / len(scores)


def spread_of(scores: Sequence[float]) -> float | None:
    """Return the standard deviation of scores, as that of a sample; `None` of fewer than two or of no finite ones."""
    if len(scores) < 2 or not all(map(math.isfinite, scores)):
        return None
    return stdev(scores)


def _means(runs: Sequence[Trial]) -> dict[str, float]:
    names = dict.fromkeys(name for run in runs for name in run.metrics)
    return {name: mean_of([run.metrics[name] for run in runs if name in run.metrics]) for name in names}


def _error(setting: Trial, runs: Sequence[Trial], failed: Sequence[Trial]) -> str | None:
    reasons = [run for run in (*failed, *runs) if run.error]
    if not reasons:
        return None
    first = reasons[0]
    which = f"repeat {runs.index(first)} (trial {first.number})"
    how = f"{len(failed)} of {len(runs)} repeats failed; " if failed else ""
    return f"{how}{which}: {first.error}"


def mean_curve(runs: Sequence[Trial], steps: Iterable[int]) -> Curve:
    """Return the means of what runs reported, at some steps: of those runs that got to each."""
    reported: dict[int, dict[int, float]] = {}
    for index, run in enumerate(runs):
        for step, value in run.curve:
            reported.setdefault(step, {})[index] = value
    curve = Curve()
    for step in dict.fromkeys(steps):
        if step in reported:
            curve.add(step, mean_of(reported[step].values()))
    return curve


class Settings:
    """The trials of an experiment with repeats: each the summary of its runs, kept up to date.

    Args:
        planned: How many runs each setting is to have.
        trials: Where the summaries go, by the number of the first run.
    """

    def __init__(self, planned: int, trials: dict[int, Trial]) -> None:
        self.planned = planned
        self._trials = trials
        self._runs: dict[int, list[Trial]] = {}
        self._first: dict[int, int] = {}
        self._points: dict[int, dict[int, dict[int, float]]] = {}
        self._places: dict[int, dict[int, int]] = {}

    def add(self, run: Trial, repeat_of: int | None) -> Trial:
        """Add a run that was suggested, and return the trial of its setting."""
        first = run.number if repeat_of is None else repeat_of
        self._first[run.number] = first
        self._runs.setdefault(first, []).append(run)
        if repeat_of is None:
            self._trials[first] = Trial(run.params, number=first, seed=run.seed, info=run.info)
        return self._trials[first]

    def of(self, run: int) -> Trial:
        """Return the trial of the setting that a run belongs to."""
        return self._trials[self._first[run]]

    def runs_of(self, trial: int) -> tuple[Trial, ...]:
        """Return the runs of a trial, as far as they were suggested."""
        return tuple(self._runs.get(trial, ()))

    def update(self, run: int, *, is_over: bool = False) -> Trial:
        """Write anew what a setting came to, after something has happened to one of its runs."""
        trial = self.of(run)
        summarize(trial, self._runs[trial.number], self.planned, is_over=is_over)
        return trial

    def report(self, run: int, step: int, value: float) -> None:
        """Add a point: the curve of a setting has the mean of those runs that got to each step."""
        trial = self.of(run)
        at_step = self._points.setdefault(trial.number, {}).setdefault(step, {})
        at_step[run] = value
        places = self._places.setdefault(trial.number, {})
        if step not in places:
            places[step] = len(trial.curve)
            trial.curve.add(step, value)
        else:
            trial.curve.values[places[step]] = mean_of(at_step.values())

    @property
    def owes_runs(self) -> bool:
        """Whether the setting that was suggested last still lacks runs."""
        runs = next(reversed(self._runs.values()), None)
        return runs is not None and len(runs) < self.planned and not is_decided(runs, self.planned)
