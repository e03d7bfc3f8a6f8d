"""What the front needs of an inference log: a place to put requests and answers that never makes it wait."""

from __future__ import annotations

from typing import Any, Protocol


class Log(Protocol):
    """Keeps requests and answers.

    Guarantees: `take` never waits and never raises; what cannot be kept is counted.
    """

    def take(
        self,
        *,
        request_id: str,
        at: float,
        latency_s: float,
        version: int,
        status: int,
        rows: list[Any],
        answers: list[Any],
    ) -> None:
        """Keep one request and its answers."""
        ...

    def close(self) -> None:
        """Keep what was taken, and end."""
        ...


class NoLog:
    """Keeps nothing."""

    def take(self, **request: Any) -> None:
        """Keep nothing."""

    def close(self) -> None:
        """Do nothing."""
