"""Trials that workers are given before they need them: which worker has room for how many. Pure, like the scheduler.

A trial that takes a tenth of a millisecond is over before its worker could hear of the next one. Where suggestions do
not depend on results, a worker may have some trials in advance: as many as it needs for a moment, going by its pace. A
worker runs them in order, and returns what it has not begun when one of them takes long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

HELD_S = 0.01
"""For how long a worker should have work: long enough to hide the way to the driver, short enough to harm no one."""
_SHARE = 0.125


class _Line(msgspec.Struct):
    """One worker's trials, and how fast it works through them.

    Attributes:
        trials: Those that it has not begun, as far as is known, in the order in which it will.
        since: When its last trial began.
        pace_s: How long a trial takes it; `None` as long as none has ended.
    """

    trials: deque[int] = msgspec.field(default_factory=deque)
    since: float = 0.0
    pace_s: float | None = None


class Ahead:
    """Keeps the trials that were given ahead.

    Args:
        most: How many a worker may have at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lines: dict[str, _Line] = {}
        self._roomy: dict[str, None] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def joined(self, worker: str) -> None:
        """Add a worker that is able to hold trials."""
        if self._most:
            self._lines[worker] = _Line()

    def began(self, worker: str, at: float) -> None:
        """Note when a worker got a trial to begin with at once."""
        line = self._lines.get(worker)
        if line is not None:
            line.since = at

    def ended(self, worker: str, at: float, took_s: float | None = None) -> None:
        """Note that a worker is done with a trial, and goes on with the next one if it has any.

        Args:
            worker: Which one.
            at: When we heard of it.
            took_s: How long it was busy with it, as far as it knows: on a busy machine we may hear of it much later.
        """
        line = self._lines.get(worker)
        if line is None:
            return
        took_s = max(0.0, at - line.since) if took_s is None else took_s
        line.since = at
        line.pace_s = took_s if line.pace_s is None else line.pace_s + _SHARE * (took_s - line.pace_s)
        if self._is_low(line):
            self._roomy[worker] = None

    def _has_room(self, line: _Line) -> bool:
        held = len(line.trials)
        return held < self._most and line.pace_s is not None and (held + 1) * line.pace_s <= HELD_S

    def _is_low(self, line: _Line) -> bool:
        """Tell whether to fill a line up again, which is done in one go: each message wakes two processes."""
        held = len(line.trials)
        return self._has_room(line) and 2 * held <= self._most and 2 * held * (line.pace_s or 0.0) <= HELD_S

    @property
    def roomy(self) -> str | None:
        """A worker that has room for another trial, the one that has had it for longest."""
        return next(iter(self._roomy), None)

    def is_full(self, worker: str) -> None:
        """Give a worker nothing more until its next trial has ended."""
        self._roomy.pop(worker, None)

    def put(self, worker: str, trial: int) -> None:
        """Give a trial to a worker that has room."""
        line = self._lines[worker]
        line.trials.append(trial)
        self._count += 1
        del self._roomy[worker]  # the next one is another worker's, if there is another
        if self._has_room(line):
            self._roomy[worker] = None

    def next_of(self, worker: str) -> int | None:
        """Return the trial that a worker will begin after the one it works on, if it has one."""
        line = self._lines.get(worker)
        return line.trials[0] if line is not None and line.trials else None

    def pop(self, worker: str) -> int:
        """Remove the trial that a worker has begun."""
        line = self._lines[worker]
        self._count -= 1
        trial = line.trials.popleft()
        if self._is_low(line):
            self._roomy[worker] = None
        return trial

    def returned(self, worker: str, trials: Iterable[int]) -> list[int]:
        """Remove trials that a worker has not begun and will not; returns them in order, without strange ones."""
        line = self._lines.get(worker)
        if line is None:
            return []
        back = set(trials)
        removed = [trial for trial in line.trials if trial in back]
        line.trials = deque(trial for trial in line.trials if trial not in back)
        self._count -= len(removed)
        self._roomy.pop(worker, None)
        return removed

    def gone(self, worker: str) -> list[int]:
        """Remove a worker; returns the trials that it had."""
        line = self._lines.pop(worker, None)
        self._roomy.pop(worker, None)
        if line is None:
            return []
        self._count -= len(line.trials)
        return list(line.trials)

    def holders(self) -> list[str]:
        """Return the workers that have trials which they may not have begun."""
        return [worker for worker, line in self._lines.items() if line.trials]
