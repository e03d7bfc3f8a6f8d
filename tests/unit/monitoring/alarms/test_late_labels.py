"""Labels find the predictions of their requests, whenever they come."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.monitoring import join_labels

IDS = st.one_of(st.none(), st.integers(0, 8))


@given(requests=st.lists(IDS, max_size=15), labelled=st.lists(IDS, max_size=15))
def test_it_is_what_a_loop_over_all_rows_finds(requests: list[Any], labelled: list[Any]) -> None:
    predictions = pa.table({"request_id": pa.array(requests, pa.int64()), "row": range(len(requests))})
    labels = pa.table({"request_id": pa.array(labelled, pa.int64()), "label": range(len(labelled))})
    found = join_labels(predictions, labels)
    last = {one: place for place, one in enumerate(labelled) if one is not None}
    expected = [(one, row, last[one]) for row, one in enumerate(requests) if one in last]
    assert [tuple(row.values()) for row in found.rows.to_pylist()] == expected
    assert found.waiting.column("row").to_pylist() == [row for row, one in enumerate(requests) if one not in last]
    unmatched = sorted(place for one, place in last.items() if one not in requests)
    without_id = [place for place, one in enumerate(labelled) if one is None]
    assert found.unmatched.column("label").to_pylist() == unmatched + without_id
    assert found.repeated == len(labelled) - len(without_id) - len(last)


def test_labels_that_come_later_are_brought_to_those_that_wait() -> None:
    predictions = pa.table({"request_id": ["a", "b", "c"], "prediction": [0.1, 0.9, 0.4]})
    first = join_labels(predictions, pa.table({"request_id": ["c"], "label": [0]}))
    second = join_labels(first.waiting, pa.table({"request_id": ["b", "a"], "label": [1, 0]}))
    assert first.rows.column("request_id").to_pylist() == ["c"]
    assert second.rows.to_pydict() == {"request_id": ["a", "b"], "prediction": [0.1, 0.9], "label": [0, 1]}
    assert second.waiting.num_rows == 0


def test_ids_of_other_widths_are_the_same_ids() -> None:
    predictions = pa.table({"request_id": pa.array([1, 2], pa.int64())})
    labels = pa.table({"request_id": pa.array([2], pa.int32()), "label": ["x"]})
    assert join_labels(predictions, labels).rows.to_pylist() == [{"request_id": 2, "label": "x"}]
    texts = pa.table({"request_id": pa.array(["a"], pa.large_string()), "label": ["x"]})
    assert join_labels(pa.table({"request_id": ["a"]}), texts).rows.num_rows == 1


def test_all_mistakes_are_said_at_once() -> None:
    with pytest.raises(InvalidInputError, match=r"(?s)predictions have no column 'id'.*column 'y' is in both"):
        join_labels(pa.table({"idd": [1], "y": [1]}), pa.table({"id": [1], "y": [2]}), on="id")
    with pytest.raises(InvalidInputError, match="'id' is int64 in the predictions, and string in the labels"):
        join_labels(pa.table({"id": [1]}), pa.table({"id": ["1"], "y": [2]}), on="id")
