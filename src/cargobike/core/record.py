"""An experiment as its facts tell it: the journal folded, in memory, one fact at a time."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

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
    ModelKept,
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
from cargobike.core.repeats import Settings
from cargobike.core.seen import Attempt as Attempt
from cargobike.core.seen import SpaceChanged as SpaceChanged
from cargobike.core.seen import WorkerSeen as WorkerSeen


@dataclass(slots=True)
class ExperimentRecord:
    """Everything that an experiment's facts say, kept up to date by `apply`.

    Attributes:
        header: What was asked for.
        trials: All trials by number, in the order of suggestion; `curve` holds the objective's points. With repeats,
            one for each setting, by the number of its first run, with the mean of its runs.
        runs: What was run, by number: the trials themselves, or, with repeats, every run of theirs.
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
        away_s: Time between an end, or the death of a driver, and the next driver that went on.
        taken_up_at: When the present driver went on with it, `None` if that is the one that began it.
        lost_attempts: How many attempts were lost through no fault of their trial.
        busy_workers: How many workers have an attempt to run.
        is_exhausted: Whether the optimizer has nothing more to try.
        reported_in: The attempt that made the last report of each trial, by its number.
        space_changes: When the space was changed, if it was; `header.space` is the last one.
    """

    header: ExperimentStarted
    trials: dict[int, Trial] = field(default_factory=dict)
    runs: dict[int, Trial] = field(default_factory=dict)
    state: ExperimentState = ExperimentState.RUNNING
    reason: str = ""
    ended_at: float | None = None
    objective: str | None = None
    workers: dict[str, WorkerSeen] = field(default_factory=dict)
    attempts: dict[int, list[Attempt]] = field(default_factory=dict)
    checkpoints: dict[int, list[CheckpointSaved]] = field(default_factory=dict)
    models: dict[int, list[ModelKept]] = field(default_factory=dict)
    counts: dict[TrialState, int] = field(default_factory=dict)
    best: Trial | None = None
    last_at: float = 0.0
    past_worker_s: float = 0.0
    goals: Goals = field(default_factory=Goals)
    away_s: float = 0.0
    taken_up_at: float | None = None
    lost_attempts: int = 0
    busy_workers: int = 0
    is_exhausted: bool = False
    settings: Settings | None = None
    reported_in: dict[int, int] = field(default_factory=dict)
    space_changes: list[SpaceChanged] = field(default_factory=list)
    _steps: dict[int, array[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.objective = self.objective or self.header.metric
        self.goals = Goals(objectives=self.header.objectives, constraints=read_constraints(self.header.constraints))
        self.last_at = max(self.last_at, self.header.at)
        if self.header.repeats > 1:
            self.settings = Settings(self.header.repeats, self.trials)
        else:
            self.runs = self.trials
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
        """Seconds that it was run, to its end, or to the latest fact while there is no end."""
        return (self.last_at if self.ended_at is None else self.ended_at) - self.header.at - self.away_s

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
            self.away_s += max(0.0, fact.at - (self.last_at if self.ended_at is None else self.ended_at))
        self.last_at = fact.at
        if type(fact) is Reported:
            trial = self.runs.get(fact.trial)
            if trial is None:
                raise _unknown_trial(fact.trial, "reported")
            objective = self.objective
            if objective is None:
                objective = self.objective = next(iter(fact.metrics)) if len(fact.metrics) == 1 else ""
            number = fact.number or trial.reports + 1
            if number <= trial.reports:
                trial.curve.rewind(number)
            trial.reports = number
            self.reported_in[fact.trial] = fact.attempt
            value = fact.metrics.get(objective)
            self._count_step(trial, number, fact.step, is_point=value is not None)
            if value is not None:
                trial.curve.add(fact.step, float(value), number)
                if self.settings is not None:
                    self.settings.report(fact.trial, fact.step, float(value))
            return
        _HANDLERS[type(fact)](self, fact)
        if self.settings is not None:
            self._summarize(fact)

    def _count_step(self, trial: Trial, number: int, step: int, *, is_point: bool) -> None:
        """Remember the steps of a trial's reports, unless its curve has them: each report was a point of it."""
        steps = self._steps.get(trial.number)
        if steps is None and not is_point:
            steps = self._steps[trial.number] = array("q", trial.curve.steps)
        if steps is not None:
            del steps[number - 1 :]
            steps.append(step)

    def steps_of(self, trial: int) -> array[int]:
        """Return the step of each report of a trial, in order."""
        steps = self._steps.get(trial)
        return self.runs[trial].curve.steps if steps is None else steps

    def _summarize(self, fact: AnyFact) -> None:
        """Write anew what the settings came to whose runs a fact speaks of; all of them, if it ends or goes on."""
        assert self.settings is not None
        is_over = type(fact) is ExperimentEnded
        if is_over or type(fact) is ExperimentResumed:
            numbers = list(self.trials)
        else:
            numbers = [fact.trial] if hasattr(fact, "trial") else []
        for number in numbers:
            before = self.settings.of(number).state
            trial = self.settings.update(number, is_over=is_over)
            self.counts[before] -= 1
            self.counts[trial.state] += 1
            if trial.state is TrialState.COMPLETED and before is not TrialState.COMPLETED:
                self._count_goals(trial)

    def _count_goals(self, trial: Trial) -> None:
        if self.goals.constraints:
            trial.violation = self.goals.violation(trial.metrics)
        if trial.value is not None and self._beats_best(trial, trial.value):
            self.best = trial

    def _trial(self, fact: Any) -> Trial:
        try:
            return self.runs[fact.trial]
        except KeyError:
            raise _unknown_trial(fact.trial, fact.__struct_config__.tag) from None

    def _move(self, trial: Trial, state: TrialState) -> None:
        if self.settings is None:
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
        if fact.trial in self.runs:
            raise StoreError(f"Trial {fact.trial} is suggested twice in the journal of {self.id}.")
        run = self.runs[fact.trial] = Trial(fact.params, number=fact.trial, seed=fact.seed, info=fact.info)
        if self.settings is not None:
            if fact.repeat_of is not None and fact.repeat_of not in self.trials:
                raise _unknown_trial(fact.repeat_of, "trial-suggested")
            self.settings.add(run, fact.repeat_of)
        if fact.repeat_of is None or self.settings is None:
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
        if fact.interrupted:
            self._move(trial, TrialState.STOPPED)
            self._end_attempt(trial, fact.at, "stopped")
            trial.is_interrupted, trial.error, trial.ended_at = True, fact.reason or None, fact.at
            return
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
        trial.extras = fact.extras
        trial.error = fact.error
        trial.ended_at = fact.at
        trial.peak_memory_bytes = fact.peak_memory_bytes
        if self.settings is not None and self.goals.constraints and trial.state is TrialState.COMPLETED:
            trial.violation = self.goals.violation(trial.metrics)
        self._end_attempt(trial, fact.at, fact.state)
        if fact.worker and self.attempts.get(fact.trial):
            self.attempts[fact.trial][-1].failed_worker = fact.worker
        if self.settings is None and trial.state is TrialState.COMPLETED:
            self._count_goals(trial)

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

    def _model_kept(self, fact: ModelKept) -> None:
        self._trial(fact)
        self.models.setdefault(fact.trial, []).append(fact)

    @property
    def normal_ending(self) -> tuple[Literal["completed", "failed"], str]:
        """How an experiment ends by itself, and why: if every trial has failed, so has the experiment."""
        total = sum(self.counts.values())  # of which an index that reads on holds only some
        if not total or self.counts[TrialState.FAILED] < total:
            return "completed", ""
        first = self.trials[min(self.trials)].error or "no reason was given"
        what = (
            "its only run failed:" if self.header.asked.is_single else f"all {total} trials failed, the first one with:"
        )
        return "failed", f"{what}\n{first}"

    def _experiment_ended(self, fact: ExperimentEnded) -> None:
        state, reason = fact.state, fact.reason
        if state == "completed":  # older journals say so even if all trials have failed
            state, failure = self.normal_ending
            reason = failure or reason
        self.state, self.reason, self.ended_at = ExperimentState(state), reason, fact.at

    def _experiment_resumed(self, fact: ExperimentResumed) -> None:
        self.state, self.reason, self.ended_at = ExperimentState.RUNNING, "", None
        self.taken_up_at, self.is_exhausted = fact.at, False
        for trial in self.runs.values():
            if trial.is_interrupted:
                self._move(trial, TrialState.PENDING)
                trial.is_interrupted, trial.error, trial.ended_at = False, None, None
        search = replace(self.header.asked.search, num_trials=fact.num_trials)
        if fact.space is not None:
            total = sum(self.counts.values())  # of which an index that reads on holds only some
            changed = SpaceChanged(fact.at, total, fact.space, search.space or [], fact.defaults)
            self.space_changes.append(changed)
            search = replace(search, space=fact.space)
        self.header = self.header.asking(search=search)

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
    ModelKept: ExperimentRecord._model_kept,
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
    header = next(source := iter(facts), None)
    if not isinstance(header, ExperimentStarted):
        found = "nothing" if header is None else type(header).__name__
        raise StoreError(f"A journal begins with the start of an experiment; this one begins with {found}.")
    record = ExperimentRecord(header)
    for fact in source:
        record.apply(fact)
    return record


def _unknown_trial(trial: int, tag: object) -> StoreError:
    return StoreError(f"A {tag!r} fact speaks of trial {trial}, which was never suggested.")
