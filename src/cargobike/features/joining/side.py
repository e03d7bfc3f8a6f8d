"""A group as one side of a join: which of its rows count for a row of the spine, and what they give."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.dataset as ds

from cargobike.features.definition import WRITTEN_AT


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What is looked up in one group.

    For a row of the spine it gives the row with the same keys and the latest event time at or before the time of the
    spine's row. A value is null if there is no such row, or if it is older than `ttl_us`, or if it is null itself: an
    older value never stands in for it. A group without event times has one row for each key, which counts at any time.

    Attributes:
        name: The group, for errors.
        rows: All its rows; one for each key and event time.
        key: Its key columns.
        on: The columns of the spine that they are compared with, in the same order.
        event_time: Its column of event times; empty if it has none.
        columns: Names that its columns get in the result, and their own.
        ttl_us: How long a row counts after its event time, this moment included; `None` for ever.
        known_at: The column that says since when a row was known; if given, a row counts only for rows of the spine
            that are not earlier than that. Empty if it does not matter.
    """

    name: str
    rows: ds.Dataset
    key: tuple[str, ...]
    on: tuple[str, ...]
    event_time: str = ""
    columns: dict[str, str]
    ttl_us: int | None = None
    known_at: str = ""

    def field(self, column: str) -> pa.Field:
        """Return name and type of one of its columns."""
        return self.rows.schema.field(column)

    def knowing(self, known_at: str) -> Side:
        """Return the same side, in which only what was known counts: `"commit"` for when it was written."""
        return replace(self, known_at=WRITTEN_AT if known_at == "commit" else known_at)
