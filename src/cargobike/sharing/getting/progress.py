"""How far a fetch has come, for people and programs."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Final, TextIO

import msgspec

from cargobike.sharing.getting.fetch import Fetch

_SPAN_S: Final = 5.0
_QUIET_S: Final = 2.0


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a fetch has come.

    Attributes:
        reference: What is fetched.
        size: Its bytes.
        size_had: Bytes that are here.
        size_fetched: Bytes that came over the network since it was begun.
        size_found: Bytes that were here already: from an attempt before, or from another version.
        size_twice: Bytes that came although they had come already: late ones are asked of two members.
        rate: Bytes in a second, over the last seconds.
        members: Sources that deliver.
        waiting_for: Why nothing comes, source by source; empty while something does.
        dropped: Sources that delivered something wrong, and what.
    """

    reference: str
    size: int
    size_had: int
    size_fetched: int
    size_found: int
    rate: float
    members: int
    waiting_for: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    size_twice: int = 0

    @property
    def line(self) -> str:
        """Return it as one line for people."""
        share = 100.0 * self.size_had / self.size if self.size else 100.0
        if self.waiting_for:
            return f"{self.reference}: {share:.1f} %, waiting: {'; '.join(self.waiting_for)}"
        left = (self.size - self.size_had) / self.rate if self.rate else 0.0
        end = f", {left:.0f} s left" if left else ""
        return (
            f"{self.reference}: {share:.1f} % of {self.size / 1e6:,.1f} MB, {self.rate / 1e6:,.1f} MB/s from "
            f"{self.members} {'member' if self.members == 1 else 'members'}{end}"
        )


class Gauge:
    """Measures the pace of a fetch."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def read(self, fetch: Fetch) -> Progress:
        """Return how far it is now."""
        now = time.monotonic()
        with fetch.changed:
            tallies = [(one.name, one.state, one.blame, one.is_connected) for one in fetch.tallies.values()]
            had, fetched, found = fetch.size_had, fetch.size_fetched, fetch.size_found
        self._samples.append((now, fetched))
        while len(self._samples) > 2 and self._samples[0][0] < now - _SPAN_S:
            self._samples.popleft()
        began, before = self._samples[0]
        stands = had < fetch.size and fetch.silent_s > _QUIET_S
        return Progress(
            reference=fetch.manifest.reference,
            size=fetch.size,
            size_had=had,
            size_fetched=fetched,
            size_found=found,
            rate=(fetched - before) / (now - began) if now > began else 0.0,
            members=sum(connected for *_, connected in tallies),
            waiting_for=tuple(f"{name} {state}" for name, state, _, _ in tallies) or ("no member is known",)
            if stands
            else (),
            size_twice=fetch.size_twice,
            dropped=tuple(f"{name}: {blame}" for name, _, blame, _ in tallies if blame),
        )


class ProgressLine:
    """Writes one line that changes, on a terminal; elsewhere a line now and then."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._last_s = 0.0
        self._width = 0

    def show(self, progress: Progress) -> None:
        """Show how far it is."""
        now = time.monotonic()
        if now - self._last_s < (0.5 if self._is_terminal else 10.0) and self._last_s:
            return
        self._last_s = now
        line = progress.line
        if self._is_terminal:
            self._stream.write("\r" + line[:200].ljust(self._width))
            self._width = min(len(line), 200)
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._is_terminal and self._width:
            self._stream.write("\n")
            self._stream.flush()
