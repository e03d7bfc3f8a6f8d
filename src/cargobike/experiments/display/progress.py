"""What a display shows of an experiment: its record, its pace, the time left, and its phase in words.

Pure: the time comes with the facts and with `snapshot`, both on the same clock (seconds since the epoch).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import attrgetter

from cargobike.core.facts import AttemptStarted, ExperimentResumed, Fact, Reported, TrialEnded
from cargobike.core.goals import pareto_front
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import ExperimentState, Trial, TrialState
from cargobike.experiments.display.pace import Pace
from cargobike.experiments.display.snapshot import Failure, LatestReport, ProgressSnapshot, failure_line, reason_line
from cargobike.experiments.usage import DataPace

STARTING_WORKERS = "starting workers"
SEARCHING = "searching"
RUNNING = "running"
STOPPING = "stopping"
_FINAL_PHASES = {
    ExperimentState.COMPLETED: "finished",
    ExperimentState.INTERRUPTED: "interrupted",
    ExperimentState.FAILED: "failed",
}
_FAILURES_KEPT = 3


class Progress:
    """Reads a record that its owner keeps up to date, and adds only what is needed for drawing.

    Counts, the best trial and everything else that is in the journal come from the record, so that a display and a
    result cannot disagree.

    Args:
        record: The experiment, new or resumed.
    """

    def __init__(self, record: ExperimentRecord) -> None:
        self.version = 0
        """Grows with everything that could change a drawing."""
        self._record = record
        self._phase = STARTING_WORKERS
        self._is_searching = False
        self._latest: Reported | None = None
        self._pace = Pace()
        self._data_pace: DataPace | None = None
        past = sorted((trial for trial in record.trials.values() if trial.state.is_final), key=attrgetter("ended_at"))
        failed = (trial for trial in past if trial.state is TrialState.FAILED)
        self._failures: deque[Trial] = deque(failed, maxlen=_FAILURES_KEPT)
        self._front: list[Trial] = []
        self._rivals: list[Trial] = past if record.goals.objectives else []  # ended since the front was last computed

    @property
    def is_searching(self) -> bool:
        """Whether a trial has been started by the present driver."""
        return self._is_searching

    def apply(self, facts: Sequence[Fact]) -> None:
        """Note what has happened; these facts have been applied to the record already."""
        self.version += len(facts)
        for fact in facts:
            kind = type(fact)
            if kind is Reported:
                self._latest = fact  # type: ignore[assignment]
            elif kind is TrialEnded:
                self._trial_ended(fact)  # type: ignore[arg-type]
            elif kind is AttemptStarted:
                self._attempt_started(fact.at)
            elif kind is ExperimentResumed:
                self._phase = STARTING_WORKERS
                self._is_searching = False
                self._pace = Pace()

    def set_phase(self, text: str) -> None:
        """Say in words what is going on; the first trial and the experiment's end change it by themselves."""
        if text != self._phase and self._record.state is ExperimentState.RUNNING:
            self._phase = text
            self.version += 1

    def set_data_pace(self, pace: DataPace | None) -> None:
        """Say how fast trials draw rows, `None` if they draw none."""
        if pace != self._data_pace:
            self._data_pace = pace
            self.version += 1

    def snapshot(self, now_s: float) -> ProgressSnapshot:
        """Return everything a display needs, as of `now_s`."""
        record, header = self._record, self._record.header
        counts = record.counts
        ended = counts[TrialState.COMPLETED] + counts[TrialState.STOPPED] + counts[TrialState.FAILED]
        running = counts[TrialState.RUNNING]
        joined = sum(worker.lost_at is None for worker in record.workers.values())
        total = self._total
        begun_at = record.started_at if record.taken_up_at is None else record.taken_up_at
        now_s = now_s if record.ended_at is None else record.ended_at
        remaining = None if total is None else max(0, total - ended)
        rate_per_s = self._pace.rate_per_s(now_s, in_flight=running)
        eta_s = None
        if rate_per_s and remaining and record.state is ExperimentState.RUNNING:
            eta_s = self._pace.eta_s(now_s, remaining=remaining, in_flight=running)
        return ProgressSnapshot(
            experiment_id=record.id,
            name=header.name,
            state=record.state,
            phase=_FINAL_PHASES.get(record.state, self._phase),
            reason=reason_line(record.reason),
            direction=header.direction,
            metric=header.metric,
            objectives=record.goals.objectives,
            total=total,
            completed=counts[TrialState.COMPLETED],
            stopped=counts[TrialState.STOPPED],
            failed=counts[TrialState.FAILED],
            running=running,
            paused=counts[TrialState.PAUSED],
            pending=counts[TrialState.PENDING],
            retries=record.lost_attempts,
            best=record.best,
            front=self._newest_front(),
            latest=_latest(self._latest),
            failures=tuple(Failure(trial.number, failure_line(trial.error)) for trial in self._failures),
            rate_per_s=rate_per_s,
            eta_s=eta_s,
            elapsed_s=max(0.0, now_s - begun_at),
            workers_busy=min(record.busy_workers, joined),
            workers_joined=joined,
            workers_asked=header.workers,
            data_pace=self._data_pace if record.state is ExperimentState.RUNNING else None,
        )

    @property
    def _total(self) -> int | None:
        if self._record.is_exhausted:
            return len(self._record.trials)
        header = self._record.header
        return header.num_trials if header.params is None else 1

    def _attempt_started(self, at: float) -> None:
        if self._is_searching:
            return
        self._is_searching = True
        self._pace.begin(at)
        if self._phase != STOPPING:
            self._phase = RUNNING if self._total == 1 else SEARCHING

    def _trial_ended(self, fact: TrialEnded) -> None:
        settings = self._record.settings
        trial = self._record.trials[fact.trial] if settings is None else settings.of(fact.trial)
        if not trial.state.is_final:
            return  # other repeats of it are still to come
        self._pace.count(fact.at)
        if trial.state is TrialState.FAILED:
            self._failures.append(trial)
        elif self._record.goals.objectives:
            self._rivals.append(trial)

    def _newest_front(self) -> tuple[Trial, ...]:
        """Return the best compromises; a trial that was beaten once stays beaten, so only new trials are compared."""
        if self._rivals:
            self._front = pareto_front([*self._front, *self._rivals], self._record.goals.objectives)
            self._rivals = []
        return tuple(self._front)


def _latest(fact: Reported | None) -> LatestReport | None:
    if fact is None:
        return None
    return LatestReport(fact.trial, fact.step, {name: float(value) for name, value in fact.metrics.items()})
