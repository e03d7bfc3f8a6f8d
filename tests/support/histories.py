"""Random histories of feature groups, and a join in time that is so plain that it must be right."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from hypothesis import strategies as st

from cargobike.features.definition import WRITTEN_AT
from cargobike.features.joining.side import Side
from cargobike.features.joining.spine import TIME, Spine, spine_of

SECOND = 1_000_000

_moments = st.integers(-6, 12)
_keys = st.integers(0, 2)
_Row = dict[str, Any]


@st.composite
def histories(draw: st.DrawFn) -> list[_Row]:
    """Draw the rows of a group: one for each key and time, written before or after it, with values or nulls."""
    places = draw(st.lists(st.tuples(_keys, _moments), unique=True, max_size=12))
    return [
        {
            "key": key,
            "at": at,
            "written": draw(st.none() | _moments),
            "x": draw(st.none() | st.integers(0, 99)),
            "word": draw(st.none() | st.sampled_from(["red", "green", ""])),
        }
        for key, at in places
    ]


labels = st.lists(
    st.fixed_dictionaries({"key": st.none() | st.integers(0, 3), "time": st.none() | _moments}), max_size=12
)
"""Rows of a spine: keys that the group has or not, nulls, and the same moment several times."""


def spine(rows: list[_Row]) -> Spine:
    table = pa.table(
        {
            "number": pa.array(range(len(rows)), pa.int32()),
            "key": pa.array([row["key"] for row in rows], pa.int64()),
            "time": moments([row["time"] for row in rows]),
        }
    )
    return spine_of(table, "time")


def history_table(rows: list[_Row]) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([row["key"] for row in rows], pa.int64()),
            "at": moments([row["at"] for row in rows]),
            "x": pa.array([row["x"] for row in rows], pa.float32()),
            "word": pa.array([row["word"] for row in rows], pa.string()),
            WRITTEN_AT: moments([row["written"] for row in rows]),
        }
    )


def side(rows: list[_Row], ttl: int | None = None, known_at: str = "") -> Side:
    return Side(
        name="history",
        rows=ds.dataset(history_table(rows)),
        key=("key",),
        on=("key",),
        event_time="at",
        columns={"x": "x", "words": "word"},
        ttl_us=None if ttl is None else ttl * SECOND,
        known_at=known_at,
    )


def moments(seconds: list[int | None]) -> pa.Array:
    return pa.array([None if each is None else each * SECOND for each in seconds], TIME)


def answer(rows: list[_Row], label: _Row, ttl: int | None = None, known: bool = False) -> _Row | None:
    """Return the row of a history that counts for a label: by looking at every row."""
    best: _Row | None = None
    for row in rows:
        if label["key"] is None or label["time"] is None or row["key"] != label["key"] or row["at"] > label["time"]:
            continue
        if known and (row["written"] is None or row["written"] > label["time"]):
            continue
        if best is None or row["at"] > best["at"]:
            best = row
    return None if best is None or (ttl is not None and label["time"] - best["at"] > ttl) else best
