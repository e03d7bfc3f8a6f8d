"""The attempts that run: their reports, the decisions about them, and how each comes to its end."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

from cargobike.core import facts
from cargobike.core.ending import Ending
from cargobike.core.records import Decision, Trial
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.attempt import ASKED_TO_END, KILLED, Attempt


class Running:
    """Keeps the running attempts, at most one for each trial.

    In a gang rank 0 decides: its reports count, it is judged at milestones, and the other ranks pass a milestone when
    it has passed. When one rank ends before its time, the others are made to end; parameter servers are when all
    others have returned.

    Args:
        out: Where facts and commands go.
        trials: What is known of each trial.
        trial_timeout_s: How long an attempt may take.
        stall_timeout_s: How long a gang may stand still because of one of them.
    """

    def __init__(
        self,
        out: ev.Outbox,
        trials: Mapping[int, Trial],
        trial_timeout_s: float | None,
        stall_timeout_s: float | None = None,
    ) -> None:
        self._out = out
        self._trials = trials
        self._timeout_s = trial_timeout_s
        self._stall_timeout_s = stall_timeout_s
        self._attempts: dict[int, Attempt] = {}
        self._deadlines: list[tuple[float, int, int]] = []

    def __len__(self) -> int:
        return len(self._attempts)

    @property
    def next_deadline(self) -> float | None:
        """When the next attempt has run for too long."""
        while self._deadlines:
            deadline, trial, number = self._deadlines[0]
            attempt = self._current(trial, number)
            if attempt is not None and attempt.force < KILLED:
                return deadline
            heapq.heappop(self._deadlines)
        return None

    def start(self, attempt: Attempt, at: float) -> None:
        """Let a gang run a trial."""
        trial, number = attempt.trial, attempt.number
        self._attempts[trial] = attempt
        attempt.active_at = at
        if self._timeout_s is not None:
            heapq.heappush(self._deadlines, (at + self._timeout_s, trial, number))
        self._out.fact(facts.AttemptStarted(at=at, trial=trial, attempt=number, workers=attempt.workers))
        self._out.command(ev.Run(trial, number, attempt.workers, attempt.hosts, attempt.servers))

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self._attempts.values())

    def _current(self, trial: int, number: int) -> Attempt | None:
        """Return the running attempt if that is the one meant; late and repeated messages mean others."""
        running = self._attempts.get(trial)
        return running if running is not None and running.number == number else None

    # -- reports and decisions -----------------------------------------------------------------------------------

    def points_reported(self, event: ev.PointsReported) -> None:
        """Record what rank 0 reports, and see to those who wait at a milestone."""
        attempt = self._current(event.trial, event.attempt)
        if attempt is None or event.worker not in attempt.open or (event.again and self._has_arrived(event)):
            return
        is_chief = event.worker == attempt.workers[0]
        attempt.active_at = event.at
        attempt.steps[event.worker] = event.step
        if is_chief:
            self._out.fact(
                facts.Reported(
                    at=event.at,
                    trial=event.trial,
                    step=event.step,
                    metrics=facts.pack_numbers(event.metrics),
                    attempt=event.attempt,
                )
            )
        if event.waits:
            attempt.waiting[event.worker] = event.step
        if attempt.verdict is not None:
            self._answer_waiting(attempt)
            if is_chief:
                self._halt(attempt, ASKED_TO_END)  # it was told, and goes on nevertheless
        elif event.waits and is_chief:
            self._out.command(ev.Judge(event.trial, event.attempt, event.step, attempt.horizon))
        elif event.waits and attempt.may_pass(event.step):
            self._answer(attempt, event.worker)

    def _has_arrived(self, event: ev.PointsReported) -> bool:
        """Tell whether a report is known that was made as late: they arrive in order."""
        steps = self._trials[event.trial].curve.steps
        return len(steps) > 0 and steps[-1] >= event.step

    def decision_made(self, event: ev.DecisionMade) -> bool:
        """Let those who wait go on, stop or pause; returns whether anybody did."""
        attempt = self._current(event.trial, event.attempt)
        if attempt is None or attempt.waiting.get(attempt.workers[0]) != event.step:
            return False
        if event.decision is Decision.CONTINUE:
            attempt.decided_step = event.step
        else:
            attempt.verdict = ("stopped" if event.decision is Decision.STOP else "paused", event.by)
            attempt.was_judged = event.decision is Decision.STOP
        self._out.fact(
            facts.Judged(
                at=event.at,
                trial=event.trial,
                step=event.step,
                decision=event.decision.value,
                by=event.by,
                told=event.told,
            )
        )
        self._answer_waiting(attempt)
        return True

    def checkpoint_written(self, event: ev.CheckpointWritten) -> None:
        """Record a checkpoint."""
        attempt = self._current(event.trial, event.attempt)
        if attempt is not None:
            attempt.active_at = event.at
            attempt.saved_step = event.step
            self._out.fact(
                facts.CheckpointSaved(
                    at=event.at,
                    trial=event.trial,
                    step=event.step,
                    path=event.path,
                    attempt=event.attempt,
                    size_bytes=event.size_bytes,
                )
            )

    # -- gangs that stand still ----------------------------------------------------------------------------------

    def rank_active(self, event: ev.RankActive) -> None:
        """Take in that a member lives."""
        attempt = self._attempts.get(event.trial)
        if attempt is not None and event.worker in attempt.open:
            attempt.active_at = event.at

    def rank_quiet(self, event: ev.RankQuiet) -> None:
        """End an attempt in which a rank has been standing still for too long, and nobody has said anything either.

        A rank that waits for another one does so, and one that is locked up. One that computes does not.
        """
        attempt, patience_s = self._current(event.trial, event.attempt), self._stall_timeout_s
        if attempt is None or patience_s is None or event.worker not in attempt.open or attempt.force:
            return
        if event.worker not in attempt.deciders or not attempt.is_gang:
            return
        if event.idle_s >= patience_s and event.at - attempt.active_at >= patience_s:
            attempt.stall = f"nobody in the gang has reported anything for stall_timeout_s={patience_s:g} s"
            self._halt(attempt, ASKED_TO_END, stack=True)

    def re_form(self, attempt: Attempt, why: str) -> None:
        """End an attempt so that it goes on with more workers."""
        attempt.lost = attempt.lost or why
        attempt.re_forms = True
        self._halt(attempt, KILLED)

    # -- decisions reach the workers -----------------------------------------------------------------------------

    def _answer_waiting(self, attempt: Attempt) -> None:
        """Tell those who stand still how to go on, as far as it is known."""
        for worker, step in list(attempt.waiting.items()):
            if attempt.verdict is not None or worker == attempt.workers[0] or attempt.may_pass(step):
                self._answer(attempt, worker)

    def _answer(self, attempt: Attempt, worker: str) -> None:
        step = attempt.waiting.pop(worker)
        self._out.command(ev.Answer(worker, attempt.trial, attempt.number, step, attempt.decision))

    # -- ends ----------------------------------------------------------------------------------------------------

    def ended(self, event: ev.AttemptEnded) -> Attempt | None:
        """Take in that a worker is done with its attempt, which is returned; `None` if that is no news."""
        attempt = self._current(event.trial, event.attempt)
        if attempt is None or event.worker not in attempt.open:
            return None
        attempt.ends[event.worker] = event
        self._leave(attempt, event.worker)
        if event.is_symptom:
            self._halt(attempt, ASKED_TO_END, stack=True)  # the cause is on its way, or found where others stand
        elif event.outcome in ("failed", "lost"):
            self._halt(attempt, KILLED)
        elif attempt.has_returned:
            self._halt(attempt, ASKED_TO_END)  # only those are left who served the others
        elif event.outcome != "completed":
            self._halt(attempt, ASKED_TO_END)  # the others would wait for it in vain
        elif attempt.waiting:
            self._answer_waiting(attempt)
        return attempt

    def lost(self, trial: int, worker: str, ending: Ending) -> Attempt:
        """Take in that a worker of an attempt is gone; returns the attempt."""
        attempt = self._attempts[trial]
        who = f"{attempt.name_of(worker)}, worker {worker}," if attempt.is_gang else f"worker {worker}"
        attempt.lost = attempt.lost or f"{who} was lost: {ending}"
        self._leave(attempt, worker)
        self._halt(attempt, KILLED)
        return attempt

    def end_overdue(self, now: float) -> None:
        """End attempts that have run for too long."""
        while self._deadlines and self._deadlines[0][0] <= now:
            _, trial, number = heapq.heappop(self._deadlines)
            attempt = self._current(trial, number)
            if attempt is not None:
                why = f"ran longer than trial_timeout_s={self._timeout_s:g} and was ended"
                attempt.verdict = attempt.verdict or ("failed", why)
                self._halt(attempt, KILLED)

    def end_all(self, why: str) -> None:
        """Ask all attempts to end."""
        for attempt in self._attempts.values():
            attempt.verdict = attempt.verdict or ("stopped", why)
            self._answer_waiting(attempt)
            self._halt(attempt, ASKED_TO_END)

    def _leave(self, attempt: Attempt, worker: str) -> None:
        attempt.open.discard(worker)
        attempt.waiting.pop(worker, None)
        if not attempt.open:
            del self._attempts[attempt.trial]

    def _halt(self, attempt: Attempt, force: int, *, stack: bool = False) -> None:
        """Make those who still work on an attempt end it; asks once, and kills once if that is not enough."""
        if attempt.force >= force:
            return
        attempt.force = force
        for worker in attempt.workers:
            if worker in attempt.open:
                self._out.command(
                    ev.StopAttempt(
                        worker,
                        attempt.trial,
                        attempt.number,
                        kill=force == KILLED,
                        stack=stack,
                        is_server=attempt.is_server(worker),
                    )
                )
