"""How many replicas there should be: more at once when load rises, fewer only when it has stayed low for a while."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

import msgspec

from cargobike.serving.specification import Scaling
from cargobike.serving.wire import Load

RATE_WINDOW_S: Final = 1.0
"""Over how long requests per second are counted."""
_SLACK_S: Final = 1e-6


class Scaler:
    """Decides how many replicas there should be.

    Guarantees: the answer is never outside the bounds; a step up is answered by the first decision that sees it; the
    answer falls only to the most that was needed during the last `window_s`, so that load which comes and goes faster
    than that does not move it. With `least=0` it falls to 0 after `idle_s` without a request, and back to 1 at once
    when one comes.
    """

    def __init__(self, scaling: Scaling, at: float, replicas: int | None = None) -> None:
        self.scaling = scaling
        self._needed: deque[tuple[float, int]] = deque()
        self._arrived: deque[tuple[float, int]] = deque()
        self._busy_at = at
        self._began_at = at
        self.replicas = min(max(scaling.least, 1 if replicas is None else replicas), scaling.most)
        """The answer."""

    def bound(self, at: float, least: int, most: int) -> None:
        """Change the bounds."""
        self.scaling = msgspec.structs.replace(self.scaling, least=least, most=most)
        self._needed.clear()
        self._began_at = at
        self.replicas = max(min(self.replicas, most), least)

    def see(self, at: float, load: Load) -> int:
        """Take in how busy it is, and return how many replicas there should be."""
        if load.arrived or load.waiting or load.at_work:
            self._busy_at = at
        needed = self._bounded(self._need(at, load))
        while self._needed and self._needed[-1][1] <= needed:
            self._needed.pop()
        self._needed.append((at, needed))
        return self.decide(at)

    def decide(self, at: float) -> int:
        """Return how many replicas there should be, now that time has passed."""
        scaling = self.scaling
        if scaling.least == 0 and at - self._busy_at >= scaling.idle_s:
            self._needed.clear()
            self._began_at = at
            self.replicas = 0
            return 0
        while len(self._needed) > 1 and self._needed[0][0] < at - scaling.window_s:
            self._needed.popleft()
        most_needed = self._needed[0][1] if self._needed else self.replicas
        if most_needed > self.replicas or at - self._began_at >= scaling.window_s:
            self.replicas = most_needed
        return self.replicas

    def _need(self, at: float, load: Load) -> float:
        scaling = self.scaling
        if scaling.by == "concurrency":
            return (load.waiting + load.at_work) / scaling.target
        if scaling.by == "requests":
            return self._rate(at, load.arrived) / scaling.target
        # A queue that is twice as long as wanted needs at least one more; one that is much shorter needs fewer.
        ratio = load.longest_wait_s / scaling.target
        if ratio > 1.0:
            return self.replicas + max(1.0, min(self.replicas, self.replicas * (ratio - 1.0)))
        return self.replicas if ratio > 0.25 else self.replicas - 1

    def _rate(self, at: float, arrived: int) -> float:
        """Return requests per second, over the messages that fill the last second at least."""
        self._arrived.append((at, arrived))
        while len(self._arrived) > 2 and self._arrived[1][0] <= at - RATE_WINDOW_S + _SLACK_S:
            self._arrived.popleft()
        if len(self._arrived) == 1:
            return arrived / RATE_WINDOW_S
        span_s = max(at - self._arrived[0][0], RATE_WINDOW_S)
        return (sum(count for _, count in self._arrived) - self._arrived[0][1]) / span_s

    def _bounded(self, needed: float) -> int:
        most = self.scaling.most
        return min(max(math.ceil(min(needed, float(most)) - 1e-6), self.scaling.least, 1), most)
