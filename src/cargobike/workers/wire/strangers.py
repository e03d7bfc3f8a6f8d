"""Keeps connections that have proved nothing from using up the driver's descriptors.

ZeroMQ accepts every connection and gives it some seconds for its handshake. A thread counts those that are still at it.
When there are too many, the one that has been there longest has to go: a worker needs milliseconds.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection

import zmq

log = logging.getLogger(__name__)

HANDSHAKE_S = 10.0
MOST_STRANGERS = 128
_SURELY_OVER_S = HANDSHAKE_S + 2.0
_EVENT = struct.Struct("=Hi")  # pyzmq's own reader of these would import asyncio
_EVENTS = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_MONITOR_STOPPED


class Crowd:
    """Decides who has to go. Connections go by their descriptors.

    Args:
        most: How many may be at their handshake at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._since: dict[int, float] = {}

    def accepted(self, fd: int, now_s: float) -> None:
        """Count a new connection."""
        self._since.pop(fd, None)
        self._since[fd] = now_s

    def closed(self, fd: int) -> None:
        """Count a connection no more."""
        self._since.pop(fd, None)

    def too_many(self, now_s: float, known: Collection[int], expected: int) -> list[int]:
        """Return those that have to make room, the oldest first.

        Args:
            now_s: The time.
            known: Those that have proved who they are.
            expected: How many workers have not done so yet, and may be among the others.
        """
        while self._since and now_s - self._since[oldest := next(iter(self._since))] >= _SURELY_OVER_S:
            del self._since[oldest]  # it is through its handshake: ZeroMQ would have closed it otherwise
        if len(self._since) <= self._most + expected:
            return []
        strangers = [fd for fd in self._since if fd not in known]
        leaving = strangers[: max(0, len(strangers) - self._most - expected)]
        for fd in leaving:
            del self._since[fd]
        return leaving


class Doorkeeper:
    """Watches a listening socket of ZeroMQ, in a thread of its own, until the socket's monitor or its context ends.

    Args:
        router: The socket, not bound yet.
        known: Returns the descriptors of connections that have proved who they are.
        expected: Returns how many workers may come.

    """

    def __init__(
        self, router: zmq.Socket[bytes], known: Callable[[], Collection[int]], expected: Callable[[], int]
    ) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = router.context
        router.setsockopt(zmq.HANDSHAKE_IVL, int(HANDSHAKE_S * 1000))
        router.setsockopt(zmq.BACKLOG, 512)
        self._monitor = router.get_monitor_socket(_EVENTS)
        self._known, self._expected = known, expected
        self._tell: zmq.Socket[bytes] | None = None
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._crowd = Crowd(MOST_STRANGERS if limit < 0 else min(MOST_STRANGERS, max(8, limit // 8)))
        self._port = 0
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._hand = os.dup(self._null)
        self._sent_away = 0
        self._thread = threading.Thread(target=self._watch, name="cargobike-door", daemon=True)

    def closings(self) -> zmq.Socket[bytes]:
        """Return a socket that names the connections that have closed, one by one; the caller closes it.

        Ask before `open`.
        """
        where = f"inproc://closings-{os.urandom(8).hex()}"
        ours, theirs = self._context.socket(zmq.PAIR), self._context.socket(zmq.PAIR)
        for end in (ours, theirs):
            end.linger = end.sndhwm = end.rcvhwm = 0
        theirs.bind(where)
        ours.connect(where)
        self._tell = ours
        return theirs

    def open(self, port: int) -> None:
        """Begin to watch the connections to a port."""
        self._port = port
        self._thread.start()

    def close(self) -> None:
        """Wait for the thread to end; the router's monitor must have been disabled."""
        if self._thread.ident is None:
            self._put_down()
        else:
            self._thread.join(5.0)

    def _watch(self) -> None:
        try:
            while self._hear():
                pass
        except zmq.ContextTerminated:
            pass
        except zmq.ZMQError:
            log.warning("connections to the driver's port are not watched any more", exc_info=True)
        finally:
            if self._sent_away:
                log.info("%d connections to port %d that proved nothing were closed", self._sent_away, self._port)
            self._put_down()

    def _put_down(self) -> None:
        self._monitor.close(0)
        if self._tell is not None:
            self._tell.close(0)
        os.close(self._hand)
        os.close(self._null)

    def _hear(self) -> bool:
        """Take in one event; tells whether more can follow."""
        event, *_ = self._monitor.recv_multipart()
        kind, fd = _EVENT.unpack(event)
        if kind == zmq.EVENT_MONITOR_STOPPED:
            return False
        if kind == zmq.EVENT_DISCONNECTED:
            self._crowd.closed(fd)
            if self._tell is not None:
                self._tell.send(event)
            return True
        now_s = time.monotonic()
        self._crowd.accepted(fd, now_s)
        for stranger in self._crowd.too_many(now_s, self._known(), self._expected()):
            self._send_away(stranger)
        return True

    def _send_away(self, fd: int) -> None:
        """Close a connection, if the number still means one to our port; needs no free descriptor."""
        with contextlib.suppress(OSError):
            os.dup2(fd, self._hand, inheritable=False)  # ours now, whatever becomes of the number
            try:
                connection = socket.socket(fileno=self._hand)
                try:
                    if _is_tcp(connection) and connection.getsockname()[1] == self._port:
                        connection.shutdown(socket.SHUT_RDWR)
                        self._count()
                finally:
                    connection.detach()
            finally:
                os.dup2(self._null, self._hand, inheritable=False)

    def _count(self) -> None:
        self._sent_away += 1
        if self._sent_away == 1:
            log.warning(
                "many connections to the driver's port %d do not say who they are; the oldest are closed", self._port
            )


def _is_tcp(connection: socket.socket) -> bool:
    return connection.family in {socket.AF_INET, socket.AF_INET6} and connection.type == socket.SOCK_STREAM


def closed_connection(event: bytes) -> int:
    """Return which connection a message of `Doorkeeper.closings` is about."""
    _, fd = _EVENT.unpack(event)
    return int(fd)
