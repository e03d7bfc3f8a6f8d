"""The assignments that an agent was given ahead: which of them the runner has, and which may still be taken back. Pure.

They are sent to the runner over a socket of their own, of which the agent holds both ends. What the runner reads, it
begins; what it has not read can be taken back by reading it here. So the kernel decides for each of them, once.
"""

from __future__ import annotations

from collections import deque

import msgspec

from cargobike.workers.wire.messages import Assign

MOST_SENT = 128
MOST_SENT_BYTES = 1 << 16
"""What certainly fits into the socket, so that sending never waits."""

Waiting = tuple[Assign[msgspec.Raw], bytes]


class Line:
    """The current assignment and those after it, as the runner is going to see them.

    Attributes:
        waiting: The assignments after the current one, in order.
        sent: How many were sent to the runner and have not ended: the current one, then as many of those after it.
    """

    def __init__(self) -> None:
        self.waiting: deque[Waiting] = deque()
        self.sent = 0
        self._sizes: deque[int] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self.waiting)

    @property
    def is_ahead(self) -> bool:
        """Whether the runner may go on from the current assignment to the next one by itself."""
        return self.sent > 1

    def was_sent(self, packet: bytes) -> None:
        """Note that the next one was sent."""
        self.sent += 1
        self._sizes.append(len(packet))
        self._bytes += len(packet)

    def ended(self) -> None:
        """Note that the current one has ended."""
        if self.sent:
            self.sent -= 1
            self._bytes -= self._sizes.popleft()

    def taken_back(self, count: int) -> None:
        """Note that the last ones that were sent have not been begun."""
        for _ in range(min(count, self.sent)):
            self.sent -= 1
            self._bytes -= self._sizes.pop()

    def next_packet(self) -> bytes | None:
        """Return the next one to send after the current one; `None` if there is none, or enough is on its way."""
        if self.sent and self.sent <= len(self.waiting) and self.sent < MOST_SENT and self._bytes < MOST_SENT_BYTES:
            packet = self.waiting[self.sent - 1][1]
            return packet if self._bytes + len(packet) <= MOST_SENT_BYTES else None
        return None

    def clear(self) -> list[int]:
        """Remove those that wait and were not sent; returns their tasks."""
        kept = max(0, self.sent - 1)
        tasks = [assign.task for assign, _ in list(self.waiting)[kept:]]
        while len(self.waiting) > kept:
            self.waiting.pop()
        return tasks
