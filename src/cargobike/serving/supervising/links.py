"""The supervisor's side of its connections: to the front, to hosts, and to users."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from cargobike.core.running.ending import process_ending
from cargobike.serving.wire import Frames, Said, framed

T = TypeVar("T")

_SEND_S: Final = 5.0


class Process:
    """A process that we started, or that an earlier supervisor did; readable (`fileno`) once it has ended."""

    def __init__(self, pid: int, popen: subprocess.Popen[bytes] | None = None) -> None:
        self.pid = pid
        self._popen = popen
        self._handle = os.pidfd_open(pid)

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when it ends."""
        return self._handle

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end, and tell whether it came."""
        poller = select.poll()
        poller.register(self._handle, select.POLLIN)
        return bool(poller.poll(timeout_s * 1000))

    def ending(self) -> str:
        """Say how it ended."""
        if self._popen is None:
            return "ended"  # only the parent of a process is told more
        code = self._popen.wait()
        return str(process_ending(code))

    def close(self) -> None:
        """Forget it."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class Link(Generic[T]):
    """A connection over which typed messages come and go.

    Args:
        connection: The socket.
        kinds: The union of messages that may come.
    """

    def __init__(self, connection: socket.socket, kinds: Any) -> None:
        self._connection = connection
        connection.settimeout(_SEND_S)
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(kinds)
        self._frames = Frames()
        self.heard_at = time.monotonic()
        self.descriptors: list[int] = []
        """Descriptors that came with messages."""

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._connection.fileno()

    def say(self, message: Said) -> bool:
        """Send a message; returns whether that was possible."""
        try:
            self._connection.sendall(framed(message))
        except OSError:
            return False
        return True

    def hear(self) -> list[T] | None:
        """Return the messages that have come; `None` if the connection is closed, or what came makes no sense."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._connection, 1 << 18, 4)
        except OSError:
            return None
        for fd in descriptors:
            os.set_inheritable(fd, False)
        self.descriptors += descriptors
        if not data:
            return None
        self.heard_at = time.monotonic()
        try:
            return [self._decoder.decode(body) for body in self._frames.feed(data)]
        except (ValueError, msgspec.MsgspecError):
            return None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def connect(path: Path) -> socket.socket | None:
    """Connect to a socket of this deployment; `None` if no process listens there."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_SEND_S)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


def peer_pid(connection: socket.socket) -> int:
    """Return the process at the other end."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(data[:4], "little")
