"""What users' processes say to a supervisor, and how: one request and its reply on a connection of its own."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from cargobike.core.errors import DeploymentError
from cargobike.serving.supervising.runtime import SUPERVISOR
from cargobike.serving.wire import Frames, Said, framed

CONNECT_S: Final = 5.0


class Request(Said, frozen=True, tag="request"):
    """What a user wants: `status`, `roll`, `promote`, `rollback`, `scale`, `stop`."""

    verb: str
    body: dict[str, Any] = {}  # noqa: RUF012 - msgspec copies it


class Reply(Said, frozen=True, tag="reply"):
    """What became of it; `error` is empty if it was done."""

    error: str = ""
    body: Any = None


def call(folder: Path, verb: str, body: dict[str, Any] | None = None, timeout_s: float = 30.0) -> Any:
    """Ask a supervisor for something, and return what it says.

    Args:
        folder: The runtime folder.
        verb: What to do.
        body: What it needs to know.
        timeout_s: How long to wait for the reply.

    Raises:
        ConnectionError: If no supervisor listens there.
        DeploymentError: If it could not be done, or took longer.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT_S)
        try:
            connection.connect(str(folder / SUPERVISOR))
            connection.sendall(framed(Request(verb, body or {})))
        except OSError as error:
            raise ConnectionError(f"no supervisor listens in {folder}: {error.strerror}") from error
        reply = _reply(connection, verb, timeout_s)
    if reply.error:
        raise DeploymentError(reply.error)
    return reply.body


def _reply(connection: socket.socket, verb: str, timeout_s: float) -> Reply:
    frames, give_up_at = Frames(), time.monotonic() + timeout_s
    while (left_s := give_up_at - time.monotonic()) > 0:
        connection.settimeout(left_s)
        try:
            data = connection.recv(1 << 18)
        except TimeoutError:
            break
        except OSError:
            data = b""
        if not data:
            raise ConnectionError(f"the supervisor ended before it had answered {verb!r}")
        for body in frames.feed(data):
            return msgspec.msgpack.decode(body, type=Reply)
    raise DeploymentError(f"The supervisor has not answered {verb!r} within {timeout_s:g} s; it may still do it.")
