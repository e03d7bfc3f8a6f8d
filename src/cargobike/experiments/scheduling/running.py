"""The attempts that run: their reports, the decisions about them, and how each comes to its end."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

from cargobike.core import facts
from cargobike.core.records import Decision, Trial
from cargobike.core.running.ending import Ending
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.attempt import ASKED_TO_END, KILLED, Attempt


class Running:
    """Keeps the running attempts, at most one for each trial.

    In a gang rank 0 stands for the trial: its reports count, it is judged at milestones, and the other ranks pass a
    milestone when rank 0 has passed it. When one rank ends before its time, the others are made to end. Parameter
    servers are asked to end when all others have returned.

    Args:
        out: Where facts and commands go.
        trials: The trials of the record, as they are.
        trial_timeout_s: How long an attempt may take.
        stall_timeout_s: How long one rank may keep its gang waiting.
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

    def start(self, attempt: Attempt, at: float, *, was_given_ahead: bool = False) -> None:
        """Start an attempt on its gang, or note that a worker has begun what it was given ahead."""
        trial, number = attempt.trial, attempt.number
        self._attempts[trial] = attempt
        attempt.active_at = at
        if self._timeout_s is not None:
            heapq.heappush(self._deadlines, (at + self._timeout_s, trial, number))
        self._out.fact(facts.AttemptStarted(at=at, trial=trial, attempt=number, workers=attempt.workers))
        if not was_given_ahead:
            self._out.command(ev.Run(trial, number, attempt.workers, attempt.hosts, attempt.servers))

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self._attempts.values())

    def _current(self, trial: int, number: int) -> Attempt | None:
        """Return the running attempt if it is the one meant; late and repeated messages mean earlier ones."""
        running = self._attempts.get(trial)
        return running if running is not None and running.number == number else None

    # -- reports and decisions -----------------------------------------------------------------------------------

    def points_reported(self, event: ev.PointsReported) -> None:
        """Record a report of rank 0, and answer workers that wait at a milestone."""
        attempt = self._current(event.trial, event.attempt)
        if attempt is None or event.worker not in attempt.open or (event.made_in and self._has_arrived(event)):
            return
        # The fact comes before any command that follows from it: the driver writes facts before it sends anything.
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
                    number=self._number_of(event),
                )
            )
            if event.asks:
                self._out.command(ev.Confirm(event.worker, event.trial, event.attempt, event.number))
        is_first = event.worker not in attempt.waiting  # one that waits already has its question asked
        if event.waits and is_first:
            attempt.waiting[event.worker] = event.step
        if attempt.verdict is not None:
            self._answer_waiting(attempt)
            if is_chief:
                self._halt(attempt, ASKED_TO_END)  # it has been told the verdict, and goes on nevertheless
        elif event.waits and is_chief and is_first:
            self._out.command(ev.Judge(event.trial, event.attempt, event.step, attempt.horizon))
        elif event.waits and not is_chief and attempt.may_pass(event.step):
            self._answer(attempt, event.worker)

    def _number_of(self, event: ev.PointsReported) -> int:
        """Return which report of its trial it is: the first one of an attempt says so, those after it follow.

        Threads and forked processes of a train function may report at the same time, and take the same number.
        """
        is_first = event.made_in or self._out.record.reported_in.get(event.trial) != event.attempt
        return self._place_of(event) if event.number and is_first else self._trials[event.trial].reports + 1

    def _place_of(self, event: ev.PointsReported) -> int:
        """Return the number of the report that an attempt makes again, or the next one if it goes on.

        A function may save a step before it reports it, and go on after that step: then its checkpoint does not count
        the report, but no attempt makes it again.
        """
        steps = self._out.record.steps_of(event.trial)
        for index in range(max(event.number, 1) - 1, len(steps)):
            if steps[index] >= event.step:
                return index + 1
        return max(event.number, self._trials[event.trial].reports + 1)

    def _has_arrived(self, event: ev.PointsReported) -> bool:
        """Tell whether a report of an earlier attempt has arrived: those of an attempt arrive in order.

        If the last report that arrived is of an attempt before that one, none of that one's has, and what is there
        under its number was made by a training that had got lost.
        """
        if event.made_in > self._out.record.reported_in.get(event.trial, 0):
            return False
        return self._place_of(event) <= self._trials[event.trial].reports

    def decision_made(self, event: ev.DecisionMade) -> bool:
        """Carry out a decision; returns whether rank 0 was still waiting for it."""
        attempt = self._current(event.trial, event.attempt)
        if attempt is None or attempt.waiting.get(attempt.workers[0]) != event.step:
            return False
        if event.decision is Decision.CONTINUE:
            attempt.decided_step = event.step
        else:
            attempt.verdict = ("stopped" if event.decision is Decision.STOP else "paused", event.by)
            attempt.was_judged = event.decision is Decision.STOP
        # Recorded before the workers hear of it, so that a driver that takes over decides nothing twice.
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
        if attempt is not None and event.worker in attempt.open:
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

    def model_packed(self, event: ev.ModelPacked) -> None:
        """Record a model that rank 0 has kept."""
        attempt = self._current(event.trial, event.attempt)
        if attempt is not None and event.worker in attempt.open and event.worker == attempt.workers[0]:
            attempt.active_at = event.at
            self._out.fact(facts.ModelKept(at=event.at, trial=event.trial, name=event.name, attempt=event.attempt))

    # -- gangs that stand still ----------------------------------------------------------------------------------

    def rank_active(self, event: ev.RankActive) -> None:
        """Note that a member of a gang is alive."""
        attempt = self._attempts.get(event.trial)
        if attempt is not None and event.worker in attempt.open:
            attempt.active_at = event.at

    def rank_quiet(self, event: ev.RankQuiet) -> None:
        """End an attempt if one of its ranks has stood still for too long, and no other rank was heard of either.

        A rank stands still if it waits for another one or is locked up. A rank that computes does not.
        """
        attempt, patience_s = self._current(event.trial, event.attempt), self._stall_timeout_s
        if attempt is None or patience_s is None or event.worker not in attempt.open or attempt.force:
            return
        if event.worker not in attempt.deciders or not attempt.is_gang:
            return
        if event.idle_s >= patience_s and event.at - attempt.active_at >= patience_s:
            attempt.stall = f"no rank of the gang has reported anything for stall_timeout_s={patience_s:g} s"
            attempt.early = tuple(worker for worker, end in attempt.ends.items() if end.outcome == "completed")
            self._halt(attempt, ASKED_TO_END, stack=True)

    def re_form(self, attempt: Attempt, why: str) -> None:
        """End an attempt so that it goes on with more workers."""
        attempt.lost = attempt.lost or why
        attempt.re_forms = True
        self._halt(attempt, KILLED)

    # -- decisions reach the workers -----------------------------------------------------------------------------

    def _answer_waiting(self, attempt: Attempt) -> None:
        """Answer the workers that wait at a milestone, as far as the answer is known."""
        for worker, step in list(attempt.waiting.items()):
            if attempt.verdict is not None or worker == attempt.workers[0] or attempt.may_pass(step):
                self._answer(attempt, worker)

    def _answer(self, attempt: Attempt, worker: str) -> None:
        step = attempt.waiting.pop(worker)
        self._out.command(ev.Answer(worker, attempt.trial, attempt.number, step, attempt.decision))

    # -- ends ----------------------------------------------------------------------------------------------------

    def ended(self, event: ev.AttemptEnded) -> Attempt | None:
        """Note that a worker is done with its attempt; returns the attempt, `None` if this was known already."""
        attempt = self._current(event.trial, event.attempt)
        if attempt is None or event.worker not in attempt.open:
            return None
        attempt.ends[event.worker] = event
        self._leave(attempt, event.worker)
        if event.is_symptom:
            # Not killed: the cause is yet to come, or only the stacks of the others will show it.
            self._halt(attempt, ASKED_TO_END, stack=True)
        elif event.outcome in ("failed", "lost"):
            self._halt(attempt, KILLED)
        elif attempt.has_returned:
            self._halt(attempt, ASKED_TO_END)  # only workers are left that served the others
        elif event.outcome != "completed":
            self._halt(attempt, ASKED_TO_END)  # the others would wait for it in vain
        elif attempt.waiting:
            self._answer_waiting(attempt)
        return attempt

    def lost(self, trial: int, worker: str, ending: Ending) -> Attempt:
        """Note that a worker of an attempt is gone; returns the attempt."""
        attempt = self._attempts[trial]
        title = f"{attempt.name_of(worker)}, worker {worker}," if attempt.is_gang else f"worker {worker}"
        attempt.lost = attempt.lost or f"{title} was lost: {ending}"
        self._leave(attempt, worker)
        self._halt(attempt, KILLED)
        return attempt

    def end_overdue(self, now: float) -> None:
        """End attempts that have run for too long."""
        while self._deadlines and self._deadlines[0][0] <= now:
            _, trial, number = heapq.heappop(self._deadlines)
            attempt = self._current(trial, number)
            if attempt is not None:
                # A verdict that is there already stays: the attempt was to end anyway, and was only too slow.
                why = f"ran longer than trial_timeout_s={self._timeout_s:g} and was ended"
                attempt.verdict = attempt.verdict or ("failed", why)
                self._halt(attempt, KILLED)

    def end_all(self, why: str, *, for_good: bool) -> None:
        """Ask all attempts to end; unless it is for good, their trials go on when the experiment is resumed."""
        for attempt in self._attempts.values():
            attempt.verdict = attempt.verdict or ("stopped" if for_good else "interrupted", why)
            self._answer_waiting(attempt)
            self._halt(attempt, ASKED_TO_END)

    def _leave(self, attempt: Attempt, worker: str) -> None:
        attempt.open.discard(worker)
        attempt.waiting.pop(worker, None)
        if not attempt.open:
            del self._attempts[attempt.trial]

    def _halt(self, attempt: Attempt, force: int, *, stack: bool = False) -> None:
        """Make all workers of an attempt end it that still work on it; each degree of force is used only once."""
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
