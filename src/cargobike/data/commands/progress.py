"""A line on the terminal that says how far long work has come; programs and pipes see nothing of it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from cargobike.data.tables.writer import Progress

_EVERY_S = 0.2


class Line:
    """The line.

    Args:
        verb: What is being done, such as `written`.
        is_shown: Whether there is a terminal to show it on.
    """

    def __init__(self, verb: str, *, is_shown: bool) -> None:
        self._verb = verb
        self._is_shown = is_shown
        self._begun = time.monotonic()
        self._next = 0.0
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        """Show how far it has come, a few times a second at most."""
        now = time.monotonic()
        if not self._is_shown or now < self._next:
            return
        self._next = now + _EVERY_S
        rows = f"{progress.rows:,}" + (f" of {progress.total_rows:,}" if progress.total_rows else "")
        speed = progress.size_bytes / max(now - self._begun, 1e-3)
        self._show(f"{rows} rows {self._verb}, {progress.size_bytes / 1e6:,.1f} MB, {speed / 1e6:,.1f} MB/s")

    def clear(self) -> None:
        """Take the line away."""
        if self._width:
            self._show("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _show(self, text: str) -> None:
        sys.stderr.write(f"\r{text:<{self._width}}")
        sys.stderr.flush()
        self._width = len(text)


@contextlib.contextmanager
def progress_line(verb: str, *, quiet: bool) -> Iterator[Line]:
    """Give a line for the length of a `with` block."""
    line = Line(verb, is_shown=not quiet and sys.stderr.isatty())
    try:
        yield line
    finally:
        line.clear()
