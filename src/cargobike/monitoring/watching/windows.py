"""Rows into windows, by count or by time; plain data between two stretches of rows, no clock.

A window never mixes versions of a model: what a new version predicts is not held against the old one. By count, a
window has its rows in the order in which they were read. By time, it has those whose requests came in a stretch of
time such as an hour of UTC, and closes once all rows that may still come are later than its end (`lateness_s`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.monitoring.facts import WindowChoice
from cargobike.monitoring.states.state import State
from cargobike.monitoring.watching.far import Sums

SKEW_S: Final = 300.0
"""How far the clocks of hosts may be apart: requests from further ahead count as if they had come now."""
_LEFT_BEHIND: Final = 2
"""After how many windows' worth of rows of other versions the open window of a version is closed as it is."""


class Closed(msgspec.Struct, frozen=True, kw_only=True):
    """A window that gets no more rows.

    Attributes:
        version: The version of the model that answered.
        first_at: When its first request came, in seconds since 1970.
        last_at: When its last one came.
        start: When it begins, if by time; else 0.
        rows: How many rows it has.
        state: The state of its rows, encoded.
        late: How many rows came too late for any window, since the window before.
    """

    version: int
    first_at: float
    last_at: float
    start: float
    rows: int
    state: bytes
    late: int = 0


@dataclass(slots=True)
class _Open:
    """A window that gets rows."""

    state: State
    first_at: float = math.inf
    last_at: float = -math.inf
    behind: int = 0


class _OpenRecord(msgspec.Struct, frozen=True, array_like=True):
    version: int
    start: float
    first_at: float
    last_at: float
    behind: int
    state: bytes


class WindowsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Open windows as plain data.

    Attributes:
        newest: The latest time of a request that was seen.
        closed_until: Up to when windows by time are closed.
        late: Rows that came too late, and were not told yet.
    """

    open: list[_OpenRecord] = []
    newest: float = -math.inf
    closed_until: float = -math.inf
    late: int = 0


class Windows:
    """Gathers rows into windows.

    Args:
        choice: How.
        summing: Makes states of rows, as the reference counts them.
        record: Windows that were open before.

    Raises:
        ValueError: If the record is of another reference.
    """

    def __init__(self, choice: WindowChoice, summing: Sums, record: WindowsRecord | None = None) -> None:
        self._choice = choice
        self._summing = self._sums = summing
        kept = record or WindowsRecord()
        self._open = {
            (one.version, one.start): _Open(
                State.decode(one.state, summing.layout), one.first_at, one.last_at, one.behind
            )
            for one in kept.open
        }
        self._newest, self._closed_until, self._late = kept.newest, kept.closed_until, kept.late

    def record(self) -> WindowsRecord:
        """Return the open windows as plain data."""
        return WindowsRecord(
            open=[
                _OpenRecord(version, start, one.first_at, one.last_at, one.behind, one.state.encode())
                for (version, start), one in sorted(self._open.items())
            ],
            newest=self._newest,
            closed_until=self._closed_until,
            late=self._late,
        )

    @property
    def waiting(self) -> int:
        """How many rows are in windows that are not closed."""
        return sum(one.state.rows for one in self._open.values())

    def feed(
        self, features: pa.Table, ats: Any, versions: Any, now: float, *, sums: Sums | None = None
    ) -> list[Closed]:
        """Add rows in order; return the windows that they close.

        Args:
            features: The rows, with the columns of the reference.
            ats: When each request came, in seconds since 1970: an array.
            versions: Which version answered each: an array.
            now: What time it is, for requests that seem to come from the future.
            sums: What adds these rows to states, if not what always does.
        """
        self._sums = sums or self._summing
        ats = np.minimum(np.asarray(ats, np.float64), now + SKEW_S)
        versions = np.asarray(versions, np.int64)
        if self._choice.rows:
            return [*self._by_count(features, ats, versions)]
        return [*self._by_time(features, ats, versions)]

    def tick(self, now: float) -> list[Closed]:
        """Close windows by time whose end is long over, though no later row has come; only when all was read."""
        if self._choice.rows:
            return []
        return [*self._close_until(now - SKEW_S - self._choice.lateness_s)]

    def _by_count(self, features: pa.Table, ats: Any, versions: Any) -> Iterator[Closed]:
        for begin, end in _runs(versions):
            version, start = int(versions[begin]), begin
            while start < end:
                window = self._open.setdefault((version, 0.0), _Open(State.empty(self._summing.layout)))
                taken = min(end - start, self._choice.rows - window.state.rows)
                self._add(window, features.slice(start, taken), ats[start : start + taken])
                start += taken
                if window.state.rows == self._choice.rows:
                    yield self._close((version, 0.0))
                yield from self._leave_behind(version, taken)

    def _leave_behind(self, version: int, rows: int) -> Iterator[Closed]:
        for key, other in list(self._open.items()):
            other.behind = 0 if key[0] == version else other.behind + rows
            if other.behind >= _LEFT_BEHIND * self._choice.rows:
                yield self._close(key)

    def _by_time(self, features: pa.Table, ats: Any, versions: Any) -> Iterator[Closed]:
        if not len(ats):
            return
        length = self._choice.seconds
        starts = np.floor(ats / length) * length
        is_late = starts + length <= self._closed_until
        self._late += int(is_late.sum())
        for version in np.unique(versions):
            for begin in np.unique(starts[(versions == version) & ~is_late]):
                chosen = (versions == version) & (starts == begin)
                window = self._open.setdefault((int(version), float(begin)), _Open(State.empty(self._summing.layout)))
                self._add(window, features.filter(pa.array(chosen)), ats[chosen])
        self._newest = max(self._newest, float(ats.max()))
        yield from self._close_until(self._newest - self._choice.lateness_s)

    def _close_until(self, at: float) -> Iterator[Closed]:
        until = math.floor(at / self._choice.seconds) * self._choice.seconds if math.isfinite(at) else at
        self._closed_until = max(self._closed_until, until)
        for key in sorted(self._open, key=lambda one: (one[1], one[0])):
            if key[1] + self._choice.seconds <= self._closed_until:
                yield self._close(key)

    def _add(self, window: _Open, features: pa.Table, ats: Any) -> None:
        self._sums.add(window.state, features)
        window.first_at = min(window.first_at, float(ats.min()))
        window.last_at = max(window.last_at, float(ats.max()))

    def _close(self, key: tuple[int, float]) -> Closed:
        window = self._open.pop(key)
        late, self._late = self._late, 0
        return Closed(
            version=key[0],
            first_at=window.first_at,
            last_at=window.last_at,
            start=key[1],
            rows=window.state.rows,
            state=window.state.encode(),
            late=late,
        )


def _runs(versions: Any) -> list[tuple[int, int]]:
    """Return where stretches of one version begin and end."""
    if not len(versions):
        return []
    changes = np.flatnonzero(np.diff(versions)) + 1
    return [*zip([0, *changes.tolist()], [*changes.tolist(), len(versions)], strict=True)]


def seconds_of(times: pa.ChunkedArray) -> Any:
    """Return times as seconds since 1970."""
    return pc.cast(times, pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy() / 1e6
