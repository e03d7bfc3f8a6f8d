"""Carries requests to the coordinator in rank 0, and its decisions back: frames of typed messages over TCP.

Both ends prove that they know the gang's secret before anything is decoded. What frames can say is what `Request` and
`Agreed` can hold; nothing in them is run.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cargobike.core.errors import AuthenticationError, ConnectionLostError, WaitError
from cargobike.training.named.requests import Agreed, Request

_LENGTH = struct.Struct("!I")
_RANK = struct.Struct("!I")
_NONCE_BYTES: Final = 32
_MAX_FRAME_BYTES: Final = 1 << 26
_HANDSHAKE_S: Final = 10.0
_encode = msgspec.msgpack.Encoder().encode
_decode_requests = msgspec.msgpack.Decoder(list[Request]).decode
_decode_agreed = msgspec.msgpack.Decoder(list[Agreed]).decode


class Link:
    """One end of a connection whose ends know each other. One thread reads; writers take turns by a lock of theirs."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(None)
        self.connection = connection
        self._arrived = bytearray()

    def fileno(self) -> int:
        """Return what `select` wants."""
        return self.connection.fileno()

    def send(self, messages: Sequence[Request] | Sequence[Agreed]) -> None:
        """Send a frame."""
        data = _encode(messages)
        self.connection.sendall(_LENGTH.pack(len(data)) + data)

    def receive_requests(self) -> list[Request]:
        """Return the requests that have arrived, in order; waits for some."""
        return [request for frame in self._frames() for request in _decode_requests(frame)]

    def receive_agreed(self) -> list[list[Agreed]]:
        """Return the frames of decisions that have arrived, in order; waits for one."""
        return [_decode_agreed(frame) for frame in self._frames()]

    def _frames(self) -> list[bytes]:
        frames: list[bytes] = []
        while not frames:
            data = self.connection.recv(1 << 16)
            if not data:
                raise ConnectionLostError("the other end has closed the connection")
            self._arrived += data
            begin = 0
            while len(self._arrived) - begin >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(self._arrived, begin)
                if length > _MAX_FRAME_BYTES:
                    raise ConnectionLostError(f"a frame of {length} bytes is not one of ours")
                end = begin + _LENGTH.size + length
                if len(self._arrived) < end:
                    break
                frames.append(bytes(self._arrived[begin + _LENGTH.size : end]))
                begin = end
            del self._arrived[:begin]
        return frames

    def close(self) -> None:
        """End the conversation, also for a thread that waits in it."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def open_links(store: Any, rank: int, size: int, secret: bytes, timeout_s: float) -> dict[int, Link]:
    """Connect every rank with rank 0; returns the links of this one by rank.

    Raises:
        WaitError: If a rank does not come in time; the message names those that are missing.
        AuthenticationError: If what listens at rank 0's address does not know the secret.
    """
    if rank == 0:
        host = _own_address()
        with socket.create_server((host, 0), backlog=size) as listener:
            store.set("coordinator", f"{host}:{listener.getsockname()[1]}")
            return _admit(listener, size, secret, timeout_s)
    host, _, port = bytes(store.get("coordinator")).decode().rpartition(":")
    try:
        connection = socket.create_connection((host, int(port)), timeout=timeout_s)
        return {0: _introduce(connection, rank, secret)}
    except (TimeoutError, OSError) as error:
        if isinstance(error, AuthenticationError):
            raise
        raise WaitError(f"rank {rank} could not reach rank 0 at {host}:{port}: {error}") from error


def _own_address() -> str:
    """Return the address of this host that other ranks reach: the interface that gloo uses."""
    place = os.environ.get("MASTER_ADDR", "127.0.0.1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((place, 9))  # sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _admit(listener: socket.socket, size: int, secret: bytes, timeout_s: float) -> dict[int, Link]:
    links: dict[int, Link] = {}
    deadline = time.monotonic() + timeout_s
    while len(links) < size - 1:
        listener.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            missing = [str(rank) for rank in range(1, size) if rank not in links]
            for link in links.values():
                link.close()
            raise WaitError(
                f"ranks {', '.join(missing)} of {size} did not connect to rank 0 within {timeout_s:g} s.",
                missing=[f"rank {rank}" for rank in missing],
            ) from None
        rank = _check(connection, size, secret)
        if rank is None or rank in links:
            connection.close()  # a stranger, who must not end the job
        else:
            links[rank] = Link(connection)
    return links


def _check(connection: socket.socket, size: int, secret: bytes) -> int | None:
    """Return the rank that has proved itself, `None` if it has not."""
    connection.settimeout(_HANDSHAKE_S)
    nonce = os.urandom(_NONCE_BYTES)
    try:
        connection.sendall(nonce)
        answer = _exactly(connection, _RANK.size + _NONCE_BYTES + 32)
        said, proof = answer[:-32], answer[-32:]
        (rank,) = _RANK.unpack_from(said)
        if not hmac.compare_digest(proof, _proof(secret, b"rank", nonce + said)) or not 0 < rank < size:
            return None
        connection.sendall(_proof(secret, b"coordinator", said + nonce))
    except (OSError, ConnectionLostError):
        return None
    return int(rank)


def _introduce(connection: socket.socket, rank: int, secret: bytes) -> Link:
    connection.settimeout(_HANDSHAKE_S)
    nonce = _exactly(connection, _NONCE_BYTES)
    said = _RANK.pack(rank) + os.urandom(_NONCE_BYTES)
    connection.sendall(said + _proof(secret, b"rank", nonce + said))
    try:
        proof = _exactly(connection, 32)
    except (OSError, ConnectionLostError):
        proof = b""
    if not hmac.compare_digest(proof, _proof(secret, b"coordinator", said + nonce)):
        connection.close()
        raise AuthenticationError("what listens at rank 0's address does not know the gang's secret, or we do not")
    return Link(connection)


def _proof(secret: bytes, role: bytes, said: bytes) -> bytes:
    return hmac.new(secret, role + said, hashlib.sha256).digest()


def _exactly(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = connection.recv(length - len(data))
        if not more:
            raise ConnectionLostError("the other end has closed the connection before anything was proved")
        data += more
    return data
