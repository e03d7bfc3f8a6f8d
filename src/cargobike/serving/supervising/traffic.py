"""Adding up what the front says about requests, for the last minute and since the start."""

from __future__ import annotations

from collections import deque
from typing import Final

from cargobike.serving.status import Traffic
from cargobike.serving.wire import Load

_MINUTE_S: Final = 60.0
_RATE_S: Final = 10.0
_FIRST_MS: Final = 0.1


class TrafficCount:
    """Counts requests."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, Load]] = deque()
        self._answered = self._failed = self._refused = 0
        self._last = Load(0.0, 0, 0, 0, 0.0)
        self._since: float | None = None

    def add(self, at: float, load: Load) -> None:
        """Take in what happened since the last message."""
        self._since = at if self._since is None else self._since
        self._last = load
        self._refused += load.refused
        for version in load.versions.values():
            self._answered += version.answered
            self._failed += version.failed
        if load.arrived or load.versions or load.refused:
            self._recent.append((at, load))
        while self._recent and self._recent[0][0] < at - _MINUTE_S:
            self._recent.popleft()

    def summary(self, at: float) -> Traffic:
        """Return the traffic now."""
        span_s = min(_RATE_S, max(1.0, at - (self._since if self._since is not None else at)))
        arrived = sum(load.arrived for when, load in self._recent if when > at - _RATE_S)
        counts: list[int] = []
        for when, load in self._recent:
            if when < at - _MINUTE_S:
                continue
            for version in load.versions.values():
                counts += [0] * (len(version.latencies) - len(counts))
                for place, count in enumerate(version.latencies):
                    counts[place] += count
        return Traffic(
            per_s=arrived / span_s,
            waiting=self._last.waiting,
            at_work=self._last.at_work,
            p50_ms=quantile_ms(counts, 0.5),
            p99_ms=quantile_ms(counts, 0.99),
            answered=self._answered,
            failed=self._failed,
            refused=self._refused,
        )


def quantile_ms(counts: list[int], share: float) -> float | None:
    """Return how long a share of requests took at most, between the bounds of the histogram's classes.

    Example:
        >>> quantile_ms([0, 0, 10], 0.5)
        0.3
    """
    total = sum(counts)
    if not total:
        return None
    wanted, below = share * total, 0
    for place, count in enumerate(counts):
        if count and below + count >= wanted:
            upper = _FIRST_MS * 2.0**place
            lower = upper / 2 if place else 0.0
            return round(lower + (upper - lower) * (wanted - below) / count, 3)
        below += count
    return _FIRST_MS * 2.0 ** (len(counts) - 1)
