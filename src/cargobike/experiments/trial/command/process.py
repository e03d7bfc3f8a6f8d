"""Runs a program: passes its output on line by line, and ends it with everything that it has started."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Final, Literal

from cargobike.core.errors import ProgramError

Stream = Literal["stdout", "stderr"]

END_S: Final = 5.0
"""How long a program may take to end after SIGTERM."""
_TICK_S = 0.2
_PIPES_S = 1.0
_LONGEST_LINE = 64 * 1024


def run_process(
    command: Sequence[str],
    *,
    directory: str,
    variables: Mapping[str, str],
    on_line: Callable[[Stream, str], None],
    on_tick: Callable[[], None],
    descriptors: Sequence[int] = (),
) -> int:
    """Run a program to its end and return its exit code, negative for the signal that killed it.

    Whatever `on_line` or `on_tick` raises ends the program first: by SIGTERM, and by SIGKILL if it takes too long.

    Args:
        command: Program and arguments; no shell reads them.
        directory: Where it works.
        variables: Its environment.
        on_line: Called with each line that it prints, without the line's end.
        on_tick: Called at least a few times a second.
        descriptors: What it inherits besides its standard streams.

    Raises:
        ProgramError: If it cannot be started.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=descriptors,
            start_new_session=True,  # so that it can be ended together with what it has started
        )
    except (OSError, ValueError) as error:  # no such directory or program; a NUL character in an argument
        raise ProgramError(f"{command[0]} cannot be started in {directory}: {error}.") from None
    try:
        _listen(process, on_line, on_tick)
        return process.wait()
    finally:
        _end(process)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def _listen(
    process: subprocess.Popen[bytes], on_line: Callable[[Stream, str], None], on_tick: Callable[[], None]
) -> None:
    lines: dict[Stream, _Lines] = {"stdout": _Lines(sys.stdout), "stderr": _Lines(sys.stderr)}
    ended_at: float | None = None
    with selectors.DefaultSelector() as selector:
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, name)
        while selector.get_map():
            events = selector.select(_TICK_S)
            for key, _ in events:
                data = os.read(key.fd, 1 << 16)
                for line in lines[key.data].take(data):
                    on_line(key.data, line)
                if not data:
                    selector.unregister(key.fileobj)
            on_tick()
            if not events and process.poll() is not None:
                # Something that it has left running may hold the pipes: its own last words have been read by now.
                ended_at = ended_at or time.monotonic()
                if time.monotonic() - ended_at > _PIPES_S:
                    break
    for name, rest in lines.items():
        for line in rest.take(b""):
            on_line(name, line)


class _Lines:
    """Makes lines of bytes, and passes both on to this process's own output."""

    def __init__(self, output: IO[str]) -> None:
        self._output = output
        self._rest = b""

    def take(self, data: bytes) -> Iterator[str]:
        """Yield the lines that are complete; what is left at the end, if there is no more data."""
        if data:
            self._output.write(data.decode("utf-8", "replace"))
            self._output.flush()
        *complete, self._rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        if not data or len(self._rest) > _LONGEST_LINE:
            complete, self._rest = [*complete, self._rest], b""
        for line in complete:
            if line:
                yield line[:_LONGEST_LINE].decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it has started in its group, if any of it still runs."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
