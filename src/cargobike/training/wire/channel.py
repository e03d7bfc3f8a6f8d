"""Frames between a worker and a server that have proved themselves: the header of a typed message, and a body of bytes.

A frame is two lengths, the header, and the body in pieces, each sealed. Lengths have a length that is known, are not
believed before their seal has opened, and are bounded then; nothing of a header is decoded before its seal has opened,
and no byte of a body leaves this file before its piece's has. Bodies are sent from the memory where they lie, and end
in the memory where they are wanted.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cargobike.core.errors import ConnectionLostError
from cargobike.training.wire.handshake import Seals
from cargobike.training.wire.sealing import BODY, HEAD, LENGTHS, TAG_BYTES, Memory

_LENGTHS = struct.Struct("!IQ")
_TIMEVAL = struct.Struct("@ll")
MAX_HEADER_BYTES = 1 << 20
PIECE_BYTES = 1 << 18
"""How much of a body is sealed at once: so much that a seal costs little, so little that it stays in the cache."""


class Channel:
    """One end of a connection whose ends know each other. Not for several threads, nor for a forked child.

    Attributes:
        peer: What to call the other end in messages.
        binding: The same at both ends, and of no other connection: what an end signs to prove who it is.
        socket: The connection itself, for what only the kernel knows or can set; nothing is sent or read past a seal.
    """

    def __init__(self, connection: socket.socket, seals: Seals, peer: str) -> None:
        self.peer = peer
        self.binding = seals.binding
        self.socket = connection
        self._socket, self._seals = connection, seals
        self._process = os.getpid()
        self._arrival = memoryview(bytearray(PIECE_BYTES + TAG_BYTES))
        self._opened: memoryview = memoryview(b"")
        self._unread = 0

    def wait_in_kernel(self, timeout_s: float | None) -> None:
        """Set a deadline for each wait, without Python's own, which would go back and forth for every few packets."""
        self._socket.settimeout(None)
        whole = 0 if timeout_s is None else int(timeout_s)
        limit = _TIMEVAL.pack(whole, 0 if timeout_s is None else int(1e6 * (timeout_s - whole)))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def send(self, header: bytes, body: Sequence[memoryview] = ()) -> int:
        """Send a header and a body that lies in several pieces of memory; return the bytes sent.

        Raises:
            TimeoutError: If nothing is taken for too long.
            ConnectionError: If the other end is gone.
        """
        if os.getpid() != self._process:  # two processes that count alike would seal two things with one number
            raise ConnectionLostError("this connection belongs to the process that forked this one")
        seal = self._seals.sending.seal
        lengths = _LENGTHS.pack(len(header), sum(len(part) for part in body))
        ready: list[Memory] = [*seal(LENGTHS, lengths), *seal(HEAD, header)]
        total = 0
        for piece in _pieces(body):
            ready.extend(seal(BODY, piece))
            total += _send_all(self._socket, ready)
            ready = []
        return total + _send_all(self._socket, ready)

    def receive_header(self) -> tuple[bytes, int]:
        """Return the next frame's header and the length of the body that follows.

        Raises:
            ConnectionLostError: If the other end has closed.
            FrameError: If the frame is not the next one that was sent.
        """
        if self._unread or len(self._opened):
            raise ConnectionLostError("the body of the frame before was not read")
        header_length, body_length = _LENGTHS.unpack(self._read_sealed(LENGTHS, _LENGTHS.size))
        if header_length > MAX_HEADER_BYTES:
            raise ConnectionLostError(f"a header of {header_length} bytes is not one of ours")
        header = bytes(self._read_sealed(HEAD, header_length))
        self._unread = body_length
        return header, body_length

    def _read_sealed(self, kind: bytes, length: int) -> Memory:
        sealed = memoryview(bytearray(length + TAG_BYTES))
        read_into(self._socket, sealed)
        return self._seals.receiving.open(kind, sealed)

    def read_into(self, target: memoryview) -> None:
        """Fill a stretch of memory with what comes next of the body.

        Raises:
            ConnectionLostError: If the other end closes before it is full.
            FrameError: If what came was not what was sent; nothing of that piece is in the target then.
            TimeoutError: If nothing comes for too long.
        """
        position = 0
        while position < len(target):
            if not len(self._opened):
                self._opened = self._next_piece()
            count = min(len(self._opened), len(target) - position)
            target[position : position + count] = self._opened[:count]
            self._opened = self._opened[count:]
            position += count

    def _next_piece(self) -> memoryview:
        length = min(PIECE_BYTES, self._unread)
        if not length:
            raise ConnectionLostError("a body is shorter than what it was to hold")
        self._unread -= length
        sealed = self._arrival[: length + TAG_BYTES]
        read_into(self._socket, sealed)
        return memoryview(self._seals.receiving.open(BODY, sealed))

    def fileno(self) -> int:
        """Return the descriptor, to wait for a frame without reading: nothing is read ahead of what is asked for."""
        return self._socket.fileno()

    def shut(self) -> None:
        """End the conversation, also for a thread that is waiting in it."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def _pieces(body: Sequence[memoryview]) -> Iterator[Memory]:
    """Cut a body in pieces of the same length, except for the last; only those that span parts are copied."""
    started = bytearray()
    for part in body:
        begin = 0
        if started:
            begin = min(PIECE_BYTES - len(started), len(part))
            started += part[:begin]
            if len(started) < PIECE_BYTES:
                continue
            yield started
            started = bytearray()
        whole = begin + (len(part) - begin) // PIECE_BYTES * PIECE_BYTES
        for position in range(begin, whole, PIECE_BYTES):
            yield part[position : position + PIECE_BYTES]
        started += part[whole:]
    if started:
        yield started


def _send_all(connection: socket.socket, pieces: list[Memory]) -> int:
    left = [memoryview(piece) for piece in pieces if len(piece)]
    total = sum(len(piece) for piece in left)
    while left:
        try:
            sent = connection.sendmsg(left)
        except BlockingIOError:
            raise TimeoutError("nothing is taken") from None
        while left and sent >= len(left[0]):
            sent -= len(left.pop(0))
        if sent:
            left[0] = left[0][sent:]
    return total


def read_into(connection: socket.socket, target: memoryview) -> None:
    """Fill a stretch of memory from a socket.

    Raises:
        ConnectionLostError: If the other end closes before it is full.
        TimeoutError: If nothing comes for too long.
    """
    position = 0
    flags = socket.MSG_WAITALL if connection.gettimeout() is None else 0
    while position < len(target):
        try:
            count = connection.recv_into(target[position:], 0, flags)
        except BlockingIOError:
            raise TimeoutError("nothing came") from None
        if count == 0:
            raise ConnectionLostError("the other end has closed the connection")
        position += count


class Inbox:
    """Memory for bodies that is kept from one frame to the next."""

    def __init__(self, make: Callable[[int], tuple[Any, memoryview]]) -> None:
        self._make = make
        self._tensor, self._view = make(0)

    def receive(self, channel: Channel, length: int) -> Any:
        """Receive a body and return it as a tensor of bytes, valid until the next call."""
        if length > len(self._view):
            self._tensor, self._view = self._make(length)
        channel.read_into(self._view[:length])
        return self._tensor[:length]
