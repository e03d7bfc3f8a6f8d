"""What a train function prints in this process: shown as ever, and kept with its trial."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from cargobike.workers.wire.messages import StreamName

Keep = Callable[[StreamName, bytes], None]


class Tee:
    """A stream that writes to another one, and hands on a copy; in everything else it is the other one.

    Debuggers and `input()` look at the stream that they write to: they find the terminal.
    """

    def __init__(self, stream: TextIO, keep: Callable[[bytes], None]) -> None:
        self._stream = stream
        self._keep = keep

    def write(self, text: str) -> int:
        """Write to both."""
        written = self._stream.write(text)
        self._keep(text.encode("utf-8", "backslashreplace"))
        return written

    def writelines(self, lines: Any) -> None:
        """Write to both."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def copying_output(keep: Keep) -> Iterator[None]:
    """Copy what is written to standard output and standard error, while entered.

    A stream that the function itself has put in our place is left there.
    """
    before = (sys.stdout, sys.stderr)
    tees = (Tee(sys.stdout, lambda data: keep("stdout", data)), Tee(sys.stderr, lambda data: keep("stderr", data)))
    sys.stdout, sys.stderr = tees
    try:
        yield
    finally:
        for name, tee, stream in zip(("stdout", "stderr"), tees, before, strict=True):
            if getattr(sys, name) is tee:
                setattr(sys, name, stream)
