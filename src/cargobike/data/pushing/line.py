"""One connection between a feeder and a node, as both ends use it: whole messages, one sender at a time."""

from __future__ import annotations

import select
import threading
from typing import Final

from cargobike.core.errors import ConnectionLostError
from cargobike.training.wire.channel import Channel

STALL_S: Final = 60.0
"""How long a message that has begun may stand still: by then the other end is gone, or stopped."""
LARGEST: Final = 1 << 31


class Line:
    """Sends and receives messages with their bodies. One thread may receive, any may send."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._sending = threading.Lock()
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN | select.POLLHUP)
        channel.wait_in_kernel(STALL_S)

    def send(self, header: bytes, body: bytes = b"") -> None:
        """Send one message.

        Raises:
            OSError: If the other end is gone, or takes nothing.
        """
        with self._sending:
            self._channel.send(header, [memoryview(body)] if body else [])

    def has_come(self, timeout_s: float) -> bool:
        """Wait for a message to begin; tells whether one has, or whether the other end is gone."""
        return bool(self._poll.poll(1000 * timeout_s))

    def receive(self) -> tuple[bytes, bytearray]:
        """Return the next message.

        Raises:
            OSError: If the other end is gone, or stands still in the middle of a message.
        """
        header, length = self._channel.receive_header()
        if length > LARGEST:
            raise ConnectionLostError(f"a message of {length} bytes is none of ours")
        body = bytearray(length)
        self._channel.read_into(memoryview(body))
        return header, body

    def fileno(self) -> int:
        """Return the descriptor of the connection."""
        return self._channel.fileno()

    def shut(self) -> None:
        """End the conversation, also for a thread that waits in it."""
        self._channel.shut()

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()
