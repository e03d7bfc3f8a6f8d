"""A Unix socket by which commands and pages talk to a daemon: only processes of the same user reach it."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.errors import CargobikeError, InvalidInputError, NotFoundError, WaitError
from cargobike.core.layout import ProjectFolder
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.sharing.daemon.messages import (
    MOST_LINE,
    AskStatus,
    Done,
    Holders,
    Problem,
    Reply,
    Request,
    Status,
    replies,
    requests,
)
from cargobike.sharing.places import network_folder
from cargobike.training.wire.connection import is_own_user

NAME: Final = "control.sock"
_WAIT_S: Final = 60.0
_POLL_S: Final = 0.2
_END_S: Final = 10.0
_log = logging.getLogger(__name__)


class ControlServer:
    """Answers requests, each in a thread of its own: members that do not answer hold up no other request.

    Args:
        folder: The network's folder; the socket lies there, with mode 600.
        answer: Returns what to say to a request.
    """

    def __init__(self, folder: Path, answer: Callable[[Request], Reply]) -> None:
        self._answer = answer
        self._path = folder / NAME
        self._path.unlink(missing_ok=True)  # of a daemon that was killed; the lock is ours
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _reachable(folder) as name:
            old = os.umask(0o177)
            try:
                self._listener.bind(name)
            finally:
                os.umask(old)
        self._listener.listen(16)
        self._listener.settimeout(_POLL_S)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cargobike-control", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                break
            threading.Thread(target=self._serve, args=(connection,), name="cargobike-control", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            if not is_own_user(connection):
                return
            connection.settimeout(_WAIT_S)
            with contextlib.suppress(OSError):
                connection.sendall(msgspec.json.encode(self._reply(connection)) + b"\n")

    def _reply(self, connection: socket.socket) -> Reply:
        try:
            return self._answer(requests.decode(_line(connection)))
        except UNDECODABLE as error:
            return Problem(words=f"The request cannot be read: {error}")
        except (CargobikeError, OSError) as error:
            return Problem(words=str(error))
        except Exception as error:  # noqa: BLE001 - said to who asked, and the daemon goes on
            _log.exception("A request to the daemon failed")
            return Problem(words=f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Answer no more."""
        self._stopping.set()
        self._thread.join(_END_S)
        self._listener.close()
        self._path.unlink(missing_ok=True)


def ask_daemon(
    project: ProjectFolder, network: str, request: Request, *, timeout_s: float = _WAIT_S
) -> Status | Holders | Done:
    """Say something to the daemon of a project and network, and return its answer.

    Raises:
        NotFoundError: If none runs.
        InvalidInputError: If it refuses.
        WaitError: If it does not answer.
    """
    missing = NotFoundError(
        f"No daemon serves the network {network!r} for the project {project.root}. Start one: "
        f"cargobike share serve --network {network}",
        wanted=network,
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        try:
            with _reachable(network_folder(project, network)) as name:
                connection.connect(name)
        except (FileNotFoundError, ConnectionRefusedError):
            raise missing from None
        try:
            connection.sendall(msgspec.json.encode(request) + b"\n")
            reply: Reply = replies.decode(_line(connection))
        except TimeoutError as error:
            who = f"the daemon of {network!r}"
            raise WaitError(f"{who} did not answer within {timeout_s:g} s.", missing=[who]) from error
        except (OSError, *UNDECODABLE) as error:
            raise missing from error
    if isinstance(reply, Problem):
        raise InvalidInputError(reply.words)
    return reply


def daemon_status(project: ProjectFolder, network: str) -> Status | None:
    """Return how the daemon of a project and network is; `None` if none runs."""
    try:
        reply = ask_daemon(project, network, AskStatus())
    except NotFoundError:
        return None
    return reply if isinstance(reply, Status) else None


@contextlib.contextmanager
def _reachable(folder: Path) -> Iterator[str]:
    """Yield a name for the socket that is short enough for the kernel, however deep the project lies."""
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{NAME}"
    finally:
        os.close(fd)


def _line(connection: socket.socket) -> bytes:
    data = bytearray()
    while not data.endswith(b"\n"):
        more = connection.recv(65536)
        if not more or len(data) > MOST_LINE:
            raise ConnectionResetError("the other end has closed, or sends without end")
        data += more
    return bytes(data)
