"""A program between workers and a parameter server that passes on what it likes.

It knows how frames are laid out (on one machine, where they are not encrypted), and nothing of the package.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal

TAG, LENGTHS, PIECE = 16, 12, 1 << 18
GREETING, ANSWER, VERDICT = 81, 113, 33
Direction = Literal["up", "down"]


@dataclass(frozen=True)
class Frame:
    """One frame that came by: `number` counts those of this direction and connection from 0."""

    connection: int
    direction: Direction
    number: int
    parts: tuple[bytes, ...]
    """The lengths, the header, the pieces of the body; each with its tag."""

    @property
    def data(self) -> bytes:
        return b"".join(self.parts)

    def flipped(self, position: int) -> bytes:
        changed = bytearray(self.data)
        changed[position] ^= 1 << position % 8
        return bytes(changed)


Tamper = Callable[[Frame], list[tuple[Direction, bytes]]]
"""What to send instead of a frame, and where to."""


def pass_on(frame: Frame) -> list[tuple[Direction, bytes]]:
    return [(frame.direction, frame.data)]


@dataclass
class Relay:
    """Listens, connects to the server for each that comes, and passes frames through `tamper`."""

    server: str
    tamper: Tamper = pass_on
    name: str | None = None
    """A name among Unix sockets to listen on, instead of TCP."""
    is_blind: bool = False
    """Whether frames are encrypted: then the relay passes on, and changes, mere bytes."""
    seen: list[Frame] = field(default_factory=list)
    connections: int = 0

    def __enter__(self) -> Relay:
        if self.name is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.address = "{}:{}".format(*self._listener.getsockname())
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(self.name)
            self._listener.listen()
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(30)
        for each in (self._listener, *self._sockets):
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                worker, _ = self._listener.accept()
                host, _, port = self.server.rpartition(":")
                ends = {"down": worker, "up": socket.create_connection((host, int(port)), timeout=30)}
                self._sockets.extend(ends.values())
                number, self.connections = self.connections, self.connections + 1
                ways: tuple[Direction, Direction] = ("up", "down")
                ready = threading.Barrier(2)
                for way in ways:
                    thread = threading.Thread(target=self._carry, args=(ends, way, number, ready))
                    self._threads.append(thread)
                    thread.start()

    def _carry(self, ends: dict[str, socket.socket], way: Direction, connection: int, ready: threading.Barrier) -> None:
        source, target = ends["down" if way == "up" else "up"], ends[way]
        with contextlib.suppress(OSError, EOFError, threading.BrokenBarrierError):
            for length in [ANSWER] if way == "up" else [GREETING, VERDICT]:
                target.sendall(_read(source, length))
            ready.wait(30)
            number = 0
            while True:
                parts = self._read_blindly(source) if self.is_blind else _read_frame(source)
                frame = Frame(connection, way, number, parts)
                self.seen.append(frame)
                for where, data in self.tamper(frame):
                    ends[where].sendall(data)
                number += 1
        ready.abort()
        for each in ends.values():
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _read_blindly(source: socket.socket) -> tuple[bytes, ...]:
        data = source.recv(1 << 16)
        if not data:
            raise EOFError
        return (data,)


def _read_frame(source: socket.socket) -> tuple[bytes, ...]:
    lengths = _read(source, LENGTHS + TAG)
    header, body = struct.unpack("!IQ", lengths[:LENGTHS])
    sizes = [header, *(min(PIECE, body - begin) for begin in range(0, body, PIECE))]
    return (lengths, *(_read(source, size + TAG) for size in sizes))


def _read(source: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = source.recv(length - len(data))
        if not more:
            raise EOFError
        data += more
    return data
