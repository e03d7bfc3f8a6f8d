"""How a rank talks to the driver: over its agent, or, in a program that a rank has started, over that rank."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import msgspec

from cargobike.training.regrouping.messages import FromRank, Task, ToRank, decode_from_rank, decode_to_rank, encode
from cargobike.workers.program import Seat
from cargobike.workers.wire.inner import Brought, Kept, Leave
from cargobike.workers.wire.mailbox import Mailbox
from cargobike.workers.wire.messages import Assign, Said, Tell

_LOOK_EVERY_S: Final = 0.05
_LARGEST: Final = 1 << 16

_Told = Assign[Task] | Tell[ToRank] | Kept | Brought | Leave
_decode_told = msgspec.msgpack.Decoder(_Told).decode

Fits = Callable[[ToRank], bool]


class Line(Protocol):
    """Between one rank and the driver. May be used from any thread."""

    def say(self, body: FromRank) -> None:
        """Tell the driver something."""

    def wait(self, fits: Fits, timeout_s: float) -> ToRank | None:
        """Return the first message that fits, `None` if none comes in time."""

    def take(self, fits: Fits) -> list[ToRank]:
        """Return the messages that fit and have come already."""


class SeatLine:
    """The line of a runner."""

    def __init__(self, seat: Seat, task: int, attempt: int) -> None:
        self._seat, self._task, self._attempt = seat, task, attempt
        self._mailbox: Mailbox[_Told] = Mailbox(seat.agent, _decode_told)

    def say(self, body: FromRank) -> None:
        """Send it over the agent."""
        self._seat.send(Said(self._task, self._attempt, body))

    def wait(self, fits: Fits, timeout_s: float) -> ToRank | None:
        """Wait for the agent."""
        told = self._mailbox.wait(
            lambda each: isinstance(each, Tell) and fits(each.body), timeout_s, lambda: self._seat.is_asked_to_stop
        )
        return told.body if isinstance(told, Tell) else None

    def take(self, fits: Fits) -> list[ToRank]:
        """Look at what the agent has brought."""
        taken = self._mailbox.take(lambda each: isinstance(each, Tell) and fits(each.body))
        return [told.body for told in taken if isinstance(told, Tell)]


class SocketLine:
    """The line of a program that a rank has started."""

    def __init__(self, near: socket.socket) -> None:
        self._socket = near
        self._mailbox: Mailbox[ToRank] = Mailbox(near, decode_to_rank)

    def say(self, body: FromRank) -> None:
        """Send it to the rank that has started this program."""
        self._socket.send(encode(body))

    def wait(self, fits: Fits, timeout_s: float) -> ToRank | None:
        """Wait for that rank."""
        return self._mailbox.wait(fits, timeout_s)

    def take(self, fits: Fits) -> list[ToRank]:
        """Look at what that rank has sent."""
        return self._mailbox.take(fits)


def open_inherited(descriptor: int) -> SocketLine:
    """Return the line that this process was started with; what it starts does not inherit it."""
    os.set_inheritable(descriptor, False)
    return SocketLine(socket.socket(fileno=descriptor))


@contextlib.contextmanager
def extended(line: Line) -> Iterator[int]:
    """Extend a line to a program that this process starts; gives the descriptor that the program inherits."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    is_over = threading.Event()
    relay = threading.Thread(target=_relay, args=(line, near, is_over), name="cargobike-relay", daemon=True)
    relay.start()
    try:
        yield far.fileno()
    finally:
        is_over.set()
        relay.join()
        near.close()
        far.close()


def _relay(line: Line, near: socket.socket, is_over: threading.Event) -> None:
    while not is_over.is_set():
        readable, _, _ = select.select([near], [], [], _LOOK_EVERY_S)
        with contextlib.suppress(OSError, msgspec.DecodeError):
            if readable:
                line.say(decode_from_rank(near.recv(_LARGEST)))
        for body in line.take(lambda _: True):
            with contextlib.suppress(OSError):
                near.send(encode(body))
