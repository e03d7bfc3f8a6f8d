"""The driver's side of the processes of steps: starts the template when it is needed, and again if it is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.errors import ConnectionLostError
from cargobike.core.package import PACKAGE_PARENT
from cargobike.core.running.forks import abandon_in_copies
from cargobike.core.settings import STEPS_OF
from cargobike.pipelines.processes.messages import EndTask, Frames, Gone, Setup, Task, send
from cargobike.pipelines.processes.sweeping import sweep

_END_S: Final = 10.0
_PROGRAM: Final = (
    f"import sys; sys.path.append({PACKAGE_PARENT!r}); from cargobike.pipelines.processes.template import main; main()"
)


class Crew:
    """The template of a run and the attempts that it has forked; all of them end with it.

    Args:
        setup: What all steps have in common; made when the first one begins.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._frames = Frames()
        self._decoder = msgspec.msgpack.Decoder(Gone)
        abandon_in_copies(self)

    @property
    def files(self) -> dict[str, str]:
        """What is in the files of the user's modules that steps import, by the names of the modules."""
        return {name: source for name, (source, _, _) in self._setup.modules.items()}

    @property
    def connection(self) -> socket.socket | None:
        """What the template answers on, once there is one."""
        return self._connection

    def begin(self, task: Task) -> None:
        """Begin an attempt.

        Raises:
            ConnectionLostError: If the template is gone.
        """
        self._send(task)

    def end(self, step: int, attempt: int, grace_s: float) -> None:
        """End an attempt: Ctrl-C first, for good after the grace time."""
        if self._connection is not None:
            with contextlib.suppress(ConnectionLostError):
                self._send(EndTask(step, attempt, grace_s))

    def read(self) -> Iterator[Gone]:
        """Yield the attempts that have ended.

        Raises:
            ConnectionLostError: If the template is gone, and with it all attempts.
        """
        assert self._connection is not None
        for data in self._frames.read(self._connection):
            yield self._decoder.decode(data)

    def bury(self) -> str:
        """Clean up after a template that is gone, so that the next attempt starts another; returns how it ended."""
        code = self._leave()
        sweep(Path(self._setup.run))
        return f"the processes of the steps were lost (the template ended with {code})"

    def close(self) -> None:
        """End everything."""
        self._leave()

    def abandon(self) -> None:
        """Close our end, in a copy of this process."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, message: Task | EndTask) -> None:
        connection = self._connection or self._start()
        try:
            send(connection, message)
        except OSError as error:
            raise ConnectionLostError("the template of the steps is gone") from error

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, STEPS_OF: self._setup.run},
            )
        self._connection, self._frames = ours, Frames()
        send(ours, self._setup)
        return ours

    def _leave(self) -> int | None:
        """Close the connection, upon which the template ends; returns its exit code."""
        process, self._process = self._process, None
        self.abandon()
        if process is None:
            return None
        try:
            return process.wait(_END_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return process.wait(_END_S)
