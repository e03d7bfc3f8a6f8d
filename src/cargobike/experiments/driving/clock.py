"""The time that a driver goes by."""

from __future__ import annotations

import time


class Clock:
    """The driver's time: seconds since the epoch that never run backwards, even if the wall clock is set."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Return the time."""
        return time.monotonic() + self._offset
