"""A line that tells how far a long piece of work is: redrawn on a terminal, now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Final, TextIO

from cargobike.core.values.words import duration

_DRAW_EVERY_S: Final = 0.2
_WRITE_EVERY_S: Final = 10.0


class ProgressLine:
    """Shows how many rows are predicted, how fast, and how long it will take.

    Args:
        total: How many rows there are.
        before: How many were finished by an earlier call.
        quiet: Show nothing.
        stream: Where to; standard error if not given.
    """

    def __init__(self, total: int, before: int = 0, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._total, self._before, self._rows = total, before, 0
        self._began = time.monotonic()
        self._is_quiet = quiet or self._stream is None
        self._redraws = not self._is_quiet and self._stream.isatty()
        self._next = self._began + (0.0 if self._redraws else _WRITE_EVERY_S)

    def __enter__(self) -> ProgressLine:
        if self._before and not self._is_quiet:
            self._write(f"{self._before:,} of {self._total:,} rows were predicted by an earlier call, and are kept\n")
        return self

    def __exit__(self, *_: object) -> None:
        if self._redraws:
            self._write("\r\x1b[2K")
        if not self._is_quiet:
            self._write(f"{self.text()}\n")

    def text(self) -> str:
        """Return the line."""
        done = self._before + self._rows
        passed_s = time.monotonic() - self._began
        words = f"inference: {done:,} of {self._total:,} rows"
        if self._rows and passed_s > 0:
            rate = self._rows / passed_s
            words += f" · {rate:,.0f} rows/s"
            if done < self._total:
                words += f" · {duration((self._total - done) / rate)} left"
        return f"{words} · {duration(passed_s)}"

    def done(self, rows: int) -> None:
        """Count rows that are predicted."""
        self._rows += rows
        self.say("")

    def say(self, what: str) -> None:
        """Draw, if it is time to, with a few words about what is going on."""
        now = time.monotonic()
        if self._is_quiet or now < self._next:
            return
        self._next = now + (_DRAW_EVERY_S if self._redraws else _WRITE_EVERY_S)
        text = self.text() + (f" · {what}" if what else "")
        self._write(f"\r\x1b[2K{text}" if self._redraws else f"{text}\n")

    def pass_on(self, stream: str, data: bytes) -> None:
        """Show what predict prints."""
        if self._is_quiet:
            return
        if self._redraws:
            self._write("\r\x1b[2K")
        target = sys.stdout if stream == "stdout" else self._stream
        target.write(data.decode("utf-8", "backslashreplace"))
        target.flush()

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
