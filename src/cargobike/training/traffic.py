"""Counts what a rank hands to the network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Traffic:
    """What one rank has given to collectives or sent to servers since it began.

    Counted is the payload of this rank, before the collective's own algorithm multiplies it (a ring sends about twice
    as much). `raw_bytes` is what the same exchanges would have been without compression.
    """

    rounds: int = 0
    sent_bytes: int = 0
    raw_bytes: int = 0

    @property
    def ratio(self) -> float:
        """How many times smaller the traffic was than without compression."""
        return self.raw_bytes / self.sent_bytes if self.sent_bytes else 1.0

    def add(self, sent_bytes: int, raw_bytes: int, rounds: int = 1) -> None:
        """Count one exchange."""
        self.rounds += rounds
        self.sent_bytes += sent_bytes
        self.raw_bytes += raw_bytes
