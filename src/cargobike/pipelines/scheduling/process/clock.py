"""The two clocks of a scheduler: what time it is, and how much has passed."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Time, real or made up for a test."""

    def now(self) -> float:
        """Return the time in seconds since 1970; it may be set back or forward at any moment."""
        ...

    def stopwatch(self) -> float:
        """Return seconds that only ever grow, from any start."""
        ...


class RealClock:
    """The clocks of this machine."""

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return time.time()

    def stopwatch(self) -> float:
        """Return seconds that only ever grow, also while the machine is suspended."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)
