"""Plain lines where there is no terminal: log files, pipes, continuous integration."""

from __future__ import annotations

from typing import TextIO

from cargobike.core.record import ExperimentRecord
from cargobike.experiments.display import text as words
from cargobike.experiments.display.drawn import DrawnDisplay
from cargobike.experiments.display.snapshot import ProgressSnapshot

_FIRST_PAUSE_S = 10.0
_LONGEST_PAUSE_S = 60.0
_BACK_OFF = 1.5


class PlainDisplay(DrawnDisplay):
    """Writes one line at the start, one now and then while something changes, and one at the end.

    The pauses grow from 10 s to 60 s. Only a new phase during the search (such as `stopping`) is written at once.
    """

    def __init__(self, record: ExperimentRecord, stream: TextIO) -> None:
        super().__init__(record)
        self._stream = stream
        self._pause_s = _FIRST_PAUSE_S
        self._next_at: float | None = None
        self._failures_written = 0
        self._is_urgent = False

    def phase(self, text: str) -> None:
        """Say in a few words what is going on."""
        before = self._progress.version
        super().phase(text)
        if self._progress.is_searching and self._progress.version != before:
            self._is_urgent = True

    def _is_due(self, now_s: float) -> bool:
        if self._next_at is None:
            self._next_at = now_s + _FIRST_PAUSE_S
            return True
        if self._progress.version == self._drawn_version:
            return False
        if self._is_urgent:
            return True
        if now_s < self._next_at:
            return False
        self._pause_s = min(_LONGEST_PAUSE_S, self._pause_s * _BACK_OFF)
        self._next_at = now_s + self._pause_s
        return True

    def _draw(self, snapshot: ProgressSnapshot) -> None:
        self._is_urgent = False
        self._drawn_version = self._progress.version
        self._write(plain_line(snapshot, shows_failure=snapshot.failed > self._failures_written))
        self._failures_written = snapshot.failed

    def _draw_last(self, snapshot: ProgressSnapshot) -> None:
        self._write(plain_line(snapshot, shows_failure=snapshot.failed > 0))

    def _write(self, line: str) -> None:
        self._stream.write(words.for_encoding(line, getattr(self._stream, "encoding", None)) + "\n")
        self._stream.flush()


def plain_line(snapshot: ProgressSnapshot, *, shows_failure: bool) -> str:
    """Return an experiment's state as one line of text."""
    parts = [f"{words.clean(snapshot.phase, 60)}, {words.ended_of_total(snapshot)}"]
    if snapshot.ended or snapshot.running:
        parts.append(", ".join(f"{count:,} {word}" for word, count in words.counts(snapshot)))
    best = words.best(snapshot)
    if best is not None:
        parts.append(best if snapshot.objectives else f"best {best}")
    if chosen := words.best_params(snapshot, ", "):
        parts.append(chosen)
    newest = words.latest(snapshot)
    if newest is not None:
        parts.append(newest)
    if snapshot.ended or snapshot.running:
        parts.append(", ".join(words.pace(snapshot)))
    if not snapshot.is_final:
        parts.append(words.workers(snapshot))
    if snapshot.data_pace is not None:
        parts.append(f"data {snapshot.data_pace}")
    if snapshot.reason:
        parts.append(words.clean(snapshot.reason))
    if shows_failure and snapshot.failures:
        failure = snapshot.failures[-1]
        parts.append(f"last failure: trial {failure.trial}: {words.clean(failure.line, 120)}")
    name = words.clean(snapshot.name, 60)
    return f"[{name} {snapshot.experiment_id}] " + " · ".join(parts)
