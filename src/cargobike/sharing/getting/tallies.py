"""What each source of a fetch has delivered, and what it is doing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cargobike.core.errors import WaitError


@dataclass
class Tally:
    """What one source has delivered, and what it is doing."""

    name: str
    size: int = 0
    pieces: int = 0
    state: str = "connecting"
    blame: str = ""
    is_connected: bool = False


def standstill(what: str, tallies: Iterable[Tally]) -> WaitError:
    """Return the error for a fetch that stands still; it names every source."""
    names = [f"{tally.name} ({tally.state})" for tally in tallies]
    tried = ", ".join(names) or "no member is known; name one with --peer host:port"
    return WaitError(f"{what}. Tried: {tried}. Get it again to go on.", missing=names)
