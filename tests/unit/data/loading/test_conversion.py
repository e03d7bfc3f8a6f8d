"""What becomes of each type of column, and of nulls and lists of different lengths."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.data.loading.loader import Loader
from cargobike.data.tensors import tensor_field


def only(table: Any, **options: Any) -> Any:
    """The one array of the one batch."""
    (batch,) = list(Loader(table, 100, **options))
    (array,) = batch.values()
    return array


DAY = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC)
EXPECTED = [
    (pa.array([1, 2], pa.int8()), np.array([1, 2], np.int8)),
    (pa.array([1, 2], pa.uint64()), np.array([1, 2], np.uint64)),
    (pa.array([0.5, 2], pa.float16()), np.array([0.5, 2], np.float16)),
    (pa.array([0.5, float("nan")], pa.float64()), np.array([0.5, np.nan])),
    (pa.array([True, False]), np.array([True, False])),
    (pa.array([DAY], pa.timestamp("us", "Europe/Stockholm")), np.array(["2024-02-29T12:30"], "M8[us]")),
    (pa.array([DAY.replace(tzinfo=None)], pa.timestamp("ns")), np.array(["2024-02-29T12:30"], "M8[ns]")),
    (pa.array([DAY.date()], pa.date32()), np.array(["2024-02-29"], "M8[D]")),
    (pa.array([DAY.date()], pa.date64()), np.array(["2024-02-29"], "M8[ms]")),
    (pa.array([datetime.time(1, 2)], pa.time32("s")), np.array([3720], "m8[s]")),
    (pa.array([datetime.timedelta(seconds=2)], pa.duration("ms")), np.array([2000], "m8[ms]")),
    (pa.array([Decimal("1.25"), Decimal(-3)], pa.decimal128(10, 2)), np.array([1.25, -3.0])),
    (pa.array(["tulip", "åäö", ""]), np.array(["tulip", "åäö", ""], object)),
    (pa.array(["a", "b", "a"]).dictionary_encode(), np.array(["a", "b", "a"], object)),
    (pa.array([3, 4, 3]).dictionary_encode(), np.array([3, 4, 3])),
    (pa.array([b"\x00", b"xy"]), np.array([b"\x00", b"xy"], object)),
    (pa.array([[1, 2], [3, 4]], pa.list_(pa.int16())), np.array([[1, 2], [3, 4]], np.int16)),
    (pa.array([[1, 2], [3, 4]], pa.large_list(pa.float32())), np.array([[1, 2], [3, 4]], np.float32)),
    (pa.array([[1, 2], [3, 4]], pa.list_(pa.uint8(), 2)), np.array([[1, 2], [3, 4]], np.uint8)),
    (pa.array([{"a": 1}, {"a": 2}]), np.array([{"a": 1}, {"a": 2}], object)),
]


@pytest.mark.parametrize(("column", "expected"), EXPECTED, ids=lambda value: str(getattr(value, "type", "")))
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_type_and_what_it_becomes(column: pa.Array, expected: Any, tmp_path: Path, shuffle: bool) -> None:
    table = pa.table({"column": column})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    for source in (table, tmp_path / "t.parquet"):
        array = only(source, shuffle=shuffle)
        if pa.types.is_date64(column.type) and source is not table:
            expected = expected.astype("M8[D]")  # Parquet has one kind of date
        if pa.types.is_time(column.type) and source is not table:
            expected = expected.astype("m8[ms]")
        assert array.dtype == expected.dtype
        if shuffle:
            assert sorted(map(str, array.tolist())) == sorted(map(str, expected.tolist()))
        else:
            np.testing.assert_array_equal(array, expected)


def test_tensors_have_their_type_and_shape() -> None:
    values = np.random.default_rng(0).standard_normal((5, 2, 3)).astype(np.float32)
    np.testing.assert_array_equal(only({"t": values}), values)
    field = tensor_field("t", "float32", (2, 3))
    sliced = pa.table([pa.Array.from_buffers(field.type, 5, [None, pa.py_buffer(values)])], schema=pa.schema([field]))
    np.testing.assert_array_equal(only(sliced.slice(1, 3)), values[1:4])
    ours = pa.FixedShapeTensorArray.from_numpy_ndarray(values)
    np.testing.assert_array_equal(only(pa.table({"t": ours})), values)
    flags = np.random.default_rng(0).random((4, 7)) > 0.5
    np.testing.assert_array_equal(only({"t": flags}), flags)


def test_times_are_numbers_where_frameworks_have_no_times() -> None:
    column = pa.table({"t": pa.array([DAY], pa.timestamp("ms", "UTC"))})
    array = only(column, to="torch")
    assert array.tolist() == [int(DAY.timestamp() * 1000)]
    assert str(array.dtype) == "torch.int64"


def test_text_makes_no_tensors_and_says_what_to_do() -> None:
    table = {"name": ["a", "b"], "x": [1.0, 2.0]}
    with pytest.raises(InvalidInputError, match=r"'name' holds string, of which torch makes no tensors\. Name the col"):
        Loader(table, to="torch")
    assert only(table, columns=["x"], to="torch").tolist() == [1.0, 2.0]
    (batch,) = list(
        Loader(table, to="torch", transform=lambda batch: {"n": np.char.str_len(batch["name"].astype(str))})
    )
    assert batch["n"].tolist() == [1, 1]
    with pytest.raises(InvalidInputError, match="A batch holds Python objects such as 'a'"):
        list(Loader(table, to="torch", transform=lambda batch: batch))


NULLS = {
    "i": pa.array([1, None, 3], pa.int32()),
    "f": pa.array([1.5, None, 3], pa.float32()),
    "b": pa.array([True, None, False]),
    "t": pa.array([DAY, None, DAY], pa.timestamp("us")),
    "s": pa.array(["a", None, "c"]),
    "l": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64())),
    "fl": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.float32(), 2)),
    "in": pa.array([[1, 2], [5, 6], [None, 4]], pa.list_(pa.float64())),
}


@pytest.mark.parametrize("name", NULLS)
def test_a_null_is_an_error_that_names_column_and_row(name: str) -> None:
    row = 2 if name == "in" else 1
    with pytest.raises(
        InvalidInputError, match=rf"rows 0 to 3(.|\n)*Column '{name}', row {row} of the group: it holds a null"
    ):
        only({name: NULLS[name]})


def test_nulls_become_nan_or_a_value() -> None:
    nan = np.nan
    wanted: dict[str, tuple[Any, Any, Any]] = {
        "i": ([1.0, nan, 3.0], -1, [1, -1, 3]),
        "f": ([1.5, nan, 3.0], 7, [1.5, 7, 3]),
        "b": ([1.0, nan, 0.0], False, [True, False, False]),
        "s": (["a", None, "c"], "?", ["a", "?", "c"]),
        "l": ([[1.0, 2.0], [nan, nan], [3.0, 4.0]], 0, [[1, 2], [0, 0], [3, 4]]),
        "fl": ([[1.0, 2.0], [nan, nan], [3.0, 4.0]], 0, [[1, 2], [0, 0], [3, 4]]),
        "in": ([[1.0, 2.0], [5.0, 6.0], [nan, 4.0]], 9, [[1, 2], [5, 6], [9, 4]]),
    }
    for name, (as_nan, value, filled) in wanted.items():
        np.testing.assert_equal(only({name: NULLS[name]}, nulls="nan").tolist(), as_nan)
        np.testing.assert_equal(only({name: NULLS[name]}, nulls=value).tolist(), filled)
        np.testing.assert_equal(only({name: NULLS[name]}, nulls={name: value}).tolist(), filled)
    assert np.isnat(only({"t": NULLS["t"]}, nulls="nan")).tolist() == [False, True, False]
    assert only({"i": NULLS["i"]}, nulls=-1).dtype == np.int32, "a value keeps the type"


def test_nulls_in_tensors() -> None:
    field = tensor_field("t", "float32", (2,))
    array = pa.array([np.array([1, 2], np.float32).tobytes(), None], field.type)
    table = pa.table([array], schema=pa.schema([field]))
    with pytest.raises(InvalidInputError, match="Column 't', row 1"):
        only(table)
    np.testing.assert_equal(only(table, nulls="nan").tolist(), [[1, 2], [np.nan, np.nan]])
    np.testing.assert_equal(only(table, nulls=0).tolist(), [[1, 2], [0, 0]])


def test_a_policy_for_an_unknown_column_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"nulls: 'agee' is not read. Did you mean 'age'"):
        Loader({"age": [1]}, nulls={"agee": 0})


def test_lists_of_different_lengths() -> None:
    table = {"l": pa.array([[1, 2], [3], [], [4, 5, 6]], pa.list_(pa.int32()))}
    words = r"Column 'l', row 1 of the group and 2 more: it has 1 values, and the first row has 2. Give ragged="
    with pytest.raises(InvalidInputError, match=words):
        only(table)
    np.testing.assert_array_equal(only(table, ragged="pad"), [[1, 2, 0], [3, 0, 0], [0, 0, 0], [4, 5, 6]])
    assert only(table, ragged="pad").dtype == np.int32
    rows = only(table, ragged="list")
    assert [row.tolist() for row in rows] == [[1, 2], [3], [], [4, 5, 6]]
    assert [row.tolist() for row in only(table, ragged="list", to="torch")] == [[1, 2], [3], [], [4, 5, 6]]
    assert only(table, ragged="pad", to="torch").tolist() == [[1, 2, 0], [3, 0, 0], [0, 0, 0], [4, 5, 6]]


def test_the_length_of_lists_is_that_of_the_first_row_of_the_source_for_every_rank(tmp_path: Path) -> None:
    lists = [[0.0] * 3] * 10 + [[0.0] * 4] * 10
    pq.write_table(pa.table({"l": lists}), tmp_path / "l.parquet", row_group_size=5)
    with pytest.raises(
        InvalidInputError, match=r"row group 2 cannot be given(.|\n)*it has 4 values, and the first row has 3"
    ):
        list(Loader(tmp_path / "l.parquet", rank=1, world_size=2))


def test_only_numbers_of_one_policy_are_stacked() -> None:
    table = {"a": [1.0], "b": ["x"], "c": [2.0]}
    with pytest.raises(InvalidInputError, match="'m': only numbers can be stacked, and 'b' is not"):
        Loader(table, columns={"m": ["a", "b"]})
    with pytest.raises(InvalidInputError, match="the same policy for nulls"):
        Loader(table, columns={"m": ["a", "c"]}, nulls={"a": 0})
    with pytest.raises(InvalidInputError, match="Arrow has no matrices"):
        Loader(table, columns={"m": ["a", "c"]}, to="arrow")
    with pytest.raises(InvalidInputError, match=r"give a list of names: columns=\['a'\]"):
        Loader(table, columns="a")
    with pytest.raises(InvalidInputError, match="at least one column"):
        Loader(table, columns={})


@given(st.integers(1, 60), st.integers(1, 25), st.integers(1, 70), st.booleans())
def test_stacked_columns_are_the_columns(rows: int, width: int, size: int, shuffle: bool) -> None:
    """Of any number of rows, columns and groups, some given twice and in another order."""
    values = np.arange(rows * width, dtype=np.float32).reshape(rows, width)
    names = [f"c{number}" for number in range(width)]
    order = [*names[::2], *names[1::2], names[0]]
    loader = Loader(
        dict(zip(names, values.T, strict=True)) | {"row": np.arange(rows)},
        size,
        columns={"m": order, "row": "row"},
        shuffle=shuffle,
    )
    picked = [names.index(name) for name in order]
    for batch in loader:
        np.testing.assert_array_equal(batch["m"], values[batch["row"]][:, picked])


@pytest.mark.parametrize(
    "described",
    [
        "no json",
        "{}",
        '{"dtype": "float32", "shape": [3]}',
        '{"dtype": "O", "shape": [1]}',
        '{"dtype": "uint8", "shape": [-1, -8]}',
        '{"dtype": "uint8", "shape": "8"}',
    ],
)
def test_tensors_that_cannot_be_what_a_stranger_says_are_refused(described: str) -> None:
    field = pa.field("t", pa.binary(8), metadata={"cargobike.tensor": described})
    table = pa.table([pa.array([b"01234567"], field.type)], schema=pa.schema([field]))
    with pytest.raises(StoreError, match="The metadata of column 't' describes"):
        Loader(table)


def test_a_value_for_nulls_has_to_fit_the_column() -> None:
    with pytest.raises(InvalidInputError, match="'x': nulls='none' is no int64; give 'error', 'nan' or such a value"):
        Loader({"x": [1, 2]}, nulls="none")
    with pytest.raises(InvalidInputError, match="nulls=300 is no uint8"):
        Loader({"x": np.zeros(2, np.uint8)}, nulls=300)
