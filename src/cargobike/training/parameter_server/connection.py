"""The connection between a worker and a server: proof first, then frames of a typed header and plain bytes.

Neither end reads a message before the other has proved that it knows the gang's secret (HMAC-SHA256 over both ends'
fresh random numbers). Bodies go from and into the memory they live in, without a copy.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any

from cargobike.core.errors import AuthenticationError, ConnectionLostError

_PREFIX = struct.Struct("!IQ")
_TIMEVAL = struct.Struct("@ll")
_NONCE = 32
_PROOF = 32
MAX_HEADER_BYTES = 1 << 20
HANDSHAKE_S = 20.0


def tune(connection: socket.socket) -> None:
    """Have small headers sent at once. Buffers are left to the kernel, which makes them larger than we may."""
    if connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def listen(host: str, port: int) -> tuple[str, list[socket.socket]]:
    """Listen for workers, also for those on this machine; return the address and the sockets."""
    listeners = [socket.create_server((host, port), backlog=128)]
    address = "{}:{}".format(*listeners[0].getsockname()[:2])
    near = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        near.bind(_near(address))
        near.listen(128)
        listeners.append(near)
    except OSError:  # the name is taken; then all come by the network
        near.close()
    return address, listeners


def reach(address: str, secret: bytes, timeout_s: float) -> socket.socket:
    """Connect to a server and prove that we belong to it, and it to us.

    On its own machine that goes past the network, which costs more than half of the time. Who listens there without
    knowing the secret is passed by.
    """
    with contextlib.suppress(OSError):
        near = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        near.settimeout(timeout_s)
        return _proved(near, _near(address), secret)
    host, _, port = address.rpartition(":")
    far = socket.create_connection((host, int(port)), timeout=timeout_s)
    return _proved(far, None, secret)


def _near(address: str) -> str:
    """Return a name that exists only in this machine's memory, and only for its own network."""
    return f"\0cargobike parameter server {address}"


def _proved(connection: socket.socket, name: str | None, secret: bytes) -> socket.socket:
    try:
        if name is not None:
            connection.connect(name)
        tune(connection)
        prove_as_worker(connection, secret)
    except BaseException:
        connection.close()
        raise
    return connection


def wait_in_kernel(connection: socket.socket, timeout_s: float | None) -> None:
    """Set a deadline for each wait, without Python's own, which would go back and forth for every few packets."""
    connection.settimeout(None)
    whole = 0 if timeout_s is None else int(timeout_s)
    limit = _TIMEVAL.pack(whole, 0 if timeout_s is None else int(1e6 * (timeout_s - whole)))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def prove_as_server(connection: socket.socket, secret: bytes) -> None:
    """Admit a worker if it knows the secret.

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


def send_frame(connection: socket.socket, header: bytes, body: Sequence[memoryview] = ()) -> int:
    """Send a header and a body that lies in several pieces of memory; return the bytes sent."""
    length = sum(len(piece) for piece in body)
    pieces = [memoryview(_PREFIX.pack(len(header), length) + header), *(piece for piece in body if len(piece))]
    total = len(pieces[0]) + length
    while pieces:
        try:
            sent = connection.sendmsg(pieces)
        except BlockingIOError:
            raise TimeoutError("nothing is taken") from None
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
        raise ConnectionLostError(f"a header of {header_length} bytes is not one of ours")
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
