"""Where those wait who have connected and proved nothing yet: one thread for all of them, and no more than so many.

A rightful worker is through in milliseconds, however many others sit here in silence. When there is no room for one
more, the one that has been here longest has to go.
"""

from __future__ import annotations

import contextlib
import logging
import resource
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cargobike.core.errors import AuthenticationError
from cargobike.training.wire.channel import Channel
from cargobike.training.wire.connection import HANDSHAKE_S, is_own_user, suites_for, tune
from cargobike.training.wire.handshake import (
    ANSWER_BYTES,
    PARAMETER_SERVER,
    WORDS,
    Dialect,
    ServerHandshake,
    check_words,
)
from cargobike.training.wire.sealing import Suite

_log = logging.getLogger(__name__)

POLL_S = 0.1
MOST_STRANGERS = 256


@dataclass(eq=False)
class _Stranger:
    connection: socket.socket
    name: str
    handshake: ServerHandshake
    leaves_at: float
    answer: bytes = field(default=b"")


class Lobby:
    """Accepts connections, and hands over those that have proved that they know the secret.

    Args:
        listeners: Where they come in; closed when the lobby is.
        secret: What they must know.
        admit: Called, in the lobby's thread, with each that does.
        dialect: What is spoken here.
        demanded: How connections are protected; by default whatever the way between the ends asks for.
    """

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        secret: bytes,
        admit: Callable[[Channel], None],
        *,
        dialect: Dialect = PARAMETER_SERVER,
        demanded: Suite | None = None,
    ) -> None:
        self._listeners, self._secret, self._admit = listeners, secret, admit
        self._dialect, self._demanded = dialect, demanded
        self._strangers: dict[socket.socket, _Stranger] = {}
        self._selector = selectors.DefaultSelector()
        self._most = min(MOST_STRANGERS, max(8, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))

    def run(self, stopping: threading.Event) -> None:
        """Let people in until told to stop; then close the doors and send away who is still here."""
        with self._selector:
            for listener in self._listeners:
                listener.setblocking(False)
                self._selector.register(listener, selectors.EVENT_READ)
            while not stopping.is_set():
                for key, _ in self._selector.select(POLL_S):
                    connection = key.fileobj
                    assert isinstance(connection, socket.socket)
                    if connection in self._listeners:
                        self._accept(connection)
                    elif connection in self._strangers:  # unless it had to make room for another just now
                        self._listen_to(self._strangers[connection])
                self._send_away_the_late()
            for stranger in list(self._strangers.values()):
                self._send_away(stranger)
        for listener in self._listeners:
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, address = listener.accept()
        except BlockingIOError:
            return
        except OSError as error:  # no descriptors are left, or it was gone already
            _log.warning("a connection could not be accepted: %s", error)
            self._make_room(0)
            time.sleep(POLL_S)
            return
        try:
            self._greet(connection, "a process of this machine" if not address else "{}:{}".format(*address[:2]))
        except OSError as error:
            _log.debug("a connection ended before it was greeted: %s", error)
            connection.close()

    def _greet(self, connection: socket.socket, name: str) -> None:
        if connection.family == socket.AF_UNIX and not is_own_user(connection):
            connection.close()
            return
        self._make_room(self._most - 1)
        connection.setblocking(False)
        tune(connection)
        offered = suites_for(connection) if self._demanded is None else self._demanded
        handshake = ServerHandshake(self._secret, offered, self._dialect)
        connection.sendall(handshake.greeting)
        self._strangers[connection] = _Stranger(connection, name, handshake, time.monotonic() + HANDSHAKE_S)
        self._selector.register(connection, selectors.EVENT_READ)

    def _listen_to(self, stranger: _Stranger) -> None:
        try:
            more = stranger.connection.recv(ANSWER_BYTES - len(stranger.answer))
            stranger.answer += more
            if not more:
                self._send_away(stranger)
                return
            if len(stranger.answer) >= len(WORDS):
                check_words(stranger.answer[: len(WORDS)], self._dialect)
            if len(stranger.answer) == ANSWER_BYTES:
                self._judge(stranger)
        except BlockingIOError:
            return
        except AuthenticationError as error:
            _log.warning("refused %s: %s", stranger.name, error)
            self._send_away(stranger)
        except OSError as error:
            _log.debug("%s has gone: %s", stranger.name, error)
            self._send_away(stranger)

    def _judge(self, stranger: _Stranger) -> None:
        verdict, seals, problem = stranger.handshake.judge(stranger.answer)
        stranger.connection.sendall(verdict)
        if seals is None:
            raise AuthenticationError(problem)
        self._forget(stranger)
        self._admit(Channel(stranger.connection, seals, stranger.name))

    def _make_room(self, most: int) -> None:
        """Send those away who have been here longest, until no more than so many are left."""
        while len(self._strangers) > most:
            self._send_away(next(iter(self._strangers.values())))

    def _send_away_the_late(self) -> None:
        now = time.monotonic()
        for stranger in list(self._strangers.values()):
            if stranger.leaves_at > now:
                break  # all behind it came later
            self._send_away(stranger)

    def _send_away(self, stranger: _Stranger) -> None:
        self._forget(stranger)
        stranger.connection.close()

    def _forget(self, stranger: _Stranger) -> None:
        del self._strangers[stranger.connection]
        with contextlib.suppress(KeyError):
            self._selector.unregister(stranger.connection)
