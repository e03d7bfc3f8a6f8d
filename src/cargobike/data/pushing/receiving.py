"""A node listens for those that push rows to it."""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from cargobike.core.errors import AuthenticationError, CargobikeError, InvalidInputError, nearest
from cargobike.core.running.member import LOOPBACK
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.data.pushing.chunks import pack, unpack
from cargobike.data.pushing.inbox import Delivery, Inbox
from cargobike.data.pushing.line import Line
from cargobike.data.pushing.messages import (
    Alive,
    Closed,
    EndOfFeed,
    EndOfPartition,
    Open,
    Results,
    Rows,
    Taken,
    ToFeeder,
    ToNode,
    decode_for_node,
    encode,
)
from cargobike.training.wire.channel import Channel
from cargobike.training.wire.connection import listen
from cargobike.training.wire.lobby import Lobby

log = logging.getLogger(__name__)

_LOOK_S: Final = 0.5
_JOIN_S: Final = 5.0


class Receiver:
    """Listens for feeders, and puts what they bring into inboxes, one for each queue.

    Args:
        host: The address to listen on; others than the loopback one are reached over connections that are encrypted.
        queues: Names of queues that rows can be pushed to.
        is_asked_to_end: Returns whether waiting for rows makes no sense any more.

    Attributes:
        address: Where it listens.
        secret: What feeders must know.
        inboxes: What has come, by queue.
        end_wanted: Set when the node is not needed any more.
    """

    def __init__(
        self,
        host: str = LOOPBACK,
        queues: Iterable[str] = ("input",),
        is_asked_to_end: Callable[[], bool] = lambda: False,
    ) -> None:
        self.secret = secrets.token_bytes(32)
        self.inboxes = {name: Inbox(is_asked_to_end) for name in queues}
        self.end_wanted = threading.Event()
        self._stopping = threading.Event()
        self._lines: set[Line] = set()
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self.address, listeners = listen(host, 0)
        lobby = Lobby(listeners, self.secret, self._admit)
        self._lobby = threading.Thread(target=lobby.run, args=[self._stopping], name="cargobike-feeds", daemon=True)
        self._lobby.start()

    def inbox(self, queue: str) -> Inbox:
        """Return what comes for a queue.

        Raises:
            InvalidInputError: If there is no such queue.
        """
        if queue not in self.inboxes:
            names = list(self.inboxes)
            raise InvalidInputError(
                f"There is no queue {queue!r}; there are {', '.join(names)}.{nearest(queue, names)}"
            )
        return self.inboxes[queue]

    def close(self, problem: str = "") -> None:
        """Take no more rows, tell all feeders, and stop listening."""
        for inbox in self.inboxes.values():
            inbox.close(problem)
        self._stopping.set()
        self._lobby.join(_JOIN_S)
        with self._lock:
            threads = list(self._threads)
            for line in self._lines:
                line.shut()
        for thread in threads:
            thread.join(_JOIN_S)

    def _admit(self, channel: Channel) -> None:
        line = Line(channel)
        thread = threading.Thread(target=self._serve, args=[line, channel.peer], name="cargobike-feed", daemon=True)
        with self._lock:
            self._lines.add(line)
            self._threads.add(thread)
        thread.start()

    def _serve(self, line: Line, peer: str) -> None:
        session = _Session(self, line)
        try:
            while not self._stopping.is_set():
                if line.has_come(_LOOK_S):
                    header, body = line.receive()
                    session.take(decode_for_node(header), body)
        except AuthenticationError as error:
            log.warning("the connection with %s is closed: %s", peer, error)
        except (OSError, CargobikeError, *UNDECODABLE) as error:
            log.debug("the connection with %s ended: %s", peer, error)
        except Exception as error:  # what is wrong with one conversation must not end the others
            log.exception("rows that %s sent cannot be read", peer)
            session.closed(f"rows that were sent cannot be read: {type(error).__name__}: {error}")
        finally:
            session.leave()
            with self._lock:
                self._lines.discard(line)
                self._threads.discard(threading.current_thread())
            line.close()


class _Session:
    """What one feeder says, and what is said to it."""

    def __init__(self, receiver: Receiver, line: Line) -> None:
        self._receiver, self._line = receiver, line
        self._inbox: Inbox | None = None
        self._delivery: Delivery | None = None

    def take(self, message: ToNode, body: bytearray) -> None:
        if isinstance(message, Open):
            try:
                self._inbox = self._receiver.inbox(message.queue)
            except InvalidInputError as error:
                self.closed(str(error))
                return
            self._delivery = self._inbox.open(self, wants_results=message.wants_results)
            self.alive()
        elif isinstance(message, EndOfFeed):
            for inbox in self._receiver.inboxes.values():
                inbox.end()
        elif self._inbox is not None and self._delivery is not None:
            if isinstance(message, Rows):
                if not self._inbox.is_closed:
                    self._inbox.put(self._delivery, unpack(message.form, body))
            elif isinstance(message, EndOfPartition):
                self._inbox.complete(self._delivery)
        elif not isinstance(message, Rows | EndOfPartition):
            self._receiver.end_wanted.set()

    def leave(self) -> None:
        if self._inbox is not None and self._delivery is not None and not self._delivery.is_complete:
            self._inbox.lose(self._delivery)
        elif self._delivery is not None:
            self._delivery.is_gone = True

    # -- as the inbox sees it ------------------------------------------------------------------------------------

    def taken(self, chunks: int) -> None:
        self._say(Taken(chunks))

    def results(self, results: Sequence[Any]) -> None:
        self._say(Results(), pack(list(results)))

    def alive(self) -> None:
        self._say(Alive())

    def closed(self, problem: str) -> None:
        self._say(Closed(problem))

    def _say(self, message: ToFeeder, body: bytes = b"") -> None:
        with contextlib.suppress(OSError):  # it is gone, which its own thread sees
            self._line.send(encode(message), body)
