"""Which executors get no more workers, because workers or trials keep dying on them and on no other."""

from __future__ import annotations

MOST_DEATHS = 2


class Exclusion:
    """Counts deaths in a row on each executor; a proper end sets the count back to 0.

    A train function that crashes everywhere is not an executor's fault: one is excluded only if others do well.

    Args:
        most_deaths: How many deaths in a row an executor may have; with one more it is excluded for good.
    """

    def __init__(self, most_deaths: int = MOST_DEATHS) -> None:
        self._most_deaths = most_deaths
        self._deaths: dict[str, int] = {}
        self._excluded: set[str] = set()

    def note(self, executor: str, *, died: bool) -> bool:
        """Count how a worker or a trial ended; returns whether that excludes its executor."""
        self._deaths[executor] = self._deaths.get(executor, 0) + 1 if died else 0
        if self._deaths[executor] <= self._most_deaths or executor in self._excluded:
            return False
        if not any(deaths == 0 for other, deaths in self._deaths.items() if other not in self._excluded):
            return False
        self._excluded.add(executor)
        return True

    def is_excluded(self, executor: str) -> bool:
        """Tell whether an executor gets no more workers."""
        return executor in self._excluded
