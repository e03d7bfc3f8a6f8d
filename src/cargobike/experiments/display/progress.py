"""Fold an experiment's facts into what a display needs, at a constant price per fact.

Pure: the time comes with the facts and with `snapshot`, both on the same clock (seconds since the epoch).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from cargobike.core.facts import (
    AttemptLost,
    AttemptStarted,
    ExperimentEnded,
    ExperimentResumed,
    ExperimentStarted,
    Fact,
    OptimizerIdled,
    Reported,
    TrialEnded,
    TrialPaused,
    TrialResumed,
    TrialSuggested,
    WorkerJoined,
    WorkerLost,
)
from cargobike.core.records import ExperimentState, Params, better
from cargobike.experiments.display.pace import Pace
from cargobike.experiments.display.snapshot import (
    BestTrial,
    Failure,
    LatestReport,
    ProgressSnapshot,
    failure_line,
)

STARTING_WORKERS = "starting workers"
SEARCHING = "searching"
RUNNING = "running"
STOPPING = "stopping"
_FINAL_PHASES = {"completed": "finished", "interrupted": "interrupted", "failed": "given up"}
_FAILURES_KEPT = 3


class Progress:
    """Folds facts, in the order of the journal, into counts, the best trial, a rate and an estimate.

    It may be shown a journal from its beginning, including one of an experiment that was taken up again by
    another driver: what the dead driver left running counts as pending from then on, and time starts anew.
    """

    def __init__(self) -> None:
        self.version = 0
        """Grows with everything that could change a drawing."""
        self._started: ExperimentStarted | None = None
        self._state = ExperimentState.RUNNING
        self._phase = STARTING_WORKERS
        self._reason = ""
        self._begun_at: float | None = None
        self._ended_at: float | None = None
        self._is_searching = False
        self._suggested = 0
        self._is_exhausted = False
        self._ends = {"completed": 0, "stopped": 0, "failed": 0}
        self._retries = 0
        self._params: dict[int, Params] = {}  # of trials that have not ended: one of them may become the best
        self._running: dict[int, int] = {}  # trial -> size of its gang
        self._paused: set[int] = set()
        self._busy = 0
        self._workers: set[str] = set()
        self._best: BestTrial | None = None
        self._latest: Reported | None = None
        self._failures: deque[TrialEnded] = deque(maxlen=_FAILURES_KEPT)
        self._pace = Pace()

    @property
    def has_begun(self) -> bool:
        """Whether the experiment is known at all."""
        return self._begun_at is not None

    @property
    def is_searching(self) -> bool:
        """Whether a trial has been started by the present driver."""
        return self._is_searching

    def apply(self, facts: Iterable[Fact]) -> None:
        """Take in facts; those that change nothing here are passed over."""
        for fact in facts:
            fold = self._folds.get(type(fact))
            if fold is not None:
                fold(self, fact)
                self.version += 1

    def set_phase(self, text: str) -> None:
        """Say in words what is going on; the first trial and the experiment's end change it by themselves."""
        if text != self._phase and self._state is ExperimentState.RUNNING:
            self._phase = text
            self.version += 1

    def snapshot(self, now_s: float) -> ProgressSnapshot:
        """Return everything a display needs, as of `now_s`."""
        started = self._started
        ended = sum(self._ends.values())
        total = self._total(started)
        now_s = now_s if self._ended_at is None else self._ended_at
        remaining = None if total is None else max(0, total - ended)
        rate_per_s = self._pace.rate_per_s(now_s, in_flight=len(self._running))
        eta_s = None
        if rate_per_s and remaining and self._state is ExperimentState.RUNNING:
            eta_s = self._pace.eta_s(now_s, remaining=remaining, in_flight=len(self._running))
        return ProgressSnapshot(
            experiment_id=started.id if started else "",
            name=started.name if started else "",
            state=self._state,
            phase=self._phase,
            reason=self._reason,
            direction=started.direction if started else "max",
            metric=started.metric if started else None,
            total=total,
            completed=self._ends["completed"],
            stopped=self._ends["stopped"],
            failed=self._ends["failed"],
            running=len(self._running),
            paused=len(self._paused),
            pending=max(0, self._suggested - ended - len(self._running) - len(self._paused)),
            retries=self._retries,
            best=self._best,
            latest=_latest(self._latest),
            failures=tuple(Failure(end.trial, failure_line(end.error)) for end in self._failures),
            rate_per_s=rate_per_s,
            eta_s=eta_s,
            elapsed_s=max(0.0, now_s - self._begun_at) if self._begun_at is not None else 0.0,
            workers_busy=min(self._busy, len(self._workers)),
            workers_joined=len(self._workers),
            workers_asked=started.workers if started else 0,
        )

    def _total(self, started: ExperimentStarted | None) -> int | None:
        if self._is_exhausted:
            return self._suggested
        if started is None:
            return None
        return started.num_trials if started.params is None else 1

    def _experiment_started(self, fact: ExperimentStarted) -> None:
        self._started = fact
        self._begun_at = fact.at

    def _experiment_resumed(self, fact: ExperimentResumed) -> None:
        self._state = ExperimentState.RUNNING
        self._phase = STARTING_WORKERS
        self._reason = ""
        self._begun_at = fact.at
        self._ended_at = None
        self._is_searching = False
        self._is_exhausted = False
        self._running.clear()
        self._workers.clear()
        self._busy = 0
        self._pace = Pace()

    def _experiment_ended(self, fact: ExperimentEnded) -> None:
        self._state = ExperimentState(fact.state)
        self._phase = _FINAL_PHASES[fact.state]
        self._reason = fact.reason
        self._ended_at = fact.at

    def _worker_joined(self, fact: WorkerJoined) -> None:
        self._workers.add(fact.worker)

    def _worker_lost(self, fact: WorkerLost) -> None:
        self._workers.discard(fact.worker)

    def _trial_suggested(self, fact: TrialSuggested) -> None:
        self._suggested += 1
        self._params[fact.trial] = fact.params

    def _trial_resumed(self, fact: TrialResumed) -> None:
        self._paused.discard(fact.trial)

    def _optimizer_idled(self, fact: OptimizerIdled) -> None:
        self._is_exhausted = self._is_exhausted or fact.exhausted

    def _attempt_started(self, fact: AttemptStarted) -> None:
        self._release(fact.trial)
        self._paused.discard(fact.trial)
        self._running[fact.trial] = len(fact.workers)
        self._busy += len(fact.workers)
        if not self._is_searching:
            self._is_searching = True
            self._pace.begin(fact.at)
            if self._phase != STOPPING:
                self._phase = RUNNING if self._total(self._started) == 1 else SEARCHING

    def _attempt_lost(self, fact: AttemptLost) -> None:
        self._release(fact.trial)
        self._retries += 1

    def _reported(self, fact: Reported) -> None:
        self._latest = fact

    def _trial_paused(self, fact: TrialPaused) -> None:
        self._release(fact.trial)
        self._paused.add(fact.trial)

    def _trial_ended(self, fact: TrialEnded) -> None:
        self._release(fact.trial)
        self._paused.discard(fact.trial)
        self._ends[fact.state] += 1
        self._pace.count(fact.at)
        params = self._params.pop(fact.trial, {})
        if fact.state == "failed":
            self._failures.append(fact)
        elif fact.state == "completed" and fact.value is not None:
            self._consider(BestTrial(fact.trial, float(fact.value), params))

    def _consider(self, rival: BestTrial) -> None:
        if not math.isfinite(rival.value):
            return
        best = self._best
        direction = self._started.direction if self._started else "max"
        if best is None or better(rival.value, best.value, direction):
            self._best = rival
        elif rival.value == best.value and rival.trial < best.trial:
            self._best = rival  # a result, too, names the earliest among equals

    def _release(self, trial: int) -> None:
        self._busy -= self._running.pop(trial, 0)

    _folds: ClassVar[dict[type[Fact], Callable[[Progress, Any], None]]] = {
        ExperimentStarted: _experiment_started,
        ExperimentResumed: _experiment_resumed,
        ExperimentEnded: _experiment_ended,
        WorkerJoined: _worker_joined,
        WorkerLost: _worker_lost,
        TrialSuggested: _trial_suggested,
        TrialResumed: _trial_resumed,
        OptimizerIdled: _optimizer_idled,
        AttemptStarted: _attempt_started,
        AttemptLost: _attempt_lost,
        Reported: _reported,
        TrialPaused: _trial_paused,
        TrialEnded: _trial_ended,
    }


def _latest(fact: Reported | None) -> LatestReport | None:
    if fact is None:
        return None
    return LatestReport(fact.trial, fact.step, {name: float(value) for name, value in fact.metrics.items()})
