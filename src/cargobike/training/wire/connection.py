"""Sockets between workers and servers: listening, connecting, and how much the way between them can be trusted.

A server listens on TCP and, for workers of the same user on its own machine, on a Unix socket, which is faster. Its
name is in the kernel's memory (there is no file to leave behind), where any user may take it first; so both ends ask
the kernel who the other is, and pass by whoever is another user.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import struct
import time

from cargobike.core.errors import ConnectionLostError, MissingLibraryError
from cargobike.training.wire.channel import Channel
from cargobike.training.wire.handshake import (
    GREETING_BYTES,
    PARAMETER_SERVER,
    VERDICT_BYTES,
    WORDS,
    Dialect,
    WorkerHandshake,
    check_words,
)
from cargobike.training.wire.sealing import ENCRYPTED, TAGS, Suite

_CREDENTIALS = struct.Struct("3i")
HANDSHAKE_S = 10.0
_NEAR_HANDSHAKE_S = 3.0


def tune(connection: socket.socket) -> None:
    """Have small headers sent at once. Buffers are left to the kernel, which makes them larger than we may."""
    if connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def listen(host: str, port: int) -> tuple[str, list[socket.socket]]:
    """Listen for workers, also for those on this machine; return the address and the sockets.

    Raises:
        MissingLibraryError: If others could listen in, and what encrypts is not installed.
    """
    listeners = [socket.create_server((host, port), backlog=128)]
    host, port = listeners[0].getsockname()[:2]
    address = f"{host}:{port}"
    near = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _demand_encryption(host)
        near.bind(_near(address))
        near.listen(128)
        listeners.append(near)
    except OSError:  # the name is taken; then all come by the network
        near.close()
    except BaseException:
        for listener in (near, *listeners):
            listener.close()
        raise
    return address, listeners


def reach_far(address: str, secret: bytes, timeout_s: float, dialect: Dialect) -> Channel:
    """Connect over TCP alone, also on one machine, and accept nothing less than encryption.

    Raises:
        AuthenticationError: If either does not know the secret.
        MissingLibraryError: If what encrypts is not installed.
        OSError: If the other end cannot be reached, or does not answer.
    """
    host, _, port = address.rpartition(":")
    far = socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s)
    deadline = time.monotonic() + min(timeout_s, HANDSHAKE_S)
    return _proved(far, None, secret, address, deadline, dialect=dialect, demanded=ENCRYPTED)


def reach(address: str, secret: bytes, timeout_s: float) -> Channel:
    """Connect to a server; prove that we belong to it, and have it prove that it belongs to us.

    On its own machine that goes past the network, which costs more than half of the time. Who listens there as another
    user, or without knowing the secret, is passed by.

    Raises:
        AuthenticationError: If either does not know the secret.
        MissingLibraryError: If the server is on another machine, and what encrypts is not installed.
        OSError: If the server cannot be reached, or does not answer.
    """
    deadline = time.monotonic() + timeout_s
    with contextlib.suppress(OSError):
        near = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        near.settimeout(timeout_s)
        return _proved(near, _near(address), secret, address, min(deadline, time.monotonic() + _NEAR_HANDSHAKE_S))
    host, _, port = address.rpartition(":")
    far = socket.create_connection((host, int(port)), timeout=max(0.1, deadline - time.monotonic()))
    return _proved(far, None, secret, address, time.monotonic() + HANDSHAKE_S)


def _proved(
    connection: socket.socket,
    name: str | None,
    secret: bytes,
    peer: str,
    deadline: float,
    *,
    dialect: Dialect = PARAMETER_SERVER,
    demanded: Suite | None = None,
) -> Channel:
    try:
        if name is not None:
            connection.connect(name)
            if not is_own_user(connection):
                raise ConnectionLostError("another user listens there")
        tune(connection)
        accepted = suites_for(connection) if demanded is None else demanded
        if not accepted:
            _demand_encryption(connection.getpeername()[0])
        words = _read_by(connection, len(WORDS), deadline)
        check_words(words, dialect)
        greeting = words + _read_by(connection, GREETING_BYTES - len(WORDS), deadline)
        handshake = WorkerHandshake(secret, accepted, greeting, dialect)
        connection.sendall(handshake.answer)
        return Channel(connection, handshake.conclude(_read_by(connection, VERDICT_BYTES, deadline)), peer)
    except BaseException:
        connection.close()
        raise


def _read_by(connection: socket.socket, length: int, deadline: float) -> bytes:
    data = b""
    while len(data) < length:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        more = connection.recv(length - len(data))
        if not more:
            raise ConnectionLostError("the other end has closed the connection before anything was proved")
        data += more
    return data


def _near(address: str) -> str:
    """Return a name that exists only in this machine's memory, and only for its own network."""
    return f"\0cargobike {address}"


def is_own_user(connection: socket.socket) -> bool:
    """Tell whether the kernel says that a process of our own user is at the other end of a Unix socket."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(found)
    return bool(user == os.geteuid())


def suites_for(connection: socket.socket) -> Suite:
    """Return what may protect a connection: on this machine tags do, and what can leave it must be encrypted."""
    if connection.family == socket.AF_UNIX:
        return TAGS
    ends = (connection.getsockname()[0], connection.getpeername()[0])
    return TAGS | ENCRYPTED if all(is_loopback(host) for host in ends) else ENCRYPTED


def is_loopback(host: str) -> bool:
    """Tell whether an address, as the kernel gives it, cannot be reached from other machines."""
    return ipaddress.ip_address(host).is_loopback


def _demand_encryption(host: str) -> None:
    if not is_loopback(host) and not ENCRYPTED:
        raise MissingLibraryError(
            f"A server at {host} is reached over a network, where its connections must be encrypted, and the "
            "package cryptography is not installed. Install it on all machines (pip install 'cargobike[torch]'), or "
            "let the server listen on 127.0.0.1.",
            name="cryptography",
        )
