"""The ports of a deployment: the socket for HTTP, which outlives fronts, and the port for gRPC, held for them."""

from __future__ import annotations

import contextlib
import socket

from cargobike.core.errors import DeploymentError
from cargobike.serving.record import DeploymentRecord
from cargobike.serving.supervising.crew import Crew


def listen(crew: Crew, record: DeploymentRecord) -> None:
    """Open the listening socket, unless an earlier supervisor's is still there, and take the port for gRPC.

    Raises:
        DeploymentError: If a port that was asked for is taken.
    """
    specification = record.specification
    address = specification.host
    if crew.listener is None and crew.front is None:
        if specification.port:
            crew.listener = _bind(record, address, specification.port)
        else:
            try:
                crew.listener = _bind(record, address, record.port)  # the one that callers know
            except DeploymentError:
                crew.listener = _bind(record, address, 0)
    if crew.listener is not None:
        record.port = crew.listener.getsockname()[1]
    port = record.port
    crew.bind = lambda: _bind(record, address, port)
    if specification.grpc_port is not None:
        _take_grpc_port(crew, record, specification.grpc_port)


def _bind(record: DeploymentRecord, address: str, port: int) -> socket.socket:
    listener = _new_socket(address)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise _taken(record, address, port, error, "port") from error
    return listener


def _take_grpc_port(crew: Crew, record: DeploymentRecord, asked: int) -> None:
    address = record.specification.host
    if crew.front is not None and record.grpc_port:  # it listens there itself
        with contextlib.suppress(OSError):
            crew.grpc_hold = hold_port(address, record.grpc_port, is_shared=True)
    else:
        try:
            crew.grpc_hold = hold_port(address, asked or record.grpc_port)
        except OSError as error:
            if asked:
                raise _taken(record, address, asked, error, "grpc") from error
            crew.grpc_hold = hold_port(address, 0)
        record.grpc_port = crew.grpc_hold.getsockname()[1]
    crew.grpc_port = record.grpc_port


def hold_port(address: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """Bind a port without listening, so that only processes of this user that share ports on purpose can use it.

    gRPC opens its sockets itself and cannot be given one. So the port is taken first, alone, which fails if another
    process has it; only then it is opened for sharing, with fronts that come and go. Connections never reach this
    socket: while there is no front they are refused.

    Args:
        address: An address of this machine.
        port: The port; 0 for any that is free.
        is_shared: Whether a front has it already.

    Raises:
        OSError: If it is taken.
    """
    held = _new_socket(address)
    try:
        # Connections of a front that has ended linger for a minute; they do not count.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(is_shared))
        held.bind((address, port))
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        held.close()
        raise
    return held


def _new_socket(address: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)


def _taken(record: DeploymentRecord, address: str, port: int, error: OSError, argument: str) -> DeploymentError:
    return DeploymentError(
        f"{record.specification.name} cannot listen on {address}:{port}: {error.strerror}. Choose another port "
        f"({argument}=0 takes any that is free), or end what uses it."
    )
