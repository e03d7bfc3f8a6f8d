"""Live progress of a run on a terminal: one line that changes, and one line for each step that failed."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from cargobike.cli.terminal import neutralized
from cargobike.pipelines.driving.driver import Watch
from cargobike.pipelines.facts import AnyRunFact, AttemptEnded, RunEnded, StepEnded, StepStarted, StepState
from cargobike.pipelines.record import RunRecord

_EVERY_S = 0.1


class _Line:
    """Counts as facts come, since a record of many steps is long to look through."""

    def __init__(self) -> None:
        self._counts: dict[StepState, int] = {}
        self._shown_at = 0.0
        self._began_at = time.monotonic()
        self._running: dict[int, str] = {}

    def watch(self, record: RunRecord, fact: AnyRunFact) -> None:
        """Show what has become of a run."""
        if isinstance(fact, StepEnded):
            self._counts[fact.state] = self._counts.get(fact.state, 0) + 1
            self._running.pop(fact.step, None)
            if fact.state.has_raised:
                name = record.steps[fact.step].name
                self._say(f"step {fact.step} ({name}) {fact.state}: {_last_line(fact.error)}")
        elif isinstance(fact, AttemptEnded):
            self._running.pop(fact.step, None)
            name = record.steps[fact.step].name
            self._say(f"step {fact.step} ({name}), attempt {fact.attempt}: {_last_line(fact.error)}; trying again")
        elif isinstance(fact, StepStarted):
            self._running[fact.step] = record.steps[fact.step].name
        now = time.monotonic()
        if now - self._shown_at >= _EVERY_S or isinstance(fact, RunEnded):
            self._shown_at = now
            self._show(record)

    def _show(self, record: RunRecord) -> None:
        done = sum(count for state, count in self._counts.items() if state.is_done)
        running = ", ".join(f"{number} {name}" for number, name in list(self._running.items())[:3])
        line = f"{record.pipeline} {record.id}: {done} of {len(record.steps)} steps done"
        line += f", running {running}" if running else ""
        sys.stderr.write(f"\r\x1b[K{neutralized(line)[:150]}")
        sys.stderr.flush()

    def _say(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{neutralized(text)}\n")

    def close(self) -> None:
        """Clear the line."""
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


@contextlib.contextmanager
def progress(*, quiet: bool) -> Iterator[Watch | None]:
    """Show progress while entered, if there is a terminal to show it on."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    line = _Line()
    try:
        yield line.watch
    finally:
        line.close()


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no reason"
