"""How long packets wait in queues: round trips now, against the shortest that the path has shown."""

from __future__ import annotations

import math
from collections import deque
from itertools import islice

HISTORY_S = 600.0
"""How long the shortest round trip counts, as in LEDBAT: others may keep a queue filled for minutes."""

BUCKET_S = 30.0
FILTER_S = 0.1
"""The smallest of so much time counts as the delay now: a pause of a process looks like a queue, but a short one."""

SHORTEST_S = 1e-6
"""Two looks that are closer than that say nothing about a rate."""

SOON = 3
LATELY_S = 1.0
NOISE_S = 4.0
LEAST_TARGET_S = 0.0025
MOST_TARGET_S = 0.020


class Delays:
    """Round trips of one path. Pure: times are given."""

    def __init__(self) -> None:
        self._history: deque[tuple[float, float]] = deque()
        self._recent: deque[tuple[float, float]] = deque()
        self._noise_s = 0.0
        self._now = -math.inf
        self.queueing_s = 0.0
        """The least of the last tenth of a second: what is certainly a queue."""
        self.soon_s = 0.0
        """The least of the last few looks: what `queueing_s` will be soon, or a process that was busy."""

    @property
    def base_s(self) -> float | None:
        """The shortest round trip of the last minutes; None before the first."""
        return min((rtt for _, rtt in self._history), default=None)

    @property
    def rtt_s(self) -> float:
        """The round trip now, with its queue."""
        return (self.base_s or 0.0) + self.queueing_s

    @property
    def target_s(self) -> float:
        """The queueing delay that is a queue: more than clocks and processes of both ends can do."""
        return min(MOST_TARGET_S, max(LEAST_TARGET_S, 0.002 + 2 * self._noise_s))

    def add(self, now: float, rtt_s: float) -> None:
        """Take a round trip that was measured now."""
        if not self._history or now - self._history[-1][0] >= BUCKET_S:
            self._history.append((now, rtt_s))
        elif rtt_s < self._history[-1][1]:
            self._history[-1] = (self._history[-1][0], rtt_s)
        while now - self._history[0][0] > HISTORY_S + BUCKET_S:
            self._history.popleft()
        self._recent.append((now, rtt_s))
        while len(self._recent) > 3 and now - self._recent[0][0] > FILTER_S:
            self._recent.popleft()
        lowest = min(rtt for _, rtt in self._recent)
        self.queueing_s = max(0.0, lowest - (self.base_s or 0.0))
        self.soon_s = max(0.0, min(rtt for _, rtt in islice(reversed(self._recent), SOON)) - (self.base_s or 0.0))
        if self.queueing_s < 2 * self.target_s:  # what others queue is not noise
            elapsed = min(NOISE_S, max(0.0, now - self._now))
            self._noise_s += (elapsed / NOISE_S) * (min(rtt_s - lowest, MOST_TARGET_S) - self._noise_s)
        self._now = now


class Counts:
    """What was delivered and lost lately, over a span that the round trip decides."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int, int, int]] = deque()
        self._losses: deque[tuple[float, int, int]] = deque()

    def add(self, now: float, delivered: int, segments: int, repeated: int, span_s: float) -> None:
        """Count what happened since the last look."""
        self._losses.append((now, repeated, segments))
        while now - self._losses[0][0] > LATELY_S:
            self._losses.popleft()
        self._looks.append((now, delivered, segments, repeated))
        while len(self._looks) > 2 and now - self._looks[1][0] >= span_s:
            self._looks.popleft()

    @property
    def delivered_rate(self) -> float:
        """Bytes a second; the first look of the span only says when it began."""
        if len(self._looks) < 2:
            return 0.0
        span = self._looks[-1][0] - self._looks[0][0]
        return (sum(look[1] for look in self._looks) - self._looks[0][1]) / span if span > SHORTEST_S else 0.0

    @property
    def lost(self) -> tuple[int, int]:
        """How many packets were sent again, and how many were sent in all."""
        return sum(look[3] for look in self._looks), sum(look[2] for look in self._looks)

    @property
    def lost_lately(self) -> tuple[int, int]:
        """The same of the last second."""
        return sum(one[1] for one in self._losses), sum(one[2] for one in self._losses)
