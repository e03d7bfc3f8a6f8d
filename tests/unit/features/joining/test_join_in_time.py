"""A join in time gives each row what was true of it then, whatever the history."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.features.definition import WRITTEN_AT
from cargobike.features.joining.duckdb import count_late, join
from cargobike.features.joining.side import Side
from cargobike.features.joining.spine import Spine, as_times, spine_of
from support.histories import answer, histories, labels, moments, side, spine

_ttls = st.none() | st.integers(0, 10)


@given(histories(), labels, _ttls, st.booleans())
def test_each_row_gets_what_looking_at_every_row_gives(
    history: list[dict[str, Any]], rows: list[dict[str, Any]], ttl: int | None, known: bool
) -> None:
    joined = join(spine(rows), [side(history, ttl, WRITTEN_AT if known else "")])

    expected = [answer(history, row, ttl, known) for row in rows]
    assert joined["number"].to_pylist() == list(range(len(rows)))
    assert joined["x"].to_pylist() == [found and found["x"] for found in expected]
    assert joined["words"].to_pylist() == [found and found["word"] for found in expected]
    assert joined.schema.field("x").type == pa.float32()


@settings(max_examples=30)
@given(histories(), labels, _ttls)
def test_values_that_were_written_after_their_label_are_counted(
    history: list[dict[str, Any]], rows: list[dict[str, Any]], ttl: int | None
) -> None:
    found = [(answer(history, row, ttl), row) for row in rows]
    written = [(match["written"], row["time"]) for match, row in found if match and match["written"] is not None]

    assert count_late(spine(rows), side(history, ttl)) == (len(written), sum(at > time for at, time in written))


@settings(max_examples=20)
@given(histories(), histories(), labels)
def test_groups_are_joined_side_by_side(
    first: list[dict[str, Any]], second: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> None:
    other = Side(
        name="other", rows=side(second).rows, key=("key",), on=("key",), event_time="at", columns={"second": "x"}
    )
    joined = join(spine(rows), [side(first), other])

    assert joined.column_names == ["number", "key", "time", "x", "words", "second"]
    assert joined["second"].to_pylist() == [found and found["x"] for found in (answer(second, row) for row in rows)]


def test_a_group_without_event_times_has_one_row_for_each_key() -> None:
    cities = pa.table({"city": ["Rome", "Oslo"], "country": ["it", "no"], "size": [3, 1]})
    rows = Spine(pa.table({"home": pa.array(["Oslo", "Paris", None, "Oslo"]).dictionary_encode()}))

    found = join(rows, [_timeless(cities)])

    assert found["size"].to_pylist() == [1, None, None, 1]
    with pytest.raises(StoreError, match="cities has several rows for one key"):
        join(rows, [_timeless(pa.concat_tables([cities, cities]))])


def _timeless(table: pa.Table) -> Side:
    return Side(name="cities", rows=ds.dataset(table), key=("city",), on=("home",), columns={"size": "size"})


def test_several_keys_and_odd_names() -> None:
    rows = pa.table({"a b": [1, 1], 'say "t"': ["x", "y"], "t": moments([1, 1]), "__r": [1.5, 2.5]})
    group = Side(
        name="odd",
        rows=ds.dataset(rows),
        key=("a b", 'say "t"'),
        on=("s", "g"),
        event_time="t",
        columns={"rows": "__r", "r": "t"},
    )
    labelled = spine_of(pa.table({"s": [1.0, 1.0, 2.0], "g": ["y", "z", "x"], "at": moments([5, 5, 5])}), "at")

    found = join(labelled, [group])

    assert found["rows"].to_pylist() == [2.5, None, None]
    assert found["r"].null_count == 2


def test_keys_that_cannot_be_compared_are_refused() -> None:
    text = spine_of(pa.table({"key": ["one"], "time": moments([1])}), "time")
    half = spine_of(pa.table({"key": [0.5], "time": moments([1])}), "time")

    with pytest.raises(InvalidInputError, match="'key' of the rows holds string, and the group history has int64"):
        join(text, [side([])])
    with pytest.raises(InvalidInputError, match="the group history has int64 for it: Float value"):
        join(half, [side([])])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([-1, 1999, None], pa.timestamp("ns")), [-1, 1, None]),
        (pa.array([7], pa.timestamp("s", tz="Asia/Tokyo")), [7_000_000]),
        (pa.array(["1970-01-01 00:00:01"]), [1_000_000]),
        (pa.array([datetime.date(1970, 1, 2)]), [86_400_000_000]),
        (pa.array([None]), [None]),
    ],
)
def test_times_of_any_kind_are_compared_in_utc(values: pa.Array, expected: list[int | None]) -> None:
    assert as_times(pa.chunked_array([values]), "at").cast(pa.int64()).to_pylist() == expected


@pytest.mark.parametrize("values", [[1.5], ["yesterday"]])
def test_what_is_no_time_is_refused(values: list[Any]) -> None:
    with pytest.raises(InvalidInputError, match="'at' is to hold times"):
        as_times(pa.chunked_array([pa.array(values)]), "at")
