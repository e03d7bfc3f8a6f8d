"""How often a client may ask: a bucket for each that fills at a steady rate. Pure: time is passed in."""

from __future__ import annotations

from typing import Final

MOST_CLIENTS: Final = 10_000
"""How many clients are remembered; when there are more, those that have not asked for longest are forgotten."""


class Rates:
    """Counts the requests of each client.

    Args:
        per_s: How many a client may send in a second, on average and at once; 0 for any number.
    """

    def __init__(self, per_s: float) -> None:
        self.per_s = per_s
        self._burst = max(1.0, per_s)
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait_s(self, client: str, now_s: float) -> float:
        """Count a request; return 0, or how long the client has to wait before it may send one."""
        level, since_s = self._buckets.pop(client, (self._burst, now_s))
        level = min(self._burst, level + (now_s - since_s) * self.per_s)
        wait = 0.0 if level >= 1.0 else (1.0 - level) / self.per_s
        self._buckets[client] = (level - (wait == 0.0), now_s)
        if len(self._buckets) > MOST_CLIENTS:
            del self._buckets[next(iter(self._buckets))]
        return wait
