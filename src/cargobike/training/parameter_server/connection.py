"""The connection between a worker and a server: proof first, then frames of a typed header and plain bytes.

Neither end reads a message before the other has proved that it knows the gang's secret (HMAC-SHA256 over both ends'
fresh random numbers). Bodies go from and into the memory they live in, without a copy.
"""

from __future__ import annotations

import hmac
import os
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any

from cargobike.core.errors import CargobikeError

_PREFIX = struct.Struct("!IQ")
_NONCE = 32
_PROOF = 32
MAX_HEADER_BYTES = 1 << 20
HANDSHAKE_S = 20.0


class AuthenticationError(CargobikeError, ConnectionError):
    """The other end does not know the gang's secret."""


class ConnectionLostError(CargobikeError, ConnectionError):
    """The other end has closed the connection or died."""


def tune(connection: socket.socket) -> None:
    """Have small headers sent at once. Buffers are left to the kernel, which makes them larger than we may."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def prove_as_server(connection: socket.socket, secret: bytes) -> None:
    """Let a worker in, if it knows the secret.

    Raises:
        AuthenticationError: If it does not.
    """
    connection.settimeout(HANDSHAKE_S)
    ours = os.urandom(_NONCE)
    connection.sendall(ours)
    answer = _read(connection, _NONCE + _PROOF)
    theirs, proof = answer[:_NONCE], answer[_NONCE:]
    if not hmac.compare_digest(proof, _prove(secret, b"worker", ours, theirs)):
        raise AuthenticationError("a connection did not know the gang's secret")
    connection.sendall(_prove(secret, b"server", theirs, ours))


def prove_as_worker(connection: socket.socket, secret: bytes) -> None:
    """Prove to a server that this worker belongs to the gang, and let it prove the same.

    Raises:
        AuthenticationError: If either does not know the secret.
    """
    connection.settimeout(HANDSHAKE_S)
    theirs = _read(connection, _NONCE)
    ours = os.urandom(_NONCE)
    connection.sendall(ours + _prove(secret, b"worker", theirs, ours))
    try:
        proof = _read(connection, _PROOF)
    except ConnectionLostError as error:
        raise AuthenticationError("the server closed the connection: it does not accept our secret") from error
    if not hmac.compare_digest(proof, _prove(secret, b"server", ours, theirs)):
        raise AuthenticationError("the server does not know the gang's secret")


def _prove(secret: bytes, role: bytes, first: bytes, second: bytes) -> bytes:
    return hmac.digest(secret, b"cargobike parameter server 1 " + role + first + second, "sha256")


def _read(connection: socket.socket, length: int) -> bytes:
    data = bytearray(length)
    read_into(connection, memoryview(data))
    return bytes(data)


def read_into(connection: socket.socket, target: memoryview) -> None:
    """Fill a stretch of memory from the connection.

    Raises:
        ConnectionLostError: If the other end closes before it is full.
    """
    position = 0
    while position < len(target):
        count = connection.recv_into(target[position:])
        if count == 0:
            raise ConnectionLostError("the other end has closed the connection")
        position += count


def send_frame(connection: socket.socket, header: bytes, body: Sequence[memoryview] = ()) -> int:
    """Send a header and a body that lies in several pieces of memory; return the bytes sent."""
    length = sum(len(piece) for piece in body)
    pieces = [memoryview(_PREFIX.pack(len(header), length) + header), *(piece for piece in body if len(piece))]
    total = len(pieces[0]) + length
    while pieces:
        sent = connection.sendmsg(pieces)
        while pieces and sent >= len(pieces[0]):
            sent -= len(pieces.pop(0))
        if sent:
            pieces[0] = pieces[0][sent:]
    return total


def receive_header(connection: socket.socket) -> tuple[bytes, int]:
    """Return the next frame's header and the length of the body that follows.

    Raises:
        ConnectionLostError: If the other end has closed.
        ConnectionError: If the header is longer than any of ours.
    """
    header_length, body_length = _PREFIX.unpack(_read(connection, _PREFIX.size))
    if header_length > MAX_HEADER_BYTES:
        raise ConnectionLostError(f"a header of {header_length} bytes is none of ours")
    return _read(connection, header_length), body_length


class Inbox:
    """Memory for bodies that is kept from one frame to the next."""

    def __init__(self, make: Callable[[int], tuple[Any, memoryview]]) -> None:
        self._make = make
        self._tensor, self._view = make(0)

    def receive(self, connection: socket.socket, length: int) -> Any:
        """Receive a body and return it as a tensor of bytes, valid until the next call."""
        if length > len(self._view):
            self._tensor, self._view = self._make(length)
        read_into(connection, self._view[:length])
        return self._tensor[:length]
