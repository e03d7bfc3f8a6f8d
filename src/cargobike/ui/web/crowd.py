"""Which connections to close, so that clients that hold theirs without need cannot keep others out.

A connection waits for its client when that has not sent a whole request yet, or does not read the answer. It may do so
for a while; when there are many connections, only for a moment, those that have waited longest first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, Protocol

PATIENCE_S: Final = 20.0
PATIENCE_IN_A_CROWD_S: Final = 1.0
CROWD: Final = 100


class Connection(Protocol):
    """A connection, as far as it matters here."""

    def waits_for(self) -> Hashable | None:
        """Return what it waits for its client to do, `None` if its client waits; another value means progress."""

    def close(self) -> None:
        """Close it now, whatever is on its way."""


class Crowd:
    """Remembers since when each connection has been waiting."""

    def __init__(self) -> None:
        self._since: dict[Connection, tuple[Hashable, float]] = {}

    def thin_out(self, connections: Iterable[Connection], now_s: float) -> int:
        """Close the connections that have waited too long; returns how many."""
        waiting: dict[Connection, tuple[Hashable, float]] = {}
        total = 0
        for connection in connections:
            total += 1
            what = connection.waits_for()
            if what is not None:
                before = self._since.get(connection)
                waiting[connection] = before if before is not None and before[0] == what else (what, now_s)
        closed = 0
        for connection, (_, since) in sorted(waiting.items(), key=lambda item: item[1][1]):
            patience_s = PATIENCE_IN_A_CROWD_S if total - closed > CROWD else PATIENCE_S
            if now_s - since < patience_s:
                break
            connection.close()
            del waiting[connection]
            closed += 1
        self._since = waiting
        return closed
