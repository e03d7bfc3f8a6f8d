"""Runs the program for one task: hands it a request, brings what it prints into the log, ends it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from typing import IO, Any, Final

from cargobike_provider.errors import CargobikeMistake, CargobikeTaskError, error_of
from cargobike_provider.settings import Settings

KILL_S: Final = 3.0
"""How long the program may take to end when a task is killed; Airflow itself waits five seconds."""

_LOOK_S: Final = 0.5
_END_S: Final = 10.0
_LONGEST_LINE: Final = 64 * 1024


class Program:
    """One process that does Cargobike's part of a task.

    It leads a group of processes of its own: `kill` ends it with what it started. If this process dies first, the
    program notices that its requests have ended, and ends itself.
    """

    def __init__(self, settings: Settings, *, directory: str | None, log: Callable[[str], Any]) -> None:
        self._log = log
        try:
            self._process = subprocess.Popen(
                settings.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=settings.variables,
                cwd=directory,
                start_new_session=True,
            )
        except OSError as error:
            raise CargobikeMistake(
                f"{settings.python} cannot be started in {directory or os.getcwd()}: {error.strerror}. Say which "
                'Python has Cargobike: python="/…/bin/python", or the field Python of the connection.'
            ) from error
        self._killed = False
        self._answer = b""
        self._printed = b""

    @property
    def pid(self) -> int:
        """The id of the process, and of its group."""
        return self._process.pid

    def ask(self, request: dict[str, Any]) -> Any:
        """Return the answer to a request; what the program prints meanwhile is logged, line by line.

        Raises:
            CargobikeMistake: If trying again would not help.
            CargobikeTaskError: If it failed, or the program died.
        """
        with contextlib.suppress(BrokenPipeError):
            _pipe(self._process.stdin).write(json.dumps(request).encode() + b"\n")
            _pipe(self._process.stdin).flush()
        line = self._await_answer()
        if self._killed:
            raise CargobikeTaskError("The task was killed; what it ran was ended.")
        if line is None:
            code = self._process.wait()
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            raise CargobikeTaskError(f"The process {self.pid} that ran Cargobike ended {how} before it answered.")
        answer = json.loads(line)
        if "error" in answer:
            raise error_of(answer["error"])
        return answer["value"]

    def _await_answer(self) -> bytes | None:
        """Return the line with the answer; `None` if the program ended without one."""
        answers, printed = _pipe(self._process.stdout), _pipe(self._process.stderr)
        with selectors.DefaultSelector() as selector:
            for stream in (answers, printed):
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ)
            while True:
                # Asked first: what it wrote before it ended is read below. Its pipes may stay open beyond its end, in
                # processes that it left running on purpose.
                has_ended = self._process.poll() is not None
                ready = selector.select(0 if has_ended else _LOOK_S)
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is answers:
                        self._answer += data
                    else:
                        self._print(data)
                line, found, _ = self._answer.partition(b"\n")
                if found and not any(key.fileobj is printed for key, _ in ready):
                    self._print(b"", is_end=True)
                    return line
                if has_ended and not ready:
                    self._print(b"", is_end=True)
                    return line if found else None

    def _print(self, data: bytes, *, is_end: bool = False) -> None:
        *lines, self._printed = (self._printed + data).split(b"\n")
        if self._printed and (is_end or len(self._printed) > _LONGEST_LINE):
            lines.append(self._printed)
            self._printed = b""
        for line in lines:
            self._log(line.decode(errors="replace").rstrip("\r"))

    def end(self) -> None:
        """Let the program end, since there are no more requests."""
        with contextlib.suppress(BrokenPipeError):
            _pipe(self._process.stdin).close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        if self._process.poll() is None:
            self.kill()
        for stream in (self._process.stdout, self._process.stderr):
            _pipe(stream).close()

    def kill(self) -> None:
        """End the program: as Ctrl-C does, so that it can clean up, and soon by force with all that it started."""
        self._killed = True
        if self._process.poll() is None:
            self._signal(signal.SIGINT)
            give_up_at = time.monotonic() + KILL_S
            while self._process.poll() is None and time.monotonic() < give_up_at:
                time.sleep(0.02)
        self._signal_group(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise CargobikeTaskError("The program was started without pipes.")
    return stream
