"""An experiment as its facts tell it: the journal folded, in memory, one fact at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from cargobike.core.errors import StoreError
from cargobike.core.facts import (
    AnyFact,
    AttemptLost,
    AttemptStarted,
    CheckpointSaved,
    ExperimentEnded,
    ExperimentResumed,
    ExperimentStarted,
    Fact,
    Judged,
    OptimizerIdled,
    Reported,
    TrialEnded,
    TrialPaused,
    TrialResumed,
    TrialSuggested,
    WorkerJoined,
    WorkerLost,
    unpack_number,
    unpack_numbers,
    unpack_returned,
)
from cargobike.core.goals import Goals, read_constraints
from cargobike.core.records import ExperimentState, Trial, TrialState, best_of, better
from cargobike.core.running.ending import EndKind
from cargobike.core.running.member import Role


@dataclass(slots=True)
class Attempt:
    """One try at running a trial.

    `ended` is `None` while it runs, then a state or why it was lost; `failed_worker` is the one whose error ended it.
    """

    number: int
    workers: tuple[str, ...]
    started_at: float
    ended_at: float | None = None
    ended: str | None = None
    failed_worker: str = ""


@dataclass(slots=True)
class WorkerSeen:
    """A worker that joined; `lost_at` is `None` while it is there."""

    name: str
    host: str
    pid: int
    gpus: tuple[str, ...]
    joined_at: float
    lost_at: float | None = None
    reason: str = ""
    role: Role = Role.WORKER
    cause: EndKind | None = None


@dataclass(slots=True)
class ExperimentRecord:
    """Everything that an experiment's facts say, kept up to date by `apply`.

    Attributes:
        header: What was asked for.
        trials: All trials by number, in the order of suggestion; `curve` holds the objective's points.
        state: `running` until an end was recorded; only `read_record` can tell that it is `lost`.
        reason: Why it ended.
        objective: Name of the metric in the curves: the one asked for or, if none was, the only one in the
            first report; empty if that had several.
        workers: Workers that joined, by name.
        attempts: Attempts of each trial, by its number.
        checkpoints: Checkpoints of each trial, by its number, as saved.
        counts: How many trials are in each state.
        best: The completed trial with the best finite value, the earliest one among equals.
        last_at: Time of the latest fact.
        past_worker_s: Time of workers whose names were given to others since.
        taken_up_at: When the present driver went on with it, `None` if that is the one that began it.
        lost_attempts: How many attempts were lost through no fault of their trial.
        busy_workers: How many workers have an attempt to run.
        is_exhausted: Whether the optimizer has nothing more to try.
    """

    header: ExperimentStarted
    trials: dict[int, Trial] = field(default_factory=dict)
    state: ExperimentState = ExperimentState.RUNNING
    reason: str = ""
    ended_at: float | None = None
    objective: str | None = None
    workers: dict[str, WorkerSeen] = field(default_factory=dict)
    attempts: dict[int, list[Attempt]] = field(default_factory=dict)
    checkpoints: dict[int, list[CheckpointSaved]] = field(default_factory=dict)
    counts: dict[TrialState, int] = field(default_factory=dict)
    best: Trial | None = None
    last_at: float = 0.0
    past_worker_s: float = 0.0
    goals: Goals = field(default_factory=Goals)
    taken_up_at: float | None = None
    lost_attempts: int = 0
    busy_workers: int = 0
    is_exhausted: bool = False

    def __post_init__(self) -> None:
        self.objective = self.objective or self.header.metric
        self.goals = Goals(objectives=self.header.objectives, constraints=read_constraints(self.header.constraints))
        self.last_at = max(self.last_at, self.header.at)
        self.counts = dict.fromkeys(TrialState, 0)
        for trial in self.trials.values():
            self.counts[trial.state] += 1
        self.best = best_of(self.trials, self.header.direction)

    @property
    def id(self) -> str:
        """The experiment's id."""
        return self.header.id

    @property
    def started_at(self) -> float:
        """Seconds since the epoch when the experiment began."""
        return self.header.at

    @property
    def duration_s(self) -> float:
        """Seconds from the start to the end, or to the latest fact while there is no end."""
        return (self.last_at if self.ended_at is None else self.ended_at) - self.header.at

    @property
    def worker_seconds(self) -> float:
        """What the experiment cost: the time that its workers were there, added up."""
        end = self.last_at if self.ended_at is None else self.ended_at
        there = sum((end if one.lost_at is None else one.lost_at) - one.joined_at for one in self.workers.values())
        return self.past_worker_s + there

    @property
    def busy_seconds(self) -> float:
        """How much of that time they had a trial to run."""
        end = self.last_at if self.ended_at is None else self.ended_at
        return sum(
            ((end if one.ended_at is None else one.ended_at) - one.started_at) * len(one.workers)
            for attempts in self.attempts.values()
            for one in attempts
        )

    def _dismiss_workers(self) -> None:
        """Mark the workers of the previous driver as gone, now that a new one has come."""
        end = self.last_at if self.ended_at is None else self.ended_at
        for worker in self.workers.values():
            if worker.lost_at is None:
                worker.lost_at, worker.reason = max(end, worker.joined_at), "its driver had ended"

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact into account.

        Raises:
            StoreError: If the fact speaks of a trial that was never suggested, or a trial is suggested twice.
        """
        if type(fact) is ExperimentResumed:
            self._dismiss_workers()
        self.last_at = fact.at
        if type(fact) is Reported:
            trial = self.trials.get(fact.trial)
            if trial is None:
                raise _unknown_trial(fact.trial, "reported")
            objective = self.objective
            if objective is None:
                objective = self.objective = next(iter(fact.metrics)) if len(fact.metrics) == 1 else ""
            value = fact.metrics.get(objective)
            if value is not None:
                trial.curve.add(fact.step, float(value))
            return
        _HANDLERS[type(fact)](self, fact)

    def _trial(self, fact: Any) -> Trial:
        try:
            return self.trials[fact.trial]
        except KeyError:
            raise _unknown_trial(fact.trial, fact.__struct_config__.tag) from None

    def _move(self, trial: Trial, state: TrialState) -> None:
        self.counts[trial.state] -= 1
        self.counts[state] += 1
        trial.state = state

    def _end_attempt(self, trial: Trial, at: float, how: str) -> None:
        trial.worker = None if not trial.state.is_final else trial.worker
        attempts = self.attempts.get(trial.number)
        if attempts and attempts[-1].ended is None:
            attempts[-1].ended, attempts[-1].ended_at = how, at
            self.busy_workers -= len(attempts[-1].workers)

    def _started(self, fact: ExperimentStarted) -> None:
        raise StoreError(f"Experiment {self.id} is started twice in its journal.")

    def _suggested(self, fact: TrialSuggested) -> None:
        if fact.trial in self.trials:
            raise StoreError(f"Trial {fact.trial} is suggested twice in the journal of {self.id}.")
        self.trials[fact.trial] = Trial(fact.params, number=fact.trial, seed=fact.seed, info=fact.info)
        self.counts[TrialState.PENDING] += 1

    def _resumed(self, fact: TrialResumed) -> None:
        trial = self._trial(fact)
        self._move(trial, TrialState.PENDING)
        if fact.info:
            trial.info = {**trial.info, **fact.info}

    def _attempt_started(self, fact: AttemptStarted) -> None:
        trial = self._trial(fact)
        self._move(trial, TrialState.RUNNING)
        trial.attempts = fact.attempt
        trial.worker = fact.workers[0] if fact.workers else None
        if trial.started_at is None:
            trial.started_at = fact.at
        self.attempts.setdefault(fact.trial, []).append(Attempt(fact.attempt, fact.workers, fact.at))
        self.busy_workers += len(fact.workers)

    def _attempt_lost(self, fact: AttemptLost) -> None:
        trial = self._trial(fact)
        self._move(trial, TrialState.PENDING)
        self._end_attempt(trial, fact.at, fact.reason or "lost")
        self.lost_attempts += 1

    def _paused(self, fact: TrialPaused) -> None:
        trial = self._trial(fact)
        self._move(trial, TrialState.PAUSED)
        self._end_attempt(trial, fact.at, "paused")

    def _ended(self, fact: TrialEnded) -> None:
        trial = self._trial(fact)
        self._move(trial, TrialState(fact.state))
        trial.value = None if fact.value is None else unpack_number(fact.value)
        trial.metrics = unpack_numbers(fact.metrics)
        trial.values = [unpack_returned(value) for value in fact.values]
        trial.error = fact.error
        trial.ended_at = fact.at
        trial.peak_memory_bytes = fact.peak_memory_bytes
        if self.goals.constraints and trial.state is TrialState.COMPLETED:
            trial.violation = self.goals.violation(trial.metrics)
        self._end_attempt(trial, fact.at, fact.state)
        if fact.worker and self.attempts.get(fact.trial):
            self.attempts[fact.trial][-1].failed_worker = fact.worker
        if trial.state is TrialState.COMPLETED and trial.value is not None and self._beats_best(trial, trial.value):
            self.best = trial

    def _beats_best(self, trial: Trial, value: float) -> bool:
        best = self.best
        if trial.violation > 0:
            return False
        if best is None or best.value is None:
            return better(value, float("nan"), self.header.direction)
        return better(value, best.value, self.header.direction) or (value == best.value and trial.number < best.number)

    def _worker_joined(self, fact: WorkerJoined) -> None:
        before = self.workers.get(fact.worker)
        if before is not None:  # names begin anew with each driver
            self.past_worker_s += (fact.at if before.lost_at is None else before.lost_at) - before.joined_at
        self.workers[fact.worker] = WorkerSeen(fact.worker, fact.host, fact.pid, fact.gpus, fact.at, role=fact.role)

    def _worker_lost(self, fact: WorkerLost) -> None:
        worker = self.workers.get(fact.worker)
        if worker is not None:  # one that was given up before it had joined
            worker.lost_at, worker.reason, worker.cause = fact.at, fact.reason, fact.cause

    def _checkpoint_saved(self, fact: CheckpointSaved) -> None:
        self._trial(fact).has_checkpoint = True
        self.checkpoints.setdefault(fact.trial, []).append(fact)

    def _experiment_ended(self, fact: ExperimentEnded) -> None:
        self.state, self.reason, self.ended_at = ExperimentState(fact.state), fact.reason, fact.at

    def _experiment_resumed(self, fact: ExperimentResumed) -> None:
        self.state, self.reason, self.ended_at = ExperimentState.RUNNING, "", None
        self.taken_up_at, self.is_exhausted = fact.at, False
        self.header = self.header.asking(search=replace(self.header.asked.search, num_trials=fact.num_trials))

    def _judged(self, fact: Judged) -> None:
        self._trial(fact)

    def _idled(self, fact: OptimizerIdled) -> None:
        self.is_exhausted = self.is_exhausted or fact.exhausted


_HANDLERS: dict[type[Fact], Callable[[ExperimentRecord, Any], None]] = {
    ExperimentStarted: ExperimentRecord._started,
    WorkerJoined: ExperimentRecord._worker_joined,
    WorkerLost: ExperimentRecord._worker_lost,
    TrialSuggested: ExperimentRecord._suggested,
    TrialResumed: ExperimentRecord._resumed,
    OptimizerIdled: ExperimentRecord._idled,
    AttemptStarted: ExperimentRecord._attempt_started,
    AttemptLost: ExperimentRecord._attempt_lost,
    Judged: ExperimentRecord._judged,
    CheckpointSaved: ExperimentRecord._checkpoint_saved,
    TrialPaused: ExperimentRecord._paused,
    TrialEnded: ExperimentRecord._ended,
    ExperimentEnded: ExperimentRecord._experiment_ended,
    ExperimentResumed: ExperimentRecord._experiment_resumed,
}


def fold(facts: Iterable[AnyFact]) -> ExperimentRecord:
    """Fold facts into a record.

    Raises:
        StoreError: If the facts do not begin with the start of an experiment, or contradict each other.
    """
    source = iter(facts)
    header = next(source, None)
    if not isinstance(header, ExperimentStarted):
        found = "nothing" if header is None else type(header).__name__
        raise StoreError(f"A journal begins with the start of an experiment; this one begins with {found}.")
    record = ExperimentRecord(header)
    for fact in source:
        record.apply(fact)
    return record


def _unknown_trial(trial: int, tag: object) -> StoreError:
    return StoreError(f"A {tag!r} fact speaks of trial {trial}, which was never suggested.")
