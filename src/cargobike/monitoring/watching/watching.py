"""Rows of a log in, facts out: what a monitor does, without input, output or clock."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from cargobike.monitoring.facts import AnyMonitorFact, Watched
from cargobike.monitoring.judgement import Judgement
from cargobike.monitoring.reference import Reference
from cargobike.monitoring.watching.far import Cutting, FarRows, Merging, places
from cargobike.monitoring.watching.features import answered, features_of_log, fitted
from cargobike.monitoring.watching.judging import Judging, JudgingRecord
from cargobike.monitoring.watching.windows import Closed, Windows, WindowsRecord, seconds_of


class WatchingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept between two stretches of rows, together with the facts that they gave.

    Attributes:
        position: Where in the log to go on.
        windows: The open windows.
        judging: What counts for alarms.
        dropped: Requests that the log could not keep, and that were not told yet.
        rows: How many rows were watched in all.
    """

    position: str = ""
    windows: WindowsRecord = WindowsRecord()
    judging: JudgingRecord = JudgingRecord()
    dropped: int = 0
    rows: int = 0


class Outcome(msgspec.Struct, frozen=True):
    """What rows led to: facts in order, and what is said about each window that was judged, by its number."""

    facts: list[AnyMonitorFact]
    judgements: dict[int, Judgement]


class Watching:
    """Watches rows: gathers them into windows, judges those, raises alarms.

    Guarantees: what it returns depends on its arguments alone. With the record that was kept after some rows, another
    process goes on as this one would have.

    Args:
        watched: What was asked for.
        reference: What is usual.
        record: What was kept.

    Raises:
        ValueError: If the record is of another reference.
    """

    def __init__(self, watched: Watched, reference: Reference, record: WatchingRecord | None = None) -> None:
        kept = record or WatchingRecord()
        self._reference = reference
        self._choice = watched.window
        self._windows = Windows(watched.window, reference.summing, kept.windows)
        self.judging = Judging(watched, reference, kept.judging)
        self.position, self._dropped, self._rows = kept.position, kept.dropped, kept.rows

    def record(self) -> WatchingRecord:
        """Return what is to be kept, at once with the facts."""
        return WatchingRecord(
            position=self.position,
            windows=self._windows.record(),
            judging=self.judging.record(),
            dropped=self._dropped,
            rows=self._rows,
        )

    @property
    def rows(self) -> int:
        """How many rows were watched."""
        return self._rows

    def feed(self, rows: Any, position: str, now: float, *, dropped: int = 0) -> Outcome:
        """Watch some rows of a log.

        Args:
            rows: An Arrow table with the columns of an inference log; or `FarRows`, which are summed elsewhere.
            position: Where the log goes on behind them.
            now: What time it is, in seconds since 1970.
            dropped: How many requests the log could not keep.
        """
        if not isinstance(rows, pa.Table):
            return self._feed_far(rows, position, now, dropped)
        rows = answered(rows)
        self.position = position
        self._dropped += dropped
        self._rows += rows.num_rows
        if not rows.num_rows:
            return Outcome([], {})
        features = fitted(features_of_log(rows), self._reference.summing.layout)
        versions = rows["version"].fill_null(0).to_numpy()
        return self._judged(self._windows.feed(features, seconds_of(rows["at"]), versions, now), now)

    def _feed_far(self, rows: FarRows, position: str, now: float, dropped: int) -> Outcome:
        layout, table = self._reference.summing.layout, places(len(rows.ats))
        cutting = Cutting(layout)
        Windows(self._choice, cutting, self._windows.record()).feed(table, rows.ats, rows.versions, now)
        merging = Merging(layout, rows.sum(cutting.cuts) if cutting.cuts else [])
        self.position = position
        self._dropped += dropped
        self._rows += table.num_rows
        return self._judged(self._windows.feed(table, rows.ats, rows.versions, now, sums=merging), now)

    def tick(self, now: float) -> Outcome:
        """Close the windows whose time is over; only when everything that is there was read."""
        return self._judged(self._windows.tick(now), now)

    def _judged(self, windows: list[Closed], now: float) -> Outcome:
        outcome = Outcome([], {})
        for closed in windows:
            judged = self.judging.judge(closed, now, dropped=self._dropped, position=self.position)
            self._dropped = 0
            outcome.facts.extend(judged.facts)
            if judged.judgement is not None:
                outcome.judgements[judged.number] = judged.judgement
        return outcome
