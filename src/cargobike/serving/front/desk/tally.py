"""Counts of what happened at one version: for metrics, and for the supervisor that scales and judges by them."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from cargobike.serving.wire import VersionLoad

SHORTEST_S: Final = 0.0001
BUCKETS: Final = 20
"""Latencies of at most 0.1 ms, 0.2 ms, 0.4 ms … 26 s, and all longer ones."""


def bucket_of(latency_s: float) -> int:
    """Return the place of a latency among the buckets.

    Example:
        >>> bucket_of(0.0001), bucket_of(0.00011), bucket_of(0.0002), bucket_of(1000)
        (0, 1, 1, 19)
    """
    return min(BUCKETS - 1, (math.ceil(latency_s / SHORTEST_S - 1e-9) - 1).bit_length()) if latency_s > 0 else 0


class Tally(msgspec.Struct):
    """What happened since the start; never goes down."""

    answered: int = 0
    failed: int = 0
    differed: int = 0
    batches: int = 0
    rows: int = 0
    predict_s: float = 0.0
    latency_sum_s: float = 0.0
    latencies: list[int] = msgspec.field(default_factory=lambda: [0] * BUCKETS)

    def ended(self, status: int, latency_s: float) -> None:
        """Count a request; those that were wrong themselves count as answered."""
        if status >= 500:
            self.failed += 1
        else:
            self.answered += 1
        self.latency_sum_s += latency_s
        self.latencies[bucket_of(latency_s)] += 1

    def since(self, before: Tally) -> VersionLoad:
        """Return what happened after an earlier state."""
        return VersionLoad(
            answered=self.answered - before.answered,
            failed=self.failed - before.failed,
            latency_sum_s=self.latency_sum_s - before.latency_sum_s,
            latencies=[now - then for now, then in zip(self.latencies, before.latencies, strict=True)],
            differed=self.differed - before.differed,
        )

    def copy(self) -> Tally:
        """Return the state as it is now."""
        return msgspec.structs.replace(self, latencies=list(self.latencies))
