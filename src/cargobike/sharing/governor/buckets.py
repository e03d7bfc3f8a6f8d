"""A token bucket: how long to wait so that a rate is kept where the kernel does not pace."""

from __future__ import annotations

BURST_S = 0.05
SMALLEST_BURST = 65536


class TokenBucket:
    """Counts bytes against a rate. No clock and no lock of its own: the caller has both.

    What is taken may exceed what is there: then the next one waits. So a message larger than the bucket passes, and the
    rate is kept on average.
    """

    def __init__(self, rate: float | None, now: float) -> None:
        self._rate = rate
        self._tokens = 0.0
        self._filled = now

    @property
    def rate(self) -> float | None:
        """Bytes a second; None is no limit, 0 is a pause."""
        return self._rate

    def set_rate(self, rate: float | None, now: float) -> None:
        """Change the rate; what has been taken before counts at the old one."""
        self._fill(now)
        self._rate = rate
        if rate is None:
            self._tokens = 0.0

    def delay(self, now: float) -> float | None:
        """Return the seconds until bytes may be taken: 0 for at once, None for as long as the rate is 0."""
        if self._rate is None:
            return 0.0
        self._fill(now)
        if self._rate <= 0:
            return None
        return max(0.0, -self._tokens / self._rate)

    def take(self, count: int, now: float) -> None:
        """Count bytes that go now."""
        if self._rate is not None:
            self._fill(now)
            self._tokens -= count

    def _fill(self, now: float) -> None:
        rate = self._rate or 0.0
        room = max(SMALLEST_BURST, rate * BURST_S)
        self._tokens = min(room, self._tokens + rate * max(0.0, now - self._filled))
        self._filled = max(self._filled, now)
