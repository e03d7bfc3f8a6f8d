"""The scheduler: asks the policy what follows from the clock, the triggers and the runs, keeps it, and then does it.

`turn` does everything that is due and returns; it never sleeps. A scheduler may be killed at any moment: what it has
written down is done by the next one, what it has not written down has not happened.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from cargobike.core.errors import CargobikeError, InvalidInputError, StoreError
from cargobike.core.registering.triggers import Trigger
from cargobike.pipelines.scheduling.keeping.book import Book, Kept
from cargobike.pipelines.scheduling.keeping.lease import Lease
from cargobike.pipelines.scheduling.policy.events import AnyEvent, Looked, RunOver, Ticked
from cargobike.pipelines.scheduling.policy.policy import BACK_S, handle, is_to_look, next_time
from cargobike.pipelines.scheduling.policy.state import Firing, State, key_of
from cargobike.pipelines.scheduling.process.clock import Clock
from cargobike.pipelines.scheduling.process.looking import Answer, Looks
from cargobike.pipelines.scheduling.process.runs import Runs

IDLE_S: Final = 1.0
"""A scheduler looks at the clock at least this often: it may have been set, or the machine been asleep."""
BELL_S: Final = 2.0
RUNS_S: Final = 1.0
REREAD_S: Final = 300.0
"""A user's process may have been killed before it could ring the bell."""

_LOOKS: Final = Looks()
_NEVER: Final = float("-inf")

Say = Callable[[str, str], None]
"""Tells people what happened to a schedule; an empty name for the scheduler itself."""


class Looker(Protocol):
    """What looks at triggers, at once or later."""

    def ask(self, schedule: str, trigger: Trigger, since: str) -> None:
        """Have a trigger looked at."""
        ...

    def answers(self) -> list[Answer]:
        """Return the answers that have come since the last call."""
        ...


class Scheduler:
    """What one scheduler knows and does.

    Args:
        book: The schedules.
        lease: The claim to be the one at work.
        runs: What begins runs.
        looker: What looks at triggers.
        clock: What time it is.
        say: Told what happens.
        looks: How often triggers are looked at.
        most_runs: So many runs at once; others wait.
        bell_s: How often to look whether a user changed something.
    """

    def __init__(
        self,
        *,
        book: Book,
        lease: Lease,
        runs: Runs,
        looker: Looker,
        clock: Clock,
        say: Say = lambda name, words: None,
        looks: Looks = _LOOKS,
        most_runs: int = 16,
        bell_s: float = BELL_S,
    ) -> None:
        self._book = book
        self._lease = lease
        self._runs = runs
        self._looker = looker
        self._clock = clock
        self._say = say
        self._looks = looks
        self._most_runs = most_runs
        self._bell_s = bell_s
        self._is_at_work = False
        self._hold_at = self._last_now = _NEVER
        self._forget()

    def turn(self) -> float:
        """Do everything that is due; returns after how many seconds there may be more to do, at most `IDLE_S`.

        Raises:
            StoreError: If the project's storage does not answer; call it again later.
        """
        if not self._hold():
            return min(IDLE_S, self._lease.renew_s)
        self._reread()
        now = self._clock.now()
        for name in self._due(now):
            self._apply(name, Ticked(now))
        for answer in self._looker.answers():
            self._answered(answer)
        self._ask_for_looks()
        self._see_to_runs()
        return self._pause_s()

    def end(self) -> None:
        """Give the lease back; runs go on."""
        self._lease.leave(self._clock.now())

    @property
    def schedules(self) -> dict[str, Kept]:
        """The schedules as this scheduler knows them."""
        return self._known

    # -- the lease and the book --------------------------------------------------------------------------------------

    def _hold(self) -> bool:
        stopwatch = self._clock.stopwatch()
        if stopwatch >= self._hold_at or not self._lease.is_sure(stopwatch):
            was_held, self._hold_at = self._is_at_work, _NEVER
            self._is_at_work = False
            self._is_at_work = self._lease.hold(self._clock.now(), stopwatch)
            if self._is_at_work:
                self._hold_at = stopwatch + self._lease.renew_s
            if self._is_at_work != was_held:
                self._forget()
                self._say("", "at work" if self._is_at_work else "another scheduler is at work; waiting for it to end")
        return self._is_at_work

    def _forget(self) -> None:
        self._known: dict[str, Kept] = {}
        self._broken: set[str] = set()
        self._times: list[tuple[float, str]] = []
        self._time_of: dict[str, float | None] = {}
        self._triggers: dict[str, list[tuple[str, Trigger]]] = {}
        self._looked_at: dict[tuple[str, str], float] = {}
        self._failures: dict[tuple[str, str], int] = {}
        self._asked: set[tuple[str, str]] = set()
        self._begun: set[str] = set()
        self._held_up: set[str] = set()
        self._unseen: set[str] = set()
        self._cancelled: set[str] = set()
        self._busy: set[str] = set()
        self._bell = ""
        self._bell_at = self._reread_at = self._runs_at = _NEVER

    def _reread(self) -> None:
        stopwatch = self._clock.stopwatch()
        if stopwatch < self._bell_at:
            return
        bell = self._book.bell()
        if bell != self._bell or stopwatch >= self._reread_at:
            for name, number in self._book.numbers().items():
                known = self._known.get(name)
                if known is None or known.number < number:
                    self._read(name, number)
            self._reread_at = stopwatch + REREAD_S
        self._bell, self._bell_at = bell, stopwatch + self._bell_s

    def _read(self, name: str, number: int = 0) -> Kept | None:
        try:
            kept = self._book.read(name, number)
        except InvalidInputError as error:
            if name not in self._broken:
                self._broken.add(name)
                self._say(name, str(error))
            return None
        if kept is not None:
            self._broken.discard(name)
            self._remember(name, kept)
        return kept

    def _remember(self, name: str, kept: Kept) -> None:
        self._known[name] = kept
        time = next_time(kept.state)
        now = self._clock.now()
        if time is not None and kept.state.decided - now > BACK_S:
            time = now  # a scheduler whose clock was ahead decided: see what the policy makes of that
        if self._time_of.get(name) != time:
            self._time_of[name] = time
            if time is not None:
                heapq.heappush(self._times, (time, name))
        if kept.state.active:
            self._busy.add(name)
        else:
            self._busy.discard(name)
        if kept.state.plan.when and kept.state.is_on:
            self._triggers[name] = [(key_of(trigger), trigger) for trigger in kept.state.plan.when]
        else:
            self._triggers.pop(name, None)

    def _apply(self, name: str, event: AnyEvent) -> None:
        """Tell the policy of an event, and keep what it decides, before anything is done about it."""
        try:
            self._decide(name, event)
        except StoreError:
            self._bell_at = self._reread_at = _NEVER  # it is not known what was written
            raise

    def _decide(self, name: str, event: AnyEvent) -> None:
        kept: Kept | None = self._known.get(name)
        while kept is not None:
            after = handle(kept.state, event)
            if after is kept.state:
                self._remember(name, kept)
                return
            if not self._hold():
                return
            before, number = kept.state, kept.number
            self._known.pop(name, None)
            self._time_of.pop(name, None)
            if self._book.write(Kept(number + 1, after)):
                self._remember(name, Kept(number + 1, after))
                self._announce(before, after)
                return
            kept = self._read(name, number)

    def _announce(self, before: State, after: State) -> None:
        known = {(firing.run, firing.at, firing.due) for firing in before.over}
        for firing in after.over:
            if (firing.run, firing.at, firing.due) not in known:
                words = f"{firing.run} {firing.outcome}".strip()
                self._say(after.name, f"{words}: {firing.note}" if firing.note else words)
        waiting = {firing.run for firing in before.waiting}
        for firing in after.waiting:
            if firing.run not in waiting:
                self._say(after.name, f"{firing.run} waits")

    # -- the clock ---------------------------------------------------------------------------------------------------

    def _due(self, now: float) -> list[str]:
        due = []
        while self._times and self._times[0][0] <= now:
            time, name = heapq.heappop(self._times)
            if self._time_of.get(name) == time:
                self._time_of.pop(name)  # pushed again when it is known what follows
                due.append(name)
        if now < self._last_now - BACK_S:
            due = list(self._known)  # the clock was set back: what was decided for later may be open again
        self._last_now = now
        return due

    def _pause_s(self) -> float:
        if not self._times:
            return IDLE_S
        return min(IDLE_S, max(self._times[0][0] - self._clock.now(), 0.0))

    # -- triggers ----------------------------------------------------------------------------------------------------

    def _ask_for_looks(self) -> None:
        stopwatch = self._clock.stopwatch()
        for name, triggers in self._triggers.items():
            kept = self._known.get(name)
            for key, trigger in triggers if kept is not None else ():
                place = (name, key)
                if stopwatch < self._looked_at.get(place, _NEVER) or place in self._asked:
                    continue
                if kept is not None and is_to_look(kept.state, key):
                    self._asked.add(place)
                    self._looker.ask(name, trigger, kept.state.marks.get(key, ""))

    def _answered(self, answer: Answer) -> None:
        place = (answer.schedule, key_of(answer.trigger))
        self._asked.discard(place)
        if answer.seen is None:
            failures = self._failures[place] = self._failures.get(place, 0) + 1
            if failures == 1:
                self._say(answer.schedule, f"cannot look whether {answer.trigger}: {answer.error}; tried again later")
        elif self._failures.pop(place, 0):
            self._say(answer.schedule, f"can look again whether {answer.trigger}")
        pause_s = self._looks.pause_s(self._failures.get(place, 0))
        self._looked_at[place] = self._clock.stopwatch() + pause_s
        if answer.seen is not None:
            self._apply(answer.schedule, Looked(self._clock.now(), answer.trigger, answer.since, answer.seen))

    # -- runs --------------------------------------------------------------------------------------------------------

    def _see_to_runs(self) -> None:
        """Begin what is to begin, end what is to end, and notice what is over."""
        stopwatch = self._clock.stopwatch()
        is_time = stopwatch >= self._runs_at
        if is_time:
            self._runs_at = stopwatch + RUNS_S
        work = deque(sorted(self._busy))
        while work:
            name = work.popleft()
            kept = self._known.get(name)
            for firing in () if kept is None else kept.state.active:
                is_new = firing.run not in self._begun or (firing.is_cancelled and firing.run not in self._cancelled)
                if kept is not None and (is_time or is_new) and self._see_to(kept.state, firing):
                    work.append(name)  # another may follow it

    def _see_to(self, state: State, firing: Firing) -> bool:
        """Do what is to be done about one run; returns whether it is over."""
        if firing.run in self._held_up and len(self._begun) >= self._most_runs and not firing.is_cancelled:
            return False
        try:
            seen = self._runs.look(state, firing)
        except (CargobikeError, OSError) as error:
            if firing.run not in self._unseen:
                self._unseen.add(firing.run)
                self._say(state.name, f"cannot look how {firing.run} does: {error}; tried again later")
            return False
        self._unseen.discard(firing.run)
        if seen.now == "over":
            self._begun.discard(firing.run)
            self._cancelled.discard(firing.run)
            self._apply(state.name, RunOver(self._clock.now(), firing.run, seen.outcome, seen.note))
            return True
        if seen.now == "absent":
            if firing.is_cancelled:
                self._apply(state.name, RunOver(self._clock.now(), firing.run, "cancelled", "before it began"))
                return True
            if len(self._begun) >= self._most_runs:
                self._held_up.add(firing.run)
                return False
            if not self._hold():
                return False
            try:
                self._runs.start(state, firing)
            except CargobikeError as error:
                self._apply(state.name, RunOver(self._clock.now(), firing.run, "not started", str(error)))
                return True
            self._say(state.name, f"{firing.run} started")
        self._begun.add(firing.run)
        self._held_up.discard(firing.run)
        if firing.is_cancelled and firing.run not in self._cancelled:
            self._cancelled.add(firing.run)
            try:
                self._runs.cancel(firing)
                self._say(state.name, f"{firing.run} told to end")
            except (CargobikeError, OSError) as error:
                self._say(state.name, f"cannot tell {firing.run} to end: {error}")
        return False
