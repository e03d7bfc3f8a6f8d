"""What the driver of a run and the template of its steps say to each other, over a socket that only they have."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from cargobike.core.errors import ConnectionLostError
from cargobike.pipelines.values.value import Value

_LENGTH: Final = struct.Struct("<Q")
_PIECE: Final = 1 << 18


class Setup(msgspec.Struct, frozen=True, tag=True):
    """What all steps of a run have in common.

    Attributes:
        run: The folder of the run.
        project: The folder of the project.
        sys_path: The driver's `sys.path`, so that modules are found by the same names.
        argv: The driver's `sys.argv`.
        sources: Text of files that exist in the driver's memory only, for tracebacks.
        modules: The user's own modules as they were when the run began: source, file, whether it is a package.
        home: The module of the pipeline.
    """

    run: str
    project: str
    sys_path: list[str]
    argv: list[str]
    sources: dict[str, str] = {}
    modules: dict[str, tuple[str, str, bool]] = {}
    home: str = ""


class Task(msgspec.Struct, frozen=True, tag=True):
    """An attempt at a step.

    Attributes:
        title: What people call the step.
        function: The function, pickled by the driver.
        arguments: What it is called with, packed by the driver.
        results: What the steps returned whose results are among the arguments.
        token: Names the step to what it makes.
        folder: The working directory.
        libraries: What the function imports, so that the template has it for all that follow.
        engine: Where it runs; `local` is the process itself.
    """

    step: int
    attempt: int
    title: str
    function: bytes
    arguments: bytes
    results: list[Value] = []
    token: str = ""
    folder: str = ""
    libraries: list[str] = []
    engine: str = "local"


class EndTask(msgspec.Struct, frozen=True, tag=True):
    """End an attempt: Ctrl-C first, and after a while for good."""

    step: int
    attempt: int
    grace_s: float


ToTemplate = Setup | Task | EndTask


class Gone(msgspec.Struct, frozen=True):
    """The process of an attempt has ended, and all that it had left behind.

    Attributes:
        code: Its exit code; negative for the signal that ended it.
        seconds: How long it was there.
        cpu_s: Processor time of the process and those that it waited for.
        peak_memory_bytes: The most memory that it used.
        left: How many processes it had left behind.
    """

    step: int
    attempt: int
    code: int
    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0
    left: int = 0


def send(connection: socket.socket, message: ToTemplate | Gone) -> None:
    """Send a message, all of it."""
    data = msgspec.msgpack.encode(message)
    connection.sendall(_LENGTH.pack(len(data)) + data)


class Frames:
    """Puts together what arrives in pieces."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def read(self, connection: socket.socket) -> Iterator[bytes]:
        """Read what is there, and yield the messages that are whole.

        Raises:
            ConnectionLostError: If the other end is gone.
        """
        try:
            piece = connection.recv(_PIECE)
        except ConnectionError:
            piece = b""
        if not piece:
            raise ConnectionLostError("the other end is gone")
        self._buffer += piece
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            message = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield message
