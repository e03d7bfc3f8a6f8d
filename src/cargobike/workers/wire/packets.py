"""Packets between the processes of one worker."""

from __future__ import annotations

import mmap
import socket

LARGEST = 1 << 20


class PacketReader:
    """Receives packets into one buffer: asking the socket for a megabyte each time would cost more than the packet.

    The buffer takes only as much memory as the largest packet so far: there are two for each worker of a machine, and a
    runner that begins would have to fill a megabyte with zeros first.
    """

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self._buffer = memoryview(mmap.mmap(-1, LARGEST, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))

    def receive(self, *, wait: bool) -> bytes | None:
        """Return a packet, empty if the other side is gone, or `None` if there is none yet and `wait` is false.

        A process that is killed while it waits leaves the packet unread, even if the packet comes before the process
        has ended: it sleeps in a call that takes nothing.
        """
        if wait:
            self._source.recv_into(self._buffer, 1, socket.MSG_PEEK)
        try:
            size = self._source.recv_into(self._buffer, 0, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        return bytes(self._buffer[:size])
