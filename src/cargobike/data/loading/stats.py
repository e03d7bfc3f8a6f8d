"""What a loader has done so far: rows, waiting, memory, what was left out."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

_MOST_NAMED: Final = 100


@dataclass
class Stats:
    """Counted since a loader was made, by this process.

    Attributes:
        rows: Rows handed out.
        batches: Batches handed out.
        seconds: How long was iterated, in all.
        waited_s: How long of that the thread that takes batches waited for groups to be decoded.
        peak_bytes: The most memory that decoded groups took.
        skipped_rows: Rows left out because they could not be read, with `on_error="skip"`.
        padded_rows: Rows handed out a second time to fill the last batch.
        skipped: Where rows were left out, and why; the first hundred places.
    """

    rows: int = 0
    batches: int = 0
    seconds: float = 0.0
    waited_s: float = 0.0
    peak_bytes: int = 0
    skipped_rows: int = 0
    padded_rows: int = 0
    skipped: list[str] = field(default_factory=list)
    _since: float | None = None

    @property
    def rows_per_s(self) -> float:
        """Rows handed out in a second of iterating."""
        return self.rows / self.elapsed_s if self.elapsed_s else 0.0

    @property
    def waited_share(self) -> float:
        """Which part of the time of iterating was spent waiting for data, from 0 to 1."""
        return min(self.waited_s / self.elapsed_s, 1.0) if self.elapsed_s else 0.0

    @property
    def elapsed_s(self) -> float:
        """How long was iterated until now."""
        return self.seconds + (0.0 if self._since is None else time.perf_counter() - self._since)

    def begin(self) -> None:
        """Let time count from now on."""
        self._since = time.perf_counter()

    def end(self) -> None:
        """Let time count no more."""
        self.seconds, self._since = self.elapsed_s, None

    def count_skipped(self, place: str, rows: int, words: str) -> None:
        """Record that rows were left out."""
        self.skipped_rows += rows
        if len(self.skipped) < _MOST_NAMED:
            self.skipped.append(f"{place}: {rows:,} rows: {words}")
