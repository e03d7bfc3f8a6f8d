"""In which order the optimizer is shown what became of its suggestions, and when it may be asked again.

A suggestion leads to a *job*: a trial runs until it ends or pauses. Every job that is done is shown once, before a
later question.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol


class Showing(Protocol):
    """Keeps the list of jobs that are done and not yet shown."""

    @property
    def may_ask(self) -> bool:
        """Whether a question makes sense now: there is a new job to show, or the optimizer has not just idled."""

    def began(self, trial: int) -> None:
        """Note that a suggestion was accepted, for a new trial or for a paused one."""

    def done(self, trial: int) -> tuple[int, ...]:
        """Note that a job is done; returns the jobs whose turn it is now, in the order in which they count."""

    def take(self) -> tuple[int, ...]:
        """Return the jobs to show before the next question."""

    @property
    def unshown(self) -> tuple[int, ...]:
        """The jobs that have not been shown yet."""

    def rest(self) -> None:
        """Note that the optimizer had nothing to suggest; it is asked again when there is a new job to show."""

    def wake(self) -> None:
        """Note that the optimizer has decided about a running trial, and may have something to suggest now."""


class AsTheyEnd:
    """Shows jobs in the order in which they are done: the optimizer always knows all results so far."""

    def __init__(self) -> None:
        self._unshown: deque[int] = deque()
        self._resting = False

    @property
    def may_ask(self) -> bool:
        """Whether the optimizer has not just idled, or a job was done since."""
        return not self._resting or bool(self._unshown)

    def began(self, trial: int) -> None:
        """Do nothing: the order of suggestions does not matter."""

    def done(self, trial: int) -> tuple[int, ...]:
        """Put the job on the list of those to show."""
        self._unshown.append(trial)
        return (trial,)

    def take(self) -> tuple[int, ...]:
        """Return all jobs that are on the list, and empty it."""
        jobs = tuple(self._unshown)
        self._unshown.clear()
        self._resting = False
        return jobs

    @property
    def unshown(self) -> tuple[int, ...]:
        """The jobs that are on the list."""
        return tuple(self._unshown)

    def rest(self) -> None:
        """Ask again only when another job is done."""
        self._resting = True

    def wake(self) -> None:
        """Ask again, even if no other job is done."""
        self._resting = False


class AsSuggested:
    """Shows jobs in the order in which they were suggested, not in the order in which they are done.

    The question for job `n` comes after jobs `0` to `n - horizon` have been shown and no others, and one job more for
    each time that the optimizer had nothing to suggest. So what it sees depends only on its own answers.

    Args:
        horizon: How many jobs may be suggested ahead of the last one shown, at least 1.
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
        """Mark the job, and return the jobs that are now done together with all jobs before them."""
        self._done.add(self._begun.pop(trial))
        since = self._in_order
        while self._in_order in self._done:
            self._done.remove(self._in_order)
            self._in_order += 1
        return tuple(self._jobs[number - self._shown] for number in range(since, self._in_order))

    def take(self) -> tuple[int, ...]:
        """Return exactly the jobs that the next question must come after."""
        due = max(self._shown, self._due, self._count - self._horizon + 1)
        jobs = tuple(self._jobs.popleft() for _ in range(due - self._shown))
        self._shown = due
        return jobs

    @property
    def unshown(self) -> tuple[int, ...]:
        """All jobs from the first that was not shown, done or not."""
        return tuple(self._jobs)

    def rest(self) -> None:
        """Ask again only after one more job is done, and show it then; without another job never."""
        self._due = self._shown + 1

    def wake(self) -> None:
        """Do nothing: the moment of a decision depends on timing, which must not matter here."""
