"""In which order the optimizer is shown what its suggestions led to, and when it may be asked again.

A suggestion leads to a *job*: a trial runs until it ends or pauses. Every job that is done is shown once, before the
next question.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol


class Showing(Protocol):
    """Keeps the list of jobs that are done and not yet shown."""

    @property
    def may_ask(self) -> bool:
        """Whether a question makes sense now: there is something new to show, or the optimizer wants no rest."""

    def began(self, trial: int) -> None:
        """Take in that a suggestion was accepted, for a new trial or one that goes on."""

    def done(self, trial: int) -> tuple[int, ...]:
        """Take in that a job is done; returns those whose turn it is now, in the order in which they count."""

    def take(self) -> tuple[int, ...]:
        """Return what is to be shown before the next question."""

    @property
    def unshown(self) -> tuple[int, ...]:
        """What has not been shown yet, done or not."""

    def rest(self) -> None:
        """Take in that the optimizer had nothing to suggest; it is asked again when there is something new."""

    def wake(self) -> None:
        """Take in that the optimizer has decided about a running trial, and may have something to suggest now."""


class AsTheyEnd:
    """Shows what is done as it gets done: the optimizer always knows everything."""

    def __init__(self) -> None:
        self._unshown: deque[int] = deque()
        self._resting = False

    @property
    def may_ask(self) -> bool:
        """Whether the optimizer wants no rest, or something was done since it said so."""
        return not self._resting or bool(self._unshown)

    def began(self, trial: int) -> None:
        """Do nothing: the order of suggestions does not matter."""

    def done(self, trial: int) -> tuple[int, ...]:
        """Put it on the list."""
        self._unshown.append(trial)
        return (trial,)

    def take(self) -> tuple[int, ...]:
        """Return everything that is on the list."""
        taken = tuple(self._unshown)
        self._unshown.clear()
        self._resting = False
        return taken

    @property
    def unshown(self) -> tuple[int, ...]:
        """What is on the list."""
        return tuple(self._unshown)

    def rest(self) -> None:
        """Wait for the next job to be done."""
        self._resting = True

    def wake(self) -> None:
        """Wait no longer."""
        self._resting = False


class AsSuggested:
    """Shows jobs in the order in which they were suggested, whenever they get done.

    The question for job `n` comes after jobs `0` to `n - horizon` have been shown and no others, and one job more for
    each time that the optimizer had nothing to suggest. What it sees depends on nothing but its own answers.

    Args:
        horizon: How many jobs may be suggested ahead of what was shown, at least 1.
    """

    def __init__(self, horizon: int) -> None:
        self._horizon = horizon
        self._jobs: deque[int] = deque()
        self._begun: dict[int, int] = {}
        self._done: set[int] = set()
        self._count = 0
        self._in_order = 0
        self._shown = 0
        self._due = 0

    @property
    def may_ask(self) -> bool:
        """Whether all jobs that the next question must come after are done."""
        return max(self._due, self._count - self._horizon + 1) <= self._in_order

    def began(self, trial: int) -> None:
        """Number the job."""
        self._begun[trial] = self._count
        self._jobs.append(trial)
        self._count += 1

    def done(self, trial: int) -> tuple[int, ...]:
        """Mark it, and return those that are now done with all before them."""
        self._done.add(self._begun.pop(trial))
        since = self._in_order
        while self._in_order in self._done:
            self._done.remove(self._in_order)
            self._in_order += 1
        return tuple(self._jobs[number - self._shown] for number in range(since, self._in_order))

    def take(self) -> tuple[int, ...]:
        """Return exactly those that the next question comes after."""
        due = max(self._shown, self._due, self._count - self._horizon + 1)
        taken = tuple(self._jobs.popleft() for _ in range(due - self._shown))
        self._shown = due
        return taken

    @property
    def unshown(self) -> tuple[int, ...]:
        """All jobs from the first that was not shown, done or not."""
        return tuple(self._jobs)

    def rest(self) -> None:
        """Show one job more next time; if there is none, that time never comes."""
        self._due = self._shown + 1

    def wake(self) -> None:
        """Do nothing: when a decision is taken depends on timing."""
