"""The scheduler: events in, commands out, no clock, no socket, no file.

It keeps four promises, each a property test: no trial is lost or run twice at a time; no gang of free workers idles
while there is work; a gang starts all or none; every order of joins, losses, reports and ends leads to `Finish`.
The cost of an event does not depend on the number of workers or trials.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from cargobike.core import facts
from cargobike.core.ids import derived_seed
from cargobike.core.records import IDLE, Decision, Milestones, Suggestion
from cargobike.driver.events import (
    Answer,
    Ask,
    AttemptEnded,
    CheckpointWritten,
    Command,
    DecisionMade,
    Event,
    Finish,
    Judge,
    PointsReported,
    Record,
    ReleaseWorker,
    Run,
    StartWorker,
    StopAttempt,
    StopRequested,
    SuggestionMade,
    Tick,
    WorkerArrived,
    WorkerGone,
)
from cargobike.driver.plan import Plan
from cargobike.store.fold import ExperimentRecord

EndState = Literal["completed", "interrupted", "failed"]


@dataclass(slots=True)
class _Attempt:
    """A trial that runs: who works on it, and how it is going to end."""

    trial: int
    number: int
    workers: tuple[str, ...]
    open: set[str]
    verdict: tuple[Literal["stopped", "paused", "failed"], str] | None = None
    ends: dict[str, AttemptEnded] = field(default_factory=dict)
    lost: str | None = None


class Scheduler:
    """Decides who runs what, when to ask, and when it is over.

    State that outlives the process is in `record`, which is nothing but the facts folded: what this class keeps for
    itself are queues and counters that follow from them.
    """

    def __init__(self, plan: Plan, record: ExperimentRecord) -> None:
        self.plan = plan
        self.record = record
        self._trials = record.trials
        self._out: list[Command] = []
        self._ready: deque[int] = deque()
        self._idle: dict[str, None] = {}
        self._busy: dict[str, int] = {}
        self._starting: dict[str, None] = {}
        self._attempts: dict[int, _Attempt] = {}
        self._paused: set[int] = set()
        self._deadlines: list[tuple[float, int, int]] = []
        self._milestones: dict[int, Milestones] = {}
        self._copies: dict[int, int] = {}
        self._untold: deque[int] = deque()
        self._ended: set[int] = set()
        self._told = 0
        self._cursor = 0
        self._suggested = len(self._trials)
        self._next_worker = 0
        self._asking = False
        self._resting = False
        self._exhausted = False
        self._after: int | None = None
        self._losses_in_row = 0
        self._failures = 0
        self._alike: str | None = None
        self._anything_went_well = False
        self._ending: tuple[EndState, str] | None = None
        self._finished = False
        self._stop_at: float | None = None
        self._handlers = {
            WorkerArrived: self._worker_arrived,
            WorkerGone: self._worker_gone,
            SuggestionMade: self._suggestion_made,
            PointsReported: self._points_reported,
            DecisionMade: self._decision_made,
            CheckpointWritten: self._checkpoint_written,
            AttemptEnded: self._attempt_ended,
            Tick: self._tick,
            StopRequested: self._stop_requested,
        }

    # -- the door ------------------------------------------------------------------------------------------------

    def begin(self, at: float) -> list[Command]:
        """Return the first commands: the workers to start and the first question to the optimizer."""
        if self.plan.timeout_s is not None:
            self._stop_at = at + self.plan.timeout_s
        self._advance(at)
        return self._take()

    def handle(self, event: Event) -> list[Command]:
        """Take one event and return what is to be done; facts to record come in the order in which they hold."""
        if self._finished:
            return []
        self._handlers[type(event)](event)  # type: ignore[operator]
        if not (type(event) is PointsReported or type(event) is CheckpointWritten):
            self._advance(event.at)
        return self._take()

    @property
    def finished(self) -> bool:
        """Whether `Finish` has been sent."""
        return self._finished

    @property
    def next_deadline(self) -> float | None:
        """When the next `Tick` is due at the latest, in the driver's time."""
        while self._deadlines:
            deadline, trial, number = self._deadlines[0]
            attempt = self._attempts.get(trial)
            if attempt is not None and attempt.number == number and attempt.verdict is None:
                return deadline if self._stop_at is None else min(deadline, self._stop_at)
            heapq.heappop(self._deadlines)
        return self._stop_at

    def milestones(self, trial: int) -> Milestones:
        """Return the steps at which a report of this trial waits for a decision."""
        return "every" if self.plan.every_report_is_milestone else self._milestones.get(trial, ())

    def start_from(self, trial: int) -> int | None:
        """Return the trial whose checkpoint this one begins with, if its optimizer wants that."""
        return self._copies.get(trial)

    # -- workers -------------------------------------------------------------------------------------------------

    def _worker_arrived(self, event: WorkerArrived) -> None:
        if event.worker not in self._starting:
            return  # repeated, or given up in the meantime
        del self._starting[event.worker]
        self._idle[event.worker] = None
        self._record(
            facts.WorkerJoined(
                at=event.at, worker=event.worker, host=event.host, pid=event.pid, gpus=event.gpus
            )
        )

    def _worker_gone(self, event: WorkerGone) -> None:
        worker = event.worker
        if worker in self._starting:
            del self._starting[worker]
        elif worker in self._idle:
            del self._idle[worker]
        elif worker not in self._busy:
            return
        self._record(facts.WorkerLost(at=event.at, worker=worker, reason=event.reason))
        self._losses_in_row += 1
        trial = self._busy.pop(worker, None)
        if trial is not None:
            attempt = self._attempts[trial]
            attempt.open.discard(worker)
            if worker not in attempt.ends:
                attempt.lost = attempt.lost or f"worker {worker} was lost: {event.reason}"
                self._end_the_others(attempt)
            self._conclude_if_over(attempt, event.at)
        if self._losses_in_row > self.plan.max_worker_losses and self._ending is None:
            self._end(
                "failed",
                f"{self._losses_in_row} workers were lost in a row, the last one: {event.reason}",
                event.at,
            )

    def _free(self, worker: str) -> None:
        self._busy.pop(worker, None)
        self._idle[worker] = None

    # -- suggestions ---------------------------------------------------------------------------------------------

    def _suggestion_made(self, event: SuggestionMade) -> None:
        self._asking = False
        suggestion = event.suggestion
        if suggestion is None or suggestion == IDLE:
            self._record(
                facts.OptimizerIdled(
                    at=event.at, told=event.told, after=event.after, exhausted=suggestion is None
                )
            )
            self._exhausted = suggestion is None
            self._resting = True
            return
        assert isinstance(suggestion, Suggestion)
        if suggestion.resume is not None:
            self._resume(suggestion, event)
        elif self._has_enough:
            # An optimizer that does not count may offer more than was asked for.
            self._resting = True
        elif self._ending is None:
            self._accept(suggestion, event)

    def _accept(self, suggestion: Suggestion, event: SuggestionMade) -> None:
        number = self._suggested
        self._suggested += 1
        if suggestion.milestones:
            self._milestones[number] = suggestion.milestones
        if suggestion.copy_checkpoint_of is not None:
            self._copies[number] = suggestion.copy_checkpoint_of
        self._record(
            facts.TrialSuggested(
                at=event.at,
                trial=number,
                params=suggestion.params,
                seed=derived_seed(self.plan.seed, "trial", number),
                told=event.told,
                after=event.after,
                milestones=suggestion.milestones,
                copy_checkpoint_of=suggestion.copy_checkpoint_of,
                info=suggestion.info,
            )
        )
        self._ready.append(number)

    def _resume(self, suggestion: Suggestion, event: SuggestionMade) -> None:
        number = suggestion.resume
        if number is None or number not in self._paused or self._ending is not None:
            self._resting = True
            return
        self._paused.discard(number)
        if suggestion.milestones:
            self._milestones[number] = suggestion.milestones
        self._record(
            facts.TrialResumed(
                at=event.at,
                trial=number,
                told=event.told,
                after=event.after,
                milestones=suggestion.milestones,
                info=suggestion.info,
            )
        )
        self._ready.append(number)

    @property
    def _has_enough(self) -> bool:
        return self.plan.num_trials is not None and self._suggested >= self.plan.num_trials

    @property
    def _may_ask(self) -> bool:
        if self._asking or self._resting or self._exhausted or self._ending is not None:
            return False
        if self._has_enough and not self._paused:
            return False
        if not self.plan.deterministic:
            return True
        return self._told_due <= self._first_unended or not (self._attempts or self._ready)

    @property
    def _told_due(self) -> int:
        """In a deterministic search: how many trials, by number, the next question must come after."""
        return max(0, self._suggested - self.plan.horizon + 1)

    @property
    def _first_unended(self) -> int:
        while self._cursor in self._ended:
            self._ended.discard(self._cursor)
            self._cursor += 1
        return self._cursor

    def _ask(self) -> None:
        if self.plan.deterministic:
            tell = tuple(range(self._told, self._told_due))
            after = tell[-1] if tell else None
        else:
            tell = tuple(self._untold)
            self._untold.clear()
            after = self._after
        self._told += len(tell)
        self._after = None
        self._asking = True
        self._out.append(Ask(tell, after))

    # -- running trials ------------------------------------------------------------------------------------------

    def _start_attempt(self, trial: int, at: float) -> None:
        workers = tuple(self._idle)[: self.plan.gang] if self.plan.gang > 1 else (next(iter(self._idle)),)
        for worker in workers:
            del self._idle[worker]
            self._busy[worker] = trial
        number = self._trials[trial].attempts + 1
        self._attempts[trial] = _Attempt(trial, number, workers, set(workers))
        self._record(facts.AttemptStarted(at=at, trial=trial, attempt=number, workers=workers))
        if self.plan.trial_timeout_s is not None:
            heapq.heappush(self._deadlines, (at + self.plan.trial_timeout_s, trial, number))
        self._out.append(Run(trial, number, workers))

    def _current(self, trial: int, attempt: int) -> _Attempt | None:
        """Return the running attempt if that is the one meant; late and repeated messages mean others."""
        running = self._attempts.get(trial)
        return running if running is not None and running.number == attempt else None

    def _points_reported(self, event: PointsReported) -> None:
        attempt = self._current(event.trial, event.attempt)
        if attempt is None:
            return
        if event.worker == attempt.workers[0]:
            self._record(
                facts.Reported(
                    at=event.at,
                    trial=event.trial,
                    step=event.step,
                    metrics=facts.pack_numbers(event.metrics),
                    attempt=event.attempt,
                )
            )
        if not event.waits:
            return
        if attempt.verdict is not None:
            decision = Decision.PAUSE if attempt.verdict[0] == "paused" else Decision.STOP
            self._out.append(Answer(event.worker, event.trial, event.attempt, event.step, decision))
        else:
            horizon = event.trial - self.plan.horizon + 1 if self.plan.deterministic else None
            self._out.append(Judge(event.trial, event.attempt, event.step, horizon))

    def _decision_made(self, event: DecisionMade) -> None:
        attempt = self._current(event.trial, event.attempt)
        if attempt is None:
            return
        decision = event.decision
        if attempt.verdict is not None:
            decision = Decision.PAUSE if attempt.verdict[0] == "paused" else Decision.STOP
        elif decision is Decision.STOP:
            attempt.verdict = ("stopped", event.by)
        elif decision is Decision.PAUSE:
            attempt.verdict = ("paused", event.by)
        self._record(
            facts.Judged(
                at=event.at,
                trial=event.trial,
                step=event.step,
                decision=decision.value,
                by=event.by,
                told=event.told,
            )
        )
        for worker in attempt.workers:
            if worker in attempt.open:
                self._out.append(Answer(worker, event.trial, event.attempt, event.step, decision))

    def _checkpoint_written(self, event: CheckpointWritten) -> None:
        if self._current(event.trial, event.attempt) is not None:
            self._record(
                facts.CheckpointSaved(
                    at=event.at,
                    trial=event.trial,
                    step=event.step,
                    path=event.path,
                    attempt=event.attempt,
                    size_bytes=event.size_bytes,
                )
            )

    def _attempt_ended(self, event: AttemptEnded) -> None:
        attempt = self._current(event.trial, event.attempt)
        if attempt is None or event.worker not in attempt.open:
            return
        attempt.open.discard(event.worker)
        attempt.ends[event.worker] = event
        self._free(event.worker)
        self._losses_in_row = 0
        if event.outcome in ("failed", "lost"):
            self._end_the_others(attempt)
        self._conclude_if_over(attempt, event.at)

    def _end_the_others(self, attempt: _Attempt) -> None:
        for worker in attempt.workers:
            if worker in attempt.open:
                self._out.append(StopAttempt(worker, attempt.trial, attempt.number, kill=True))

    def _conclude_if_over(self, attempt: _Attempt, at: float) -> None:
        if attempt.open:
            return
        del self._attempts[attempt.trial]
        first = attempt.ends.get(attempt.workers[0])
        failed = next((end for end in attempt.ends.values() if end.outcome == "failed"), None)
        if attempt.lost is None and first is not None and first.outcome == "completed" and failed is None:
            self._conclude(first, "completed", None, at)
        elif attempt.verdict is not None:
            state, why = attempt.verdict
            if state == "paused":
                self._pause(attempt.trial, at)
            else:
                self._conclude(first, state, why or None, at, trial=attempt.trial)
        elif failed is not None:
            self._conclude(failed, "failed", failed.error, at)
        elif first is not None and first.outcome == "stopped":
            self._conclude(first, "stopped", first.error, at)
        else:
            self._attempt_was_lost(attempt, at)

    def _conclude(
        self,
        end: AttemptEnded | None,
        state: Literal["completed", "stopped", "failed"],
        error: str | None,
        at: float,
        trial: int | None = None,
    ) -> None:
        number = end.trial if end is not None else trial
        assert number is not None
        completed = state == "completed" and end is not None
        value = end.value if completed and end is not None else None
        self._record(
            facts.TrialEnded(
                at=at,
                trial=number,
                state=state,
                value=None if value is None else facts.pack_number(value),
                metrics=facts.pack_numbers(end.metrics) if completed and end is not None else {},
                error=error,
                peak_memory_bytes=end.peak_memory_bytes if end is not None else None,
            )
        )
        self._milestones.pop(number, None)
        self._show(number)
        self._ended.add(number)
        if state == "failed":
            self._count_failure(end.alike if end is not None else "", error or "", at)
        else:
            self._anything_went_well = True

    def _pause(self, trial: int, at: float) -> None:
        curve = self._trials[trial].curve
        self._record(facts.TrialPaused(at=at, trial=trial, step=curve.steps[-1] if len(curve) else 0))
        self._paused.add(trial)
        self._anything_went_well = True
        self._show(trial)

    def _show(self, trial: int) -> None:
        """Put a trial on the list of what the optimizer will be shown before the next question."""
        if not self.plan.deterministic:
            self._untold.append(trial)
        self._after = trial
        self._resting = False

    def _attempt_was_lost(self, attempt: _Attempt, at: float) -> None:
        first = attempt.ends.get(attempt.workers[0])
        reason = attempt.lost or (first.error if first is not None else None) or "the attempt was lost"
        if attempt.number >= self.plan.max_attempts:
            self._conclude(
                first,
                "failed",
                f"gave up after {attempt.number} attempts; the last one: {reason}",
                at,
                trial=attempt.trial,
            )
            return
        self._record(
            facts.AttemptLost(at=at, trial=attempt.trial, attempt=attempt.number, reason=reason)
        )
        self._ready.appendleft(attempt.trial)

    # -- ends ----------------------------------------------------------------------------------------------------

    def _count_failure(self, alike: str, error: str, at: float) -> None:
        self._failures += 1
        if self._ending is not None:
            return
        limit = self.plan.max_failures
        if limit is not None and self._failures > limit:
            self._end("failed", f"{self._failures} trials failed, max_failures={limit} allowed:\n{error}", at)
        elif not self._anything_went_well and self.plan.fail_fast:
            same = self._failures == 1 or alike == self._alike
            self._alike = alike if same else None
            if not same:
                self._anything_went_well = True  # they fail in different ways: no reason to stop at once
            elif self._failures >= self.plan.fail_fast:
                self._end("failed", f"the first {self._failures} trials all failed alike:\n{error}", at)

    def _tick(self, event: Tick) -> None:
        if self._stop_at is not None and event.at >= self._stop_at:
            self._stop_at = None
            self._end("completed", f"time budget of {self.plan.timeout_s:g} s used up", event.at)
        while self._deadlines and self._deadlines[0][0] <= event.at:
            _, trial, number = heapq.heappop(self._deadlines)
            attempt = self._current(trial, number)
            if attempt is not None and attempt.verdict is None:
                limit = self.plan.trial_timeout_s
                attempt.verdict = ("failed", f"ran longer than trial_timeout_s={limit:g} and was ended")
                self._end_the_others(attempt)

    def _stop_requested(self, event: StopRequested) -> None:
        self._end(event.state, event.reason, event.at)

    def _end(self, state: EndState, reason: str, at: float) -> None:
        if self._ending is not None:
            return
        self._ending = (state, reason)
        self._ready.clear()
        for attempt in self._attempts.values():
            if attempt.verdict is None:
                why = reason.splitlines()[0].rstrip(":")
                attempt.verdict = ("stopped", why)
                for worker in attempt.workers:
                    if worker in attempt.open:
                        self._out.append(StopAttempt(worker, attempt.trial, attempt.number))

    # -- moving on -----------------------------------------------------------------------------------------------

    def _advance(self, at: float) -> None:
        gang = self.plan.gang
        while self._ready and len(self._idle) >= gang:
            self._start_attempt(self._ready.popleft(), at)
        self._staff()
        if self._may_ask and len(self._ready) < len(self._idle) // gang + self.plan.ask_ahead:
            self._ask()
        if self._is_over:
            self._finish(at)
        elif self._no_more_to_come and not self._ready and self._idle:
            for worker in tuple(self._idle):
                self._release(worker)

    def _staff(self) -> None:
        """Start workers up to what the remaining work can use."""
        if self._ending is not None:
            return
        wanted = self.plan.workers
        if self._no_more_to_come:
            wanted = min(wanted, (len(self._attempts) + len(self._ready)) * self.plan.gang)
        elif self.plan.num_trials is not None:
            open_trials = self.plan.num_trials - self._suggested + len(self._ready) + len(self._attempts)
            wanted = min(wanted, max(1, open_trials + len(self._paused)) * self.plan.gang)
        for _ in range(wanted - len(self._idle) - len(self._busy) - len(self._starting)):
            name = f"w{self._next_worker}"
            self._next_worker += 1
            self._starting[name] = None
            self._out.append(StartWorker(name))

    @property
    def _no_more_to_come(self) -> bool:
        """Whether nothing but what is ready or running, and repeats of it, will ever run."""
        if self._asking:
            return False
        return (
            self._ending is not None
            or self._exhausted
            or (self._has_enough and not self._paused and not self._attempts)
            or (self._has_enough and not self._paused and not self._may_pause)
        )

    @property
    def _may_pause(self) -> bool:
        return self.plan.every_report_is_milestone or bool(self._milestones)

    @property
    def _is_over(self) -> bool:
        if self._attempts or self._ready or self._asking:
            return False
        if self._ending is not None or self._exhausted:
            return True
        if self._resting:
            return True  # the optimizer waits for something to happen, and nothing can happen any more
        return self._has_enough and not self._paused

    def _finish(self, at: float) -> None:
        state, reason = self._ending or ("completed", "")
        for trial in sorted(self._paused):
            self._record(
                facts.TrialEnded(at=at, trial=trial, state="stopped", error="was not resumed before the end")
            )
        self._paused.clear()
        self._record(facts.ExperimentEnded(at=at, state=state, reason=reason))
        for worker in (*self._idle, *self._starting):
            self._release(worker)
        self._finished = True
        self._out.append(Finish(state, reason))

    def _release(self, worker: str) -> None:
        self._idle.pop(worker, None)
        self._starting.pop(worker, None)
        self._out.append(ReleaseWorker(worker))

    # -- output --------------------------------------------------------------------------------------------------

    def _record(self, fact: facts.AnyFact) -> None:
        self.record.apply(fact)
        self._out.append(Record(fact))

    def _take(self) -> list[Command]:
        out = self._out
        self._out = []
        return out
