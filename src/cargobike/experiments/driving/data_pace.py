"""How fast trials draw from their data, and how much of their time they wait for it; pure."""

from __future__ import annotations

import math

import msgspec

from cargobike.experiments.trial.messages import Drawn
from cargobike.experiments.usage import DataPace

FORGET_AFTER_S = 30.0
"""A worker that has drawn nothing for so long, because it evaluates or compiles, is not counted any more."""


class _Stand(msgspec.Struct):
    task: int
    attempt: int
    drawn: Drawn
    at: float
    pace: DataPace | None = None


class DataPaces:
    """Follows what workers say they have drawn."""

    def __init__(self) -> None:
        self._stands: dict[str, _Stand] = {}

    def note(self, worker: str, task: int, attempt: int, drawn: Drawn, at: float) -> None:
        """Compare with what the worker has said before about the same attempt; nonsense is passed over."""
        if not (math.isfinite(drawn.after_s) and math.isfinite(drawn.waited_s)) or drawn.rows < 0:
            return
        before = self._stands.get(worker)
        if before is None or (before.task, before.attempt) != (task, attempt):
            before = _Stand(task, attempt, Drawn(0.0, 0, 0.0), at)
        passed_s = drawn.after_s - before.drawn.after_s
        pace = before.pace
        if passed_s > 0:
            share = (drawn.waited_s - before.drawn.waited_s) / passed_s
            pace = DataPace(max(0, drawn.rows - before.drawn.rows) / passed_s, min(1.0, max(0.0, share)))
        self._stands[worker] = _Stand(task, attempt, drawn, at, pace)

    def of(self, worker: str, task: int, attempt: int) -> DataPace | None:
        """Return how one worker does in an attempt, as far as it is known."""
        stand = self._stands.get(worker)
        return stand.pace if stand is not None and (stand.task, stand.attempt) == (task, attempt) else None

    def ended(self, worker: str) -> None:
        """Forget a worker whose attempt has ended."""
        self._stands.pop(worker, None)

    def total(self, now: float) -> DataPace | None:
        """Return the rows per second of all workers together, and the share that they wait on average."""
        paces = [
            stand.pace for stand in self._stands.values() if stand.pace is not None and now - stand.at < FORGET_AFTER_S
        ]
        if not paces:
            return None
        return DataPace(sum(pace.rows_per_s for pace in paces), sum(pace.waited for pace in paces) / len(paces))
