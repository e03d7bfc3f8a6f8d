"""What a worker runs: the interface between the processes of a worker and a program.

A program is a module with a `main` that calls `host.main` with a function that makes the program from its payload. An
engine starts that module; `cargobike.testing.programs` is a small one. Nothing in this room knows what programs do.
"""

from __future__ import annotations

import errno
import mmap
import socket
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.workers.wire.messages import Ended, Message, encode_message
from cargobike.workers.wire.packets import LARGEST

ROOM = 1024
"""What may be added to a message after its size was checked."""


class Seat(msgspec.Struct):
    """Where a program sits: its connection to the agent and its surroundings; made before the fork, used after it.

    Attributes:
        agent: The runner's end of the connection.
        flags: Memory that is shared with the agent.
        folder: Where the program works, inside the project.
        project: The project, or the folder that stands for it here.
        gpus: Devices of this worker.
        reuse: Whether a runner takes one assignment after the other.
        driver_host: Where the driver is; other workers reach us as it does.
        files_travel: Whether the project's disk is not mounted here, so that `Keep` and `Bring` are needed.
        stack_fd: Where to write the stacks of all threads.
        line: Where the assignments after the first one come from, if some may come before they are needed.
    """

    agent: socket.socket
    flags: mmap.mmap
    folder: str
    project: str
    gpus: tuple[str, ...] = ()
    reuse: bool = False
    driver_host: str = ""
    files_travel: bool = False
    stack_fd: int = -1
    line: socket.socket | None = None

    def send(self, message: Message, what: str = "A message") -> None:
        """Send a message to the agent, which passes on what is meant for the driver.

        Raises:
            InvalidInputError: If it is too large, or holds what cannot be written down; the text begins with `what`.
        """
        packet = encode_checked(message, what)
        try:
            self.agent.send(packet)
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                raise
            raise too_large(what, len(packet), self.agent.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)) from None

    @property
    def is_asked_to_stop(self) -> bool:
        """Whether the assignment should end: one byte of memory that is shared with the agent."""
        return self.flags[0] != 0


def encode_checked(message: Message, what: str) -> bytes:
    """Encode a message that may hold anything.

    Raises:
        InvalidInputError: If it is too large, or holds what cannot be written down; the text begins with `what`.
    """
    try:
        packet = encode_message(message)
    except (UnicodeEncodeError, OverflowError) as error:
        raise InvalidInputError(f"{what} holds something that cannot be written down: {error}.") from None
    if len(packet) > LARGEST:
        raise too_large(what, len(packet))
    return packet


def too_large(what: str, size: int, most: int = LARGEST) -> InvalidInputError:
    """Return the error that says how large a message may be."""
    limit = "1 MiB" if most >= LARGEST - ROOM else f"{most:,} bytes"
    return InvalidInputError(
        f"{what} takes {size:,} bytes; at most {limit} can be sent at once. Send less, or write large things to files: "
        "what lies in the trial's working directory is kept, and so is what was saved as a checkpoint or an artifact."
    )


class Program(Protocol):
    """Something that works on assignments.

    It is made and prepared in the host, which imports and does nothing else: a process that has computed anything with
    a numeric library must not be forked. Everything else happens in runners, forked copies of the host.
    """

    @property
    def preload(self) -> Sequence[str]:
        """Modules to import in the host, once for all runners."""

    def prepare(self) -> None:
        """Make modules importable, in the host, before they are preloaded; must not run user code."""

    def rehearse(self, seat: Seat) -> None:
        """Do what every assignment begins with, without side effects, in a runner that waits for its first one.

        Writing to a page that is shared with the template copies it first, which takes longer than the write itself.
        """

    def understudy(self) -> tuple[Program, bytes] | None:
        """Return a program that works as this one does but runs no user code, and an assignment for it, if possible.

        It runs in the host, where nothing may be computed: a rehearsal for all workers (`rehearsal.py`).
        """

    def run(self, seat: Seat, packet: bytes) -> Ended[Any]:
        """Work on an assignment, the encoded `Assign`; returns how that ended.

        A process that ends instead, by an exception or otherwise, is reported to the driver as `Died`. All runners
        begin with the same state of `random`: one that draws something seeds it.
        """

    def leave(self, seat: Seat) -> None:
        """Clean up after the last assignment of this runner."""


MakeProgram = Callable[[bytes], Program]
"""Makes a program from its payload."""
