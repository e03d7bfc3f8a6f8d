"""The scheduler: events in, commands out, no clock, no socket, no file.

Its promises, each a property test: no trial is lost or run twice at a time; no gang of free workers idles while a trial
is ready; a gang starts all or none; every order of joins, losses, reports and ends leads to `Finish`. Then every trial
that was ever started is in a final state; if the experiment was ended early, one that was never started stays pending,
and one that was paused stays paused. The cost of an event does not depend on the number of workers or trials.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

from cargobike.core import facts
from cargobike.core.ids import derived_seed
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Milestones, Params, Suggestion, TrialState
from cargobike.core.running.ending import EndKind
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.ahead import Ahead
from cargobike.experiments.scheduling.attempt import Attempt, LiveTrial
from cargobike.experiments.scheduling.conclusion import Conclusion, conclude
from cargobike.experiments.scheduling.failures import EndWatch
from cargobike.experiments.scheduling.gangs import Gangs
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.scheduling.replay import Replay
from cargobike.experiments.scheduling.running import Running
from cargobike.experiments.scheduling.showing import AsSuggested, AsTheyEnd, Showing

NewSpace = tuple[list[dict[str, Any]], Params]
EndState = Literal["completed", "interrupted", "failed"]
_ABOUT_A_TRIAL = (ev.PointsReported, ev.CheckpointWritten, ev.ModelPacked, ev.AttemptEnded)
_FREE_NO_WORKER = frozenset({ev.PointsReported, ev.CheckpointWritten, ev.ModelPacked, ev.RankActive, ev.RankQuiet})


class Scheduler:
    """Decides which workers run which trial, when to ask the optimizer, and when the experiment is over.

    State that outlives the process is in `record`, which is nothing but the facts folded: the queues and counters of
    this class follow from them.
    """

    def __init__(self, plan: Plan, record: ExperimentRecord) -> None:
        self.plan = plan
        self.record = record
        self._trials = record.runs
        self._out = ev.Outbox(record)
        self._gangs = Gangs(plan, self._out)
        self._roster = self._gangs.roster
        self._ahead = Ahead(plan.ahead)
        self._suspects: set[int] = set()
        self._live: dict[int, LiveTrial] = {}
        self._ready: deque[int] = deque()
        self._running = Running(self._out, self._trials, plan.trial_timeout_s, plan.stall_timeout_s)
        self._paused: set[int] = set()
        self._resumable: set[int] = set()
        self._showing: Showing = AsSuggested(plan.horizon) if plan.deterministic else AsTheyEnd()
        self._suggested = len(self._trials)
        self._is_asking = False
        self._is_exhausted = False
        self._has_milestones = plan.every_report_is_milestone
        self._watch = EndWatch(plan, record)
        self._causes: dict[int, str] = {}
        self._stop_at: float | None = None
        self._ending: tuple[EndState, str] | None = None
        self._finished = False
        self._handlers = ev.table(
            ev.entry(ev.WorkerArrived, self._worker_arrived),
            ev.entry(ev.WorkerGone, self._worker_gone),
            ev.entry(ev.SuggestionMade, self._suggestion_made),
            ev.entry(ev.PointsReported, self._running.points_reported),
            ev.entry(ev.DecisionMade, self._decision_made),
            ev.entry(ev.CheckpointWritten, self._checkpoint_written),
            ev.entry(ev.ModelPacked, self._running.model_packed),
            ev.entry(ev.RankActive, self._running.rank_active),
            ev.entry(ev.RankQuiet, self._running.rank_quiet),
            ev.entry(ev.AttemptEnded, self._attempt_ended),
            ev.entry(ev.TrialsReturned, self._trials_returned),
            ev.entry(ev.Tick, self._tick),
            ev.entry(ev.StopRequested, lambda event: self._end(event.state, event.reason, event.at)),
        )

    # -- the door ------------------------------------------------------------------------------------------------

    def begin(self, at: float) -> list[ev.Command]:
        """Return the first commands: the workers to start and the first question to the optimizer."""
        if self.plan.timeout_s is not None:
            self._stop_at = at + self.plan.timeout_s
        self._advance(at)
        return self._out.take()

    def take_up(self, past: Replay, at: float, changed: NewSpace | None = None) -> None:
        """Go on where a journal ended: trials that ran run again, trials that waited wait. Call it before `begin`.

        With `changed` it goes on in another space: described, and what trials had for parameters that are new in it.
        """
        space, defaults = changed or (None, {})
        fact = facts.ExperimentResumed(at=at, num_trials=self.plan.num_trials, space=space, defaults=defaults)
        self._out.fact(fact)
        self._gangs.skip_names(self.record.workers)
        self._showing = past.showing
        self._live = past.live()
        self._has_milestones = self._has_milestones or any(live.milestones for live in self._live.values())
        for number, trial in self._trials.items():
            if trial.state.is_final:
                self._watch.look_at(number, "")
            elif trial.state is TrialState.PAUSED:
                self._paused.add(number)
            elif trial.state is TrialState.RUNNING:
                self._take_up_running(number, trial.attempts, at)
            else:
                self._ready.append(number)
        self._resumable = self._paused.difference(self._showing.unshown)

    def _take_up_running(self, trial: int, attempt: int, at: float) -> None:
        """Carry out what was decided about a trial, or run it again if nothing was."""
        verdict = self._live[trial].verdict
        if verdict is None:
            self._out.fact(facts.AttemptLost(at=at, trial=trial, attempt=attempt, reason="its driver was lost"))
            self._ready.append(trial)
        elif verdict[0] == "pause":
            self._pause(trial, at)
        else:
            self._conclude(trial, Conclusion("stopped", None, verdict[1] or None), at)

    def handle(self, event: ev.Event) -> list[ev.Command]:
        """Handle one event and return the commands to carry out; facts come in the order in which they happened."""
        if self._finished:
            return []
        kind = type(event)
        if self._ending is not None and self._ahead and isinstance(event, _ABOUT_A_TRIAL):
            self._note_begun(event)
        self._handlers[kind](event)
        if kind not in _FREE_NO_WORKER:
            self._advance(event.at)
        return self._out.take()

    @property
    def finished(self) -> bool:
        """Whether `Finish` has been sent."""
        return self._finished

    @property
    def is_ending(self) -> bool:
        """Whether no trial will be started any more, because of a stop, a budget or too many failures."""
        return self._ending is not None

    @property
    def next_deadline(self) -> float | None:
        """When the next `Tick` is due at the latest, in the driver's time."""
        deadlines = (self._running.next_deadline, self._stop_at, self._gangs.next_deadline)
        return min([deadline for deadline in deadlines if deadline is not None], default=None)

    def milestones(self, trial: int) -> Milestones:
        """Return the steps at which this trial still has to wait for a decision; there is only one for each step."""
        if self.plan.every_report_is_milestone:
            return "every"
        live = self._live.get(trial)
        return live.milestones_ahead if live is not None else ()

    def start_from(self, trial: int) -> int | None:
        """Return the trial whose checkpoint this one begins with, if its optimizer wants that."""
        live = self._live.get(trial)
        return live.copy_of if live is not None else None

    # -- suggestions ---------------------------------------------------------------------------------------------

    def _suggestion_made(self, event: ev.SuggestionMade) -> None:
        if not self._is_asking or self._ending is not None:
            return
        self._is_asking = False
        suggestion = event.suggestion
        is_new = isinstance(suggestion, Suggestion) and suggestion.resume is None and suggestion.repeat_of is None
        # An optimizer that does not count may suggest more than was asked for: that is treated as no suggestion.
        if not isinstance(suggestion, Suggestion) or (is_new and self._has_enough):
            self._is_exhausted = suggestion is None
            self._showing.rest()
            self._out.fact(
                facts.OptimizerIdled(at=event.at, told=event.told, after=event.after, exhausted=self._is_exhausted)
            )
            return
        if suggestion.resume is not None:
            self._resume(suggestion.resume, suggestion, event)
        else:
            self._accept(suggestion, event)

    def _accept(self, suggestion: Suggestion, event: ev.SuggestionMade) -> None:
        number = self._suggested
        self._suggested += 1
        self._live[number] = LiveTrial(suggestion.milestones, suggestion.copy_checkpoint_of, event.told)
        self._out.fact(
            facts.TrialSuggested(
                at=event.at,
                trial=number,
                params=suggestion.params,
                seed=derived_seed(self.plan.seed, "trial", number) if suggestion.seed is None else suggestion.seed,
                told=event.told,
                after=event.after,
                milestones=suggestion.milestones,
                copy_checkpoint_of=suggestion.copy_checkpoint_of,
                info=suggestion.info,
                repeat_of=suggestion.repeat_of,
            )
        )
        self._begin_job(number)

    def _resume(self, number: int, suggestion: Suggestion, event: ev.SuggestionMade) -> None:
        if number not in self._resumable:
            state = f"is {self._trials[number].state}" if number in self._trials else "does not exist"
            what = f"the optimizer wants to resume trial {number}, which {state}"
            self._end("failed", f"{what}; only a trial that it was shown as paused can be resumed", event.at)
            return
        self._resumable.remove(number)
        self._paused.remove(number)
        live = self._live[number]
        live.milestones = suggestion.milestones or live.milestones
        live.told = event.told
        self._out.fact(
            facts.TrialResumed(
                at=event.at,
                trial=number,
                told=event.told,
                after=event.after,
                milestones=suggestion.milestones,
                info=suggestion.info,
            )
        )
        self._begin_job(number)

    def _begin_job(self, trial: int) -> None:
        self._has_milestones = self._has_milestones or bool(self._live[trial].milestones)
        self._showing.began(trial)
        self._ready.append(trial)

    @property
    def _has_enough(self) -> bool:
        return self.plan.num_trials is not None and len(self.record.trials) >= self.plan.num_trials

    @property
    def _may_ask(self) -> bool:
        if self._is_asking or self._is_exhausted or self._ending is not None:
            return False
        if self._has_enough and not self._paused and not self._owes_repeats:
            return False
        return self._showing.may_ask

    @property
    def _owes_repeats(self) -> bool:
        return self.record.settings is not None and self.record.settings.owes_runs

    def _ask(self) -> None:
        tell = self._showing.take()
        self._resumable.update(self._paused.intersection(tell))
        self._is_asking = True
        self._out.command(ev.Ask(tell, tell[-1] if tell else None))

    # -- trials --------------------------------------------------------------------------------------------------

    def _start(self, trial: int, size: int, at: float) -> None:
        horizon = self._live[trial].told if self.plan.deterministic else None
        attempt = self._gangs.form(trial, self._trials[trial].attempts + 1, size, horizon)
        self._running.start(attempt, at)
        self._ahead.began(attempt.workers[0], at)

    def _checkpoint_written(self, event: ev.CheckpointWritten) -> None:
        self._running.checkpoint_written(event)
        self._gangs.enlarge(self._running)

    def _decision_made(self, event: ev.DecisionMade) -> None:
        if self._running.decision_made(event):
            self._live[event.trial].judged_step = event.step
        if self._paused and self._roster.idle >= self.plan.gang:
            self._showing.wake()  # the optimizer may have waited for this report before it resumes a paused trial

    def _attempt_ended(self, event: ev.AttemptEnded) -> None:
        attempt = self._running.ended(event)
        if attempt is None:
            return
        worker = event.worker
        self._ahead.ended(worker, event.at, event.took_s)
        if self._ahead.next_of(worker) is None:
            self._gangs.roster_of(worker).give_back(worker)
        else:
            self._roster.pass_to(worker, None)
        self._settle(attempt, event.at)
        if self._ending is None and self._ahead.next_of(worker) is not None:
            self._go_on(worker, event.at)

    def _worker_gone(self, event: ev.WorkerGone) -> None:
        roster = self._gangs.roster_of(event.worker)
        trial = roster.gone(event)
        held = self._ahead.gone(event.worker)
        self._suspects.update(held)  # one of them may have been begun, and be the cause
        self._take_back(held)
        if trial is not None:
            self._settle(self._running.lost(trial, event.worker, event.ending), event.at)
        if event.ending.kind is EndKind.HOPELESS and not roster.has_had_workers:
            self._end("failed", f"no worker can be started: {event.ending}", event.at)
        elif roster.loses_too_many and not (self._gangs.is_elastic and self._running):
            why = f"{roster.losses_in_row} workers were lost in a row, the last one: {event.ending}"
            self._end("failed", why, event.at)

    # -- trials given ahead ----------------------------------------------------------------------------------------

    def _worker_arrived(self, event: ev.WorkerArrived) -> None:
        self._gangs.arrived(event)
        if event.holds and event.worker in self._roster:
            self._ahead.joined(event.worker)

    def _give_ahead(self) -> None:
        """Give trials to workers that will need one before long; one that a worker was lost with waits for a free one.

        If it is to blame, that shows only when it is known to run.
        """
        while self._ready and not self._has_milestones:
            worker, first = self._ahead.roomy, self._ready[0]
            if worker is None or self._live[first].copy_of is not None:
                return
            if self._trials[first].attempts or first in self._suspects:
                return
            if not self._roster.is_busy(worker):
                self._ahead.is_full(worker)  # it has left, or is about to
                continue
            trial = self._ready.popleft()
            self._ahead.put(worker, trial)
            self._out.command(ev.Run(trial, 1, (worker,), ahead=True))

    def _go_on(self, worker: str, at: float) -> None:
        """Note that a worker has begun the next of the trials that it was given ahead."""
        trial = self._ahead.pop(worker)
        self._roster.pass_to(worker, trial)
        self._running.start(Attempt(trial, 1, (worker,)), at, was_given_ahead=True)

    def _note_begun(self, event: ev.PointsReported | ev.CheckpointWritten | ev.ModelPacked | ev.AttemptEnded) -> None:
        """Note that a worker which was asked to return its trials has begun one of them nevertheless."""
        waits = self._roster.is_between(event.worker)
        if waits and event.attempt == 1 and self._ahead.next_of(event.worker) == event.trial:
            self._go_on(event.worker, event.at)
            if not isinstance(event, ev.AttemptEnded):
                self._end_running()

    def _trials_returned(self, event: ev.TrialsReturned) -> None:
        worker = event.worker
        self._take_back(self._ahead.returned(worker, event.trials))
        if not self._roster.is_between(worker):
            return
        if self._ahead.next_of(worker) is None:
            self._roster.give_back(worker)
        else:
            self._go_on(worker, event.at)
            self._end_running()

    def _take_back(self, trials: list[int]) -> None:
        """Put trials that were not begun in front of all others; after the end they stay as they are."""
        if self._ending is None:
            self._ready.extendleft(reversed(trials))

    # -- ends of attempts ------------------------------------------------------------------------------------------

    def _settle(self, attempt: Attempt, at: float) -> None:
        """End, pause or repeat the trial of an attempt, once no worker works on it any more."""
        if attempt.open:
            return
        trial = attempt.trial
        conclusion = conclude(attempt)
        if conclusion.state == "lost":
            self._retry(attempt, conclusion.why or "", at)
        elif conclusion.state == "interrupted":
            self._interrupt(trial, attempt.number, conclusion.why or "", at)
        elif conclusion.state == "paused":
            self._pause(trial, at)
        else:
            self._conclude(trial, conclusion, at)

    def _pause(self, trial: int, at: float) -> None:
        curve = self._trials[trial].curve
        self._out.fact(facts.TrialPaused(at=at, trial=trial, step=curve.steps[-1] if len(curve) else 0))
        self._live[trial].losses = 0
        self._paused.add(trial)
        self._job_done(trial, at)

    def _retry(self, attempt: Attempt, reason: str, at: float) -> None:
        trial = attempt.trial
        live = self._live[trial]
        live.lost(attempt)
        if self._ending is not None and self._ends_for_good:
            self._conclude(trial, Conclusion("stopped", None, reason), at)
        elif self._ending is not None:
            self._interrupt(trial, attempt.number, reason, at)
        elif live.losses >= self.plan.max_attempts:
            why = f"gave up after {live.losses} lost attempts; the last one: {reason}"
            self._conclude(trial, Conclusion("failed", None, why), at)
        else:
            self._out.fact(facts.AttemptLost(at=at, trial=trial, attempt=attempt.number, reason=reason))
            self._ready.appendleft(trial)

    def _conclude(self, trial: int, conclusion: Conclusion, at: float) -> None:
        self._out.fact(conclusion.as_fact(trial, at))
        del self._live[trial]
        self._suspects.discard(trial)
        if conclusion.state == "failed":
            self._causes[trial] = conclusion.end.alike if conclusion.end is not None else ""
        self._job_done(trial, at)

    def _job_done(self, trial: int, at: float) -> None:
        for number in self._showing.done(trial):
            ending = self._watch.look_at(number, self._causes.pop(number, ""))
            if ending is not None:
                self._end(*ending, at)

    # -- ends ----------------------------------------------------------------------------------------------------

    def _tick(self, event: ev.Tick) -> None:
        if self._stop_at is not None and event.at >= self._stop_at:
            self._stop_at = None
            self._end("completed", f"time budget of {self.plan.timeout_s:g} s used up", event.at)
        self._running.end_overdue(event.at)

    def _end(self, state: EndState, reason: str, at: float) -> None:
        if self._ending is not None:
            return
        self._ending = (state, reason)
        why = reason.partition("\n")[0].rstrip(":")
        for trial in self._ready:
            attempts = self._trials[trial].attempts
            if attempts and self._ends_for_good:
                self._out.fact(facts.TrialEnded(at=at, trial=trial, state="stopped", error=why))
            elif attempts:
                self._interrupt(trial, attempts, why, at)
        self._ready.clear()
        for worker in self._ahead.holders():
            self._out.command(ev.Recall(worker))
        self._end_running()

    def _end_running(self) -> None:
        assert self._ending is not None
        why = self._ending[1].partition("\n")[0].rstrip(":")
        self._running.end_all(why, for_good=self._ends_for_good)

    @property
    def _ends_for_good(self) -> bool:
        """Whether the search is over by its own rules. Otherwise a resume goes on with what was cut off."""
        return self._ending is None or self._ending[0] == "completed"

    def _interrupt(self, trial: int, attempt: int, reason: str, at: float) -> None:
        self._out.fact(facts.AttemptLost(at=at, trial=trial, attempt=attempt, reason=reason, interrupted=True))

    # -- moving on -----------------------------------------------------------------------------------------------

    def _advance(self, at: float) -> None:
        gangs, roster = self._gangs, self._roster
        if gangs.is_elastic and not gangs.is_complete:
            self._staff()  # first: an elastic gang waits for workers that are starting
        while self._ready and (size := gangs.size_now(at)):
            self._start(self._ready.popleft(), size, at)
        if self._ready:
            self._give_ahead()
        if not gangs.is_complete:
            self._staff()
        if self._may_ask and len(self._ready) < roster.idle // self.plan.gang + self.plan.ask_ahead:
            self._ask()
        if self._is_over:
            self._finish(at)
        elif (
            roster.idle
            and not self._ready
            and not self._ahead
            and self._no_more_to_come
            and not gangs.keeps_idle(self._running)
        ):
            gangs.release_idle()

    def _staff(self) -> None:
        """Start as many workers as the remaining trials can use."""
        plan = self.plan
        wanted = len(self._ready)
        if not self._no_more_to_come:
            new = plan.workers
            if plan.num_trials is not None:
                new = max(0, plan.num_trials * self.record.header.repeats - self._suggested)
            wanted += new + len(self._paused)
        self._gangs.start_up_to(wanted, self._running)

    @property
    def _no_more_to_come(self) -> bool:
        """Whether only trials that are ready or running now will ever run (again)."""
        if self._ending is not None or self._is_exhausted:
            return True
        if self._is_asking or not self._has_enough or self._paused or self._owes_repeats:
            return False
        return not (self._has_milestones and self._running)  # a running trial may pause, and be resumed

    @property
    def _is_over(self) -> bool:
        if self._running or self._ahead:
            return False
        return self._ending is not None or not (self._ready or self._is_asking or self._may_ask)

    def _finish(self, at: float) -> None:
        state, reason = self._ending or self.record.normal_ending
        for trial in sorted(self._paused) if self._ends_for_good else ():
            why = "was not resumed before the end"
            self._out.fact(facts.TrialEnded(at=at, trial=trial, state="stopped", error=why))
        self._out.fact(facts.ExperimentEnded(at=at, state=state, reason=reason))
        self._gangs.release_all()
        self._finished = True
        self._out.command(ev.Finish(state, reason))
