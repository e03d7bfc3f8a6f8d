"""Any table of the allowed types comes back as it was, in whatever pieces it is written."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cargobike import data
from cargobike.data.tables.files import grouping
from cargobike.data.tables.files.digests import digest_of
from cargobike.data.tables.verifying import verify

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a disk makes each of the many small writes wait
_SIMPLE: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text(max_size=8)),
    (pa.large_string(), st.text(max_size=8)),
    (pa.binary(), st.binary(max_size=8)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.decimal128(12, 3), st.decimals(-10_000, 10_000, places=3)),
    (pa.timestamp("us"), st.datetimes()),
    (pa.timestamp("ms", "UTC"), st.integers(-(10**12), 10**12)),
    (pa.date32(), st.dates()),
    (pa.duration("us"), st.integers(-(10**12), 10**12)),
    (pa.null(), st.none()),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "b"])),
]


def _types() -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    simple = st.sampled_from(_SIMPLE[:-1])

    def nested(inner: Any) -> Any:
        lists = inner.map(lambda one: (pa.list_(one[0]), st.lists(st.none() | one[1], max_size=3)))
        structs = inner.map(lambda one: (pa.struct([("p", one[0])]), st.fixed_dictionaries({"p": st.none() | one[1]})))
        maps = inner.map(
            lambda one: (
                pa.map_(pa.string(), one[0]),
                st.dictionaries(st.text(max_size=3), st.none() | one[1], max_size=3).map(lambda made: [*made.items()]),
            )
        )
        return lists | structs | maps

    return st.sampled_from(_SIMPLE) | st.recursive(simple, nested, max_leaves=3)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 12))
    names = draw(
        st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), min_size=1, max_size=4, unique=True)
    )
    columns = []
    for _ in names:
        kind, values = draw(_types())
        columns.append(pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind))
    return pa.table(columns, names=names)


@settings(max_examples=80, deadline=None, suppress_health_check=[*HealthCheck])
@given(table=tables(), cut=st.integers(1, 5), size=st.sampled_from([1, 40, 6_000_000]))
def test_any_table_comes_back_as_it_was(table: pa.Table, cut: int, size: int) -> None:
    usual, grouping.BYTES_PER_GROUP = grouping.BYTES_PER_GROUP, size
    try:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            whole = data.write(table, Path(folder, "whole"))
            pieces = [table.slice(start, cut) for start in range(0, table.num_rows, cut)] or [table]
            cut_up = data.write(iter(pieces), Path(folder, "pieces"))

            assert repr(whole.read().to_pylist()) == repr(table.to_pylist()), (
                "as texts, since NaN is not equal to itself"
            )
            assert whole.num_rows == table.num_rows
            assert whole.fingerprint == cut_up.fingerprint
            assert verify(whole).problems == []
            assert data.write(whole, Path(folder, "again")).fingerprint == whole.fingerprint
    finally:
        grouping.BYTES_PER_GROUP = usual


@settings(max_examples=40, deadline=None)
@given(
    dtype=st.sampled_from(["uint8", "int16", "int64", "float16", "float32", "float64", "bool", ">f4"]),
    shape=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    rows=st.integers(1, 5),
    seed=st.integers(0, 100),
)
def test_any_tensor_comes_back_as_it_was(dtype: str, shape: list[int], rows: int, seed: int) -> None:
    block = np.random.default_rng(seed).integers(0, 100, (rows, *shape)).astype(dtype)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        table = data.write({"t": block}, Path(folder, "t"))
        batch = next(iter(data.Loader(table, batch_size=rows)))["t"]
        one_by_one = data.write(({"t": row, "n": 1} for row in block), Path(folder, "rows"))

        np.testing.assert_array_equal(batch, block)
        assert batch.shape == block.shape
        assert digest_of(one_by_one.read(["t"])) == digest_of(table.read())
