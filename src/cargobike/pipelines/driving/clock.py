"""The clock of a driver."""

from __future__ import annotations

import time


class Clock:
    """Seconds since the epoch, never running backwards."""

    def __init__(self) -> None:
        self._last = 0.0

    def now(self) -> float:
        """Return the time."""
        self._last = max(self._last, time.time())
        return self._last
