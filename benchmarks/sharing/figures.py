"""What is measured in the rig: bytes by the tenth of a second, shares of the link, and how equal they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from namespaces import RECEIVER, Rig

STEP_S = 0.1
OVERHEAD = 1.045
"""What TCP, IP and Ethernet add to each packet counts as used."""


@dataclass(frozen=True)
class Times:
    """How long the background is alone, beside the foreground, and alone again."""

    alone_s: float = 12.0
    beside_s: float = 10.0
    after_s: float = 10.0

    @property
    def all_s(self) -> float:
        return self.alone_s + self.beside_s + self.after_s


@dataclass(frozen=True)
class Figures:
    """Shares of the link: of the foreground in its first 5 s and later, of the background before; time to come back."""

    first: float
    later: float
    idle: float
    back_s: float | None

    def row(self, name: str, buffer_ms: float) -> str:
        back = "not" if self.back_s is None else f"{self.back_s:.1f} s"
        return (
            f"| {buffer_ms:.0f} ms | {name:34} | {self.first:5.0%} | {self.later:5.0%} | {self.idle:5.0%} | {back:>7} |"
        )


def counts_of(text: str) -> dict[int, int]:
    """Read what a receiver printed."""
    return {int(moment): int(count) for moment, _, count in (item.partition(":") for item in text.split())}


class Receiver:
    """A receiver inside the rig that counts bytes by the tenth of a second."""

    def __init__(self, made: Rig, port: int) -> None:
        self._process = made.python(made.receiver, "flows.py", "receive", RECEIVER, str(port))
        assert self._process.stdout
        assert self._process.stdout.readline() == "ready\n"

    def counts(self) -> dict[int, int]:
        return counts_of(self._process.communicate(timeout=20)[0])


def share(counts: dict[int, int], begin: float, end: float, mbit: float) -> float:
    """Return the share of the link between two moments."""
    return rate(counts, begin, end) * OVERHEAD * 8e-6 / mbit


def rate(counts: dict[int, int], begin: float, end: float) -> float:
    """Return the bytes of a second between two moments."""
    steps = range(round(begin / STEP_S), round(end / STEP_S))
    return sum(counts.get(step, 0) for step in steps) / (len(steps) * STEP_S)


def jain(shares: Sequence[float]) -> float:
    """Return Jain's index: 1 if all are equal, 1/n if one has everything."""
    squares = sum(one**2 for one in shares)
    return sum(shares) ** 2 / len(shares) / squares if squares else 0.0
