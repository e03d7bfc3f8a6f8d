"""What a function returned becomes a column of the type that was announced, or of one that can hold what may come."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from cargobike.data.casting import as_columns, common_schema, common_type, fitted, type_of

ROWS = pa.RecordBatch.from_pydict({"x": [10, 11]})


def fit(values: Any, wanted: pa.DataType) -> list[Any]:
    array = fitted(values, wanted, "label", ROWS, (3, 100))
    assert array.type == wanted
    values_now: list[Any] = array.to_pylist()
    return values_now


@pytest.mark.parametrize(
    ("values", "wanted", "expected"),
    [
        (np.array([1, 2]), pa.int32(), [1, 2]),
        (np.array([1, 2], dtype=np.float32), pa.float64(), [1.0, 2.0]),
        (np.array([0.5, np.nan]), pa.float64(), [0.5, pytest.approx(np.nan, nan_ok=True)]),
        (np.array([1.0, np.nan]), pa.int32(), [1, None]),
        (pd.Series([1, None]), pa.int64(), [1, None]),
        (pd.Series([1, None], dtype="Int64"), pa.int16(), [1, None]),
        ([1, pd.NA], pa.int32(), [1, None]),
        ([1, None], pa.int32(), [1, None]),
        ([None, None], pa.float64(), [None, None]),
        ([1, 2.5], pa.float64(), [1.0, 2.5]),
        ([1, "2"], pa.string(), ["1", "2"]),
        ([2**60 + 1, 0], pa.float64(), [2.0**60, 0.0]),
        (np.array([1.5, np.nan]), pa.decimal128(10, 2), [Decimal("1.50"), None]),
        (np.array([True, False]), pa.int32(), [1, 0]),
        (pd.Categorical(["a", "b"]), pa.string(), ["a", "b"]),
        ([np.float32(1.5), np.int64(2)], pa.float64(), [1.5, 2.0]),
        ([[1.0], None], pa.list_(pa.float32()), [[1.0], None]),
        (pd.to_datetime(pd.Series(["2020-01-01", None])), pa.timestamp("us"), [datetime(2020, 1, 1), None]),
        (pa.array([1, 2], pa.int8()), pa.int64(), [1, 2]),
    ],
)
def test_values_become_what_was_announced(values: Any, wanted: pa.DataType, expected: list[Any]) -> None:
    assert fit(values, wanted) == expected


def test_a_time_without_a_zone_is_one_of_the_session() -> None:
    zoned = fitted(pd.to_datetime(["2020-01-01", "2020-01-02"]), pa.timestamp("us", "Asia/Tokyo"), "t", ROWS, (0, 0))
    assert zoned.to_pylist()[0].isoformat() == "2020-01-01T00:00:00+09:00"
    assert fit(zoned, pa.timestamp("us"))[0] == datetime(2020, 1, 1)


@pytest.mark.parametrize(
    ("values", "wanted", "shown"),
    [
        (np.array([1.0, 2.5]), pa.int32(), "2.5"),
        ([1, 2**40], pa.int32(), "1099511627776"),
        ([1, "a"], pa.int64(), "'a'"),
        (pd.Series(["1", "x"]), pa.float64(), "'x'"),
        (pa.array(["1", "x"]), pa.float64(), "'x'"),
        ([1, object()], pa.string(), "<object object"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_row(values: Any, wanted: pa.DataType, shown: str) -> None:
    with pytest.raises(ValueError, match="for row 101 of partition 3, which does not fit") as caught:
        fit(values, wanted)
    assert f"returned 'label' = {shown}" in str(caught.value)
    assert "That row is {'x': 11}." in str(caught.value)
    assert 'output="label double"' in str(caught.value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([None, None], pa.null()),
        ([1, None], pa.int64()),
        (np.zeros(2, np.uint64), pa.decimal128(20, 0)),
        (np.zeros(2, np.float16), pa.float32()),
        ([Decimal("1.5"), None], pa.decimal128(38, 18)),
        ([np.zeros(3, np.uint8)], pa.list_(pa.int16())),
    ],
)
def test_a_type_that_holds_what_may_come_is_found(values: Any, expected: pa.DataType) -> None:
    assert type_of(values) == expected


def test_what_two_batches_hold_has_one_type() -> None:
    assert common_type(pa.null(), pa.int64()) == pa.int64()
    assert common_type(pa.int64(), pa.float64()) == pa.float64()
    assert common_type(pa.int64(), pa.string()) == pa.string()
    with pytest.raises(ValueError, match="no type for what predict returns"):
        type_of([1, "a"])


def test_what_two_partitions_hold_has_one_schema() -> None:
    first = pa.schema([("n", pa.int64()), ("late", pa.null()), ("mixed", pa.string())])
    second = pa.schema([("n", pa.float64()), ("late", pa.int64()), ("mixed", pa.int64())])
    common = pa.schema([("n", pa.float64()), ("late", pa.int64()), ("mixed", pa.string())])
    assert common_schema([first, second]) == common_schema([first, second, second]) == common
    assert common_schema([first]) == first


def test_columns_of_whatever_is_returned() -> None:
    assert as_columns([1, 2], 2) == {"prediction": [1, 2]}
    assert as_columns([torch.tensor(1.5), torch.tensor(2.5)], 2) == {"prediction": [1.5, 2.5]}
    assert [list(row) for row in as_columns(torch.ones(2, 3), 2)["prediction"]] == [[1.0] * 3] * 2
    assert list(as_columns(pd.DataFrame({"a": [1], 0: [2]}), 1)) == ["a", "0"]
    assert as_columns(pa.table({"a": [1, 2]}), 2)["a"].to_pylist() == [1, 2]
    with pytest.raises(ValueError, match="given 10 rows and returned 9 values of 'prediction'"):
        as_columns(list(range(9)), 10)
    with pytest.raises(ValueError, match="given 2 rows and returned float, no values, of 'prediction'"):
        as_columns(3.0, 2)
