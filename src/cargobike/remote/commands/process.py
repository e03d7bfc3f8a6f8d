"""The process of a command that runs for a caller: its output, as frames that wait to be read, and its end.

The process is a copy of the command line with arguments that were checked, without a shell and without input, in a
folder and a session of its own. It ends with the server, even if that is killed: it holds the end of a pipe.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final, Literal, NamedTuple

from cargobike.core import settings
from cargobike.core.package import PACKAGE_PARENT

Stream = Literal["out", "err"]

MOST_UNREAD: Final = 1 << 20
"""How many characters may wait to be read; a command that prints more waits, as at a terminal."""
_GRACE_S: Final = 20.0
_CHUNK: Final = 1 << 14
_SECRETS: Final = (settings.UI_TOKEN, settings.TOKEN, settings.TOKEN_FILE, settings.SERVER, settings.SERVE_TOKEN)
_PROGRAM: Final = f"""
import os, signal, sys, threading
sys.path.append({PACKAGE_PARENT!r})
watched = int(sys.argv.pop(1))
def watch():
    while os.read(watched, 1):
        pass
    os.kill(os.getpid(), signal.SIGINT)
    threading.Timer({_GRACE_S}, lambda: os.killpg(0, signal.SIGKILL)).start()
threading.Thread(target=watch, daemon=True).start()
from cargobike.cli import main
main()
"""


class Frame(NamedTuple):
    """A piece of what a command printed."""

    stream: Stream
    text: str


class CommandProcess:
    """A command that runs, or has ended. May be used from several threads."""

    def __init__(self, arguments: Sequence[str], *, project: Path, folder: Path, columns: int = 0) -> None:
        self._changed = threading.Condition()
        self._frames: deque[Frame] = deque()
        self._first = 0
        self._unread = 0
        self._is_closed = False
        self.exit_code: int | None = None
        self.is_cancelled = False
        self.read_at = time.monotonic()
        read_end, self._held = os.pipe()
        variables = {name: value for name, value in os.environ.items() if name not in _SECRETS}
        variables |= {"PYTHONUNBUFFERED": "1", **({settings.COLUMNS: str(columns)} if columns else {})}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(read_end), "--project", str(project), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=variables,
                pass_fds=[read_end],
                start_new_session=True,
            )
        except BaseException:
            os.close(self._held)
            raise
        finally:
            os.close(read_end)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        streams: tuple[tuple[Stream, IO[bytes]], ...] = (("out", self._process.stdout), ("err", self._process.stderr))
        readers = [threading.Thread(target=self._read, args=one, daemon=True) for one in streams]
        for reader in readers:
            reader.start()
        self._waiter = threading.Thread(target=self._wait, args=(readers,), name="remote-command", daemon=True)
        self._waiter.start()

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone and everything that it printed is here."""
        return self.exit_code is not None

    @property
    def _is_full(self) -> bool:
        return self._unread >= MOST_UNREAD and not self._is_closed

    def frames(self, after: int) -> tuple[list[Frame], int]:
        """Return what was printed since a number of frames, and how many there are then; those before are forgotten."""
        with self._changed:
            self.read_at = time.monotonic()
            while self._frames and self._first < after:
                self._unread -= len(self._frames.popleft().text)
                self._first += 1
            self._changed.notify_all()
            return list(self._frames), self._first + len(self._frames)

    def cancel(self) -> None:
        """Interrupt the command as Ctrl-C would, and end it if that is not enough; returns at once."""
        if self.has_ended or self.is_cancelled:
            return
        self.is_cancelled = True
        self._signal(signal.SIGINT)
        threading.Thread(target=self._insist, name="remote-cancel", daemon=True).start()

    def close(self, timeout_s: float = _GRACE_S + 5) -> None:
        """End the command if it runs, and wait until it has ended."""
        self.cancel()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._waiter.join(timeout_s)

    def _read(self, stream: Stream, source: IO[bytes]) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        while chunk := os.read(source.fileno(), _CHUNK):
            self._add(Frame(stream, decoder.decode(chunk)))
        self._add(Frame(stream, decoder.decode(b"", final=True)))

    def _add(self, frame: Frame) -> None:
        if not frame.text:
            return
        with self._changed:
            self._changed.wait_for(lambda: not self._is_full)
            if not self._is_closed:
                self._frames.append(frame)
                self._unread += len(frame.text)

    def _wait(self, readers: Sequence[threading.Thread]) -> None:
        code = self._process.wait()
        # What a command left running in the background may keep its output open.
        give_up_at = time.monotonic() + 2
        for reader in readers:
            while reader.is_alive() and (self._is_full or time.monotonic() < give_up_at):
                reader.join(0.2)
        for source, reader in zip((self._process.stdout, self._process.stderr), readers, strict=True):
            if source is not None and not reader.is_alive():
                source.close()
        os.close(self._held)
        self.exit_code = code if code >= 0 else 128 - code
        with self._changed:
            self._changed.notify_all()

    def _insist(self) -> None:
        self._waiter.join(_GRACE_S)
        if not self.has_ended:
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
