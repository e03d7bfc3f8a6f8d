"""The engine's end of the tethers to its workers on Spark.

Spark tells late or not at all what becomes of a task: which executor it got, which devices, that its process is dead,
that a cancelled one has really ended. Each worker therefore holds a connection to its engine. It says where it is; its
closing says that it is gone; a byte ends it at once, seconds before Spark would.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import os
import selectors
import socket
import threading
import time
from typing import Protocol

import msgspec

from cargobike.core.errors import EngineError
from cargobike.core.running.descriptors import is_out_of_descriptors
from cargobike.core.running.ending import Ending
from cargobike.core.running.forks import abandon_in_copies
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.engines.spark.task import FREE, GO, LONGEST_FRAME, MAC_BYTES, NONCE_BYTES, STOP

log = logging.getLogger(__name__)

_INTRODUCTION_S = 10.0
MOST_STRANGERS = 256
_TICK_S = 0.25
_PAUSE_S = 0.05


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """Where a worker has been put."""

    worker: str
    task: str
    host: str
    address: str
    executor: str
    pid: int
    cpus: int
    gpus: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()


class Farewell(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker has ended, said by itself."""

    worker: str
    ending: Ending


class Tethered(Protocol):
    """Is told what happens to workers; all methods are called by the thread of the tethers."""

    def placed(self, place: Placed) -> bytes:
        """Hear where a worker is; returns the answer to it."""

    def ended(self, worker: str, ending: Ending) -> None:
        """Hear that a worker has ended by itself."""

    def cut(self, worker: str, task: str) -> None:
        """Hear that the connection to a worker has closed without a word."""

    def tick(self) -> None:
        """Do what is due; called several times a second."""


class _Line(msgspec.Struct):
    link: socket.socket
    nonce: bytes
    until: float
    buffer: bytearray = msgspec.field(default_factory=bytearray)
    place: Placed | None = None
    said_goodbye: bool = False


class TetherServer:
    """Listens for the workers of one engine. Connections without the engine's key are refused.

    Args:
        bind: Address to listen on.
        port: Port to listen on; any free one if 0.
        owner: Who is told.
    """

    def __init__(self, bind: str, port: int, owner: Tethered) -> None:
        self.key = os.urandom(32)
        self._owner = owner
        try:
            self._listener = socket.create_server((bind, port), backlog=512)
        except OSError as error:
            raise EngineError(
                f"The driver cannot listen on {bind}:{port or 'any port'} ({error.strerror or error}). Give an address "
                'of this machine that the executors can reach: SparkEngine(address="…"), or spark.driver.bindAddress.'
            ) from error
        self.port: int = self._listener.getsockname()[1]
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._lines: dict[int, _Line] = {}
        self._by_worker: dict[str, _Line] = {}
        self._lock = threading.Lock()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="cargobike-tethers", daemon=True)
        self._thread.start()
        abandon_in_copies(self)

    def abandon(self) -> None:
        """Close our ends in a copy of this process: workers must see it when the original ends."""
        self._listener.close()
        for line in self._lines.values():
            line.link.close()

    def pull(self, worker: str) -> bool:
        """Tell a worker to end; returns whether it could be told."""
        return self._tell(worker, STOP)

    def free(self, worker: str) -> bool:
        """Tell a worker to go on without the slot of its task; returns whether it could be told."""
        return self._tell(worker, FREE)

    def _tell(self, worker: str, word: bytes) -> bool:
        with self._lock:
            line = self._by_worker.get(worker)
            if line is None:
                return False
            try:
                return line.link.send(word, socket.MSG_NOSIGNAL) == 1
            except OSError:
                return False

    def close(self) -> None:
        """Stop listening; workers that are still there end."""
        self._closing = True
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"x")
        self._thread.join(10.0)
        if self._thread.is_alive():
            return
        for line in list(self._lines.values()):
            line.link.close()
        self._listener.close()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _serve(self) -> None:
        next_tick = 0.0
        while not self._closing:
            try:
                self._round()
                now = time.monotonic()
                if now >= next_tick:
                    next_tick = now + _TICK_S
                    self._dismiss_silent_strangers(now)
                    self._owner.tick()
            except Exception:  # without this thread the ends of workers would go unnoticed
                log.exception("looking after Spark workers failed; going on")

    def _round(self) -> None:
        for key, _ in self._selector.select(_TICK_S):
            if key.fileobj is self._listener:
                self._accept()
            elif key.fd != self._wake_read and key.fd in self._lines:
                self._hear(key.fd)

    def _accept(self) -> None:
        try:
            link, _ = self._listener.accept()
        except OSError as error:
            if is_out_of_descriptors(error):
                self._make_room(0)
                time.sleep(_PAUSE_S)  # the connection still waits, and would be tried again at once
            return
        self._make_room(MOST_STRANGERS - 1)
        with contextlib.suppress(OSError):
            link.setblocking(False)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            line = _Line(link, os.urandom(NONCE_BYTES), time.monotonic() + _INTRODUCTION_S)
            self._lines[link.fileno()] = line
            self._selector.register(link, selectors.EVENT_READ)
            link.send(line.nonce)

    def _make_room(self, most: int) -> None:
        """Dismiss those that have been silent for longest: a worker introduces itself at once."""
        strangers = [fd for fd, line in self._lines.items() if line.place is None]
        for fd in strangers[: max(0, len(strangers) - most)]:
            self._drop(fd)

    def _dismiss_silent_strangers(self, now: float) -> None:
        for fd, line in list(self._lines.items()):
            if line.place is None and now > line.until:
                self._drop(fd)

    def _hear(self, fd: int) -> None:
        line = self._lines[fd]
        try:
            data = line.link.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        line.buffer += data
        while (body := self._frame(line)) is not None:
            self._take(line, body)
        if not data or len(line.buffer) > LONGEST_FRAME + 4:
            self._drop(fd)

    def _frame(self, line: _Line) -> bytes | None:
        """Return the next frame that proves to come from one of our workers; anything else is thrown away."""
        while len(line.buffer) >= 4:
            size = int.from_bytes(line.buffer[:4], "big")
            if size > LONGEST_FRAME or size < MAC_BYTES:
                line.buffer = bytearray(LONGEST_FRAME + 5)  # no frame of ours: hang up
                return None
            if len(line.buffer) < 4 + size:
                return None
            frame = bytes(line.buffer[4 : 4 + size])
            del line.buffer[: 4 + size]
            body = frame[MAC_BYTES:]
            wanted = hmac.new(self.key, line.nonce + body, hashlib.sha256).digest()
            if hmac.compare_digest(wanted, frame[:MAC_BYTES]):
                return body
        return None

    def _take(self, line: _Line, body: bytes) -> None:
        try:
            if line.place is None:
                self._introduced(line, msgspec.json.decode(body, type=Placed))
            else:
                farewell = msgspec.json.decode(body, type=Farewell)
                line.said_goodbye = True
                self._owner.ended(line.place.worker, farewell.ending)
        except UNDECODABLE as error:
            log.warning("a worker on Spark sent something that is not a message (%s); ignored", error)

    def _introduced(self, line: _Line, place: Placed) -> None:
        answer = self._owner.placed(place)
        if answer == GO:
            line.place = place
            with self._lock:
                self._by_worker[place.worker] = line
        with contextlib.suppress(OSError):
            line.link.send(answer)

    def _drop(self, fd: int) -> None:
        line = self._lines.pop(fd)
        self._selector.unregister(line.link)
        with self._lock:
            if line.place is not None and self._by_worker.get(line.place.worker) is line:
                del self._by_worker[line.place.worker]
            line.link.close()
        if line.place is not None and not line.said_goodbye:
            self._owner.cut(line.place.worker, line.place.task)
