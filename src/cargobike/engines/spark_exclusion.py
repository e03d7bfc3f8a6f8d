"""Which executors get no more workers, because workers keep dying on them."""

from __future__ import annotations

MOST_DEATHS = 2


class Exclusion:
    """Counts deaths in a row on each executor; a worker that ends as it should wipes the slate clean.

    Args:
        most_deaths: How many an executor may have; with one more it is excluded for good.
    """

    def __init__(self, most_deaths: int = MOST_DEATHS) -> None:
        self._most_deaths = most_deaths
        self._deaths: dict[str, int] = {}

    def note(self, executor: str, *, died: bool) -> bool:
        """Take in the end of a worker; returns whether that was the one that excludes its executor."""
        deaths = self._deaths.get(executor, 0)
        if not died:
            if not self.is_excluded(executor):
                self._deaths[executor] = 0
            return False
        self._deaths[executor] = deaths + 1
        return deaths + 1 == self._most_deaths + 1

    def is_excluded(self, executor: str) -> bool:
        """Tell whether an executor gets no more workers."""
        return self._deaths.get(executor, 0) > self._most_deaths
