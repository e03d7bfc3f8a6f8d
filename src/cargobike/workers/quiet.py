"""Notices from outside that a process stands still, and where. Pure: measurements are passed in."""

from __future__ import annotations

import math

import msgspec

_LOOKS = 8
_MOST_OFTEN_S = 0.25
_LEAST_OFTEN_S = 5.0
_STILL = 0.05
_LOOK_AT_STACK_S = 0.05
_AWAY_S = 5.0

START_PATIENCE_S = 120.0
"""How long a template may take to start a runner: it may be importing what the runner before needed."""
KILL_PATIENCE_S = 20.0
"""How long a runner may take to end after it was killed: its memory may be large."""


class QuietWatch(msgspec.Struct):
    """Decides from regular measurements of a runner whether it stands still.

    It stands still while it and its children use next to no processor time, print nothing and report nothing: a rank
    that waits for another one in a collective looks like this, and so does one that sleeps or is locked up. One that
    computes does not, however long it takes.

    Attributes:
        pause_s: Time between two looks.
        report_after_s: How long it must have been standing still to be reported.
        next_look: When the next look is due.
    """

    pause_s: float
    report_after_s: float
    next_look: float
    _active_at: float
    _looked_at: float
    _processor_s: float = 0.0

    @staticmethod
    def begin(patience_s: float, now: float) -> QuietWatch:
        """Return a watch for a runner that others wait for at most this long."""
        pause_s = min(_LEAST_OFTEN_S, max(_MOST_OFTEN_S, patience_s / _LOOKS))
        return QuietWatch(pause_s, patience_s / 2, now + pause_s, now, now)

    def heard(self, now: float) -> None:
        """Record that the runner has said something."""
        self._active_at = now

    def look(self, now: float, processor_s: float) -> float:
        """Return for how long it has been standing still, 0 while that is too short to report."""
        if processor_s - self._processor_s > _STILL * (now - self._looked_at):
            self._active_at = now
        self._processor_s, self._looked_at, self.next_look = processor_s, now, now + self.pause_s
        idle_s = now - self._active_at
        return idle_s if idle_s >= self.report_after_s else 0.0


class StackWait(msgspec.Struct):
    """Waits for a runner that was asked for the stacks of its threads.

    Attributes:
        next_look: When to look whether it has answered; `None` once it has.
        text: What it has written so far.
    """

    next_look: float | None
    text: str = ""

    @staticmethod
    def begin(now: float) -> StackWait:
        """Wait for an answer from now on."""
        return StackWait(now + _LOOK_AT_STACK_S)

    def has_come(self, now: float, text: str) -> bool:
        """Store what was read; returns true once, when the answer is there and does not grow any more."""
        is_due = self.next_look is not None and now >= self.next_look
        before, self.text = self.text, text
        if not is_due:
            return False
        if text and text == before:
            self.next_look = None
            return True
        self.next_look = now + _LOOK_AT_STACK_S
        return False


class AnswerWatch(msgspec.Struct):
    """Decides when a template has not answered for too long.

    Attributes:
        looked_at: When the last look was.
        due: When the answer must be there; `None` if none is expected.
    """

    looked_at: float
    due: float | None = None

    def expect_start(self, now: float) -> None:
        """Expect that it starts a runner."""
        self.due = now + START_PATIENCE_S

    def expect_end(self, now: float) -> None:
        """Expect that the runner ends, which is being killed; the first of several kills counts."""
        self.due = min(now + KILL_PATIENCE_S, self.due if self.due is not None else math.inf)

    def has_answered(self) -> None:
        """Expect nothing more."""
        self.due = None

    def is_overdue(self, now: float) -> bool:
        """Tell whether an answer is missing; to be asked at least once a second.

        Who has not asked for longer was stopped itself, and the template probably too.
        """
        away_s, self.looked_at = now - self.looked_at, now
        if self.due is not None and away_s > _AWAY_S:
            self.due += away_s
        return self.due is not None and now >= self.due
