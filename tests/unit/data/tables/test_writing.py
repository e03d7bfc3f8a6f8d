"""Writing tables: what goes in comes out, versions, refusals that name row and column."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cargobike import data
from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.data.tables.files.grouping import BYTES_PER_GROUP
from cargobike.data.tensors import Tensor, tensor_of
from support.scripts import run_script

FRAME = pd.DataFrame({"x": [1.5, 2.5, None], "name": ["a", None, "c"], "at": pd.to_datetime(["2026-01-01"] * 3)})


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "source",
    [
        FRAME,
        pl.from_pandas(FRAME),
        pa.Table.from_pandas(FRAME, preserve_index=False),
        pa.Table.from_pandas(FRAME, preserve_index=False).to_reader(max_chunksize=2),
    ],
    ids=["pandas", "polars", "arrow", "reader"],
)
def test_a_frame_comes_back_as_it_was(source: Any) -> None:
    table = data.write(source, "frame")

    assert table.read().to_pydict()["name"] == ["a", None, "c"]
    assert table.to_pandas()["x"].tolist()[:2] == [1.5, 2.5]
    assert (table.name, table.version, table.num_rows, len(table)) == ("frame", 1, 3, 3)
    assert [file.rows for file in table.files] == [3]


def test_equal_rows_have_equal_fingerprints_however_they_arrive() -> None:
    numbers = np.arange(300_000, dtype="int64")
    table = pa.table({"n": numbers, "text": [f"row {n}" for n in numbers]})
    whole = data.write(table, "one")
    pieces = data.write((table.slice(start, 777) for start in range(0, 300_000, 777)), "two")
    rows = data.write((row for row in table.slice(0, 5000).to_pylist()), "three")

    assert whole.fingerprint == pieces.fingerprint != rows.fingerprint
    assert [group.rows for file in whole.files for group in file.groups] == [
        group.rows for file in pieces.files for group in file.groups
    ]
    assert rows.fingerprint == data.write(table.slice(0, 5000), "four").fingerprint
    changed = table.set_column(0, "n", pa.array(np.where(numbers == 299_999, 0, numbers)))
    assert data.write(changed, "one").fingerprint != whole.fingerprint


def test_row_groups_have_about_the_same_number_of_bytes(tmp_path: Path) -> None:
    lengths = np.random.default_rng(7).integers(1, 100_000, 400)
    table = data.write(({"blob": b"x" * int(length)} for length in lengths), tmp_path / "blobs")

    sizes = [group.size_bytes for file in table.files for group in file.groups]
    assert sum(sizes) == sum(lengths) + 4 * len(lengths)
    assert all(BYTES_PER_GROUP - 100_004 < size <= BYTES_PER_GROUP for size in sizes[:-1])


def test_rows_as_dicts_of_every_type() -> None:
    rows = [
        {
            "count": number,
            "when": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
            "day": dt.date(2026, 1, number + 1),
            "price": Decimal("1.25"),
            "words": ["a"] * number,
            "nested": {"x": number, "y": None},
            "raw": bytes([number]),
            "nothing": None,
            "is_even": number % 2 == 0,
            "image": np.full((2, 3), number, dtype=np.float32),
        }
        for number in range(3)
    ]
    table = data.write(iter(rows), "rows")

    back = table.read().to_pylist()
    assert [{**row, "image": None} for row in back] == [{**row, "image": None} for row in rows]
    assert tensor_of(table.schema.field("image")) == Tensor("float32", (2, 3))
    assert np.frombuffer(back[2]["image"], "<f4").tolist() == [2.0] * 6


def test_a_column_grows_wider_as_rows_arrive() -> None:
    def rows() -> Iterator[dict[str, Any]]:
        for number in range(10_000):
            row: dict[str, Any] = {"n": number if number < 9000 else number + 0.5, "late": None}
            if number >= 5000:
                row |= {"late": "here", "more": number}
            yield row

    table = data.write(rows(), "growing")

    assert {field.name: str(field.type) for field in table.schema} == {"n": "double", "late": "string", "more": "int64"}
    back = table.read()
    assert back.column("n").to_pylist() == [n if n < 9000 else n + 0.5 for n in range(10_000)]
    assert back.column("late").null_count == 5000
    assert files_below(Path(table.url)) == ["1/manifest.json", *(file.path for file in table.files)]
    assert table.fingerprint == data.write(back, "grown").fingerprint


def test_arrays_become_tensors_or_numbers() -> None:
    images = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
    columns = data.write({"image": images, "label": np.arange(4), "name": list("abcd")}, "columns")
    alone = data.write(images, "alone")
    one_by_one = data.write(iter(images), "alone")
    batches = data.write(({"image": images, "label": np.arange(4)} for _ in range(2)), "batches", each="batch")
    frame = data.write(pd.DataFrame({"n": range(4), "image": list(images)}), "frame")

    assert columns.read().column("image").to_pylist() == [image.tobytes() for image in images]
    assert alone.schema.names == ["value"]
    assert alone.fingerprint == one_by_one.fingerprint
    assert batches.num_rows == 8
    for table in (columns, batches, frame):
        assert tensor_of(table.schema.field("image")) == Tensor("uint8", (2, 3))
    assert frame.read().column("image").to_pylist() == columns.read().column("image").to_pylist()


def test_lists_of_different_lengths_stay_lists() -> None:
    table = data.write([{"v": np.arange(n), "n": n} for n in range(3)], "ragged")

    assert table.read().column("v").to_pylist() == [[], [0], [0, 1]]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"a": 1}, {"a": "x"}], "Row 1 has 'x' in column 'a'"),
        (({"a": n if n < 9000 else "x"} for n in range(9001)), "Row 9000 has 'x' in column 'a'"),
        (({"a": n if n < 4096 else "x"} for n in range(9001)), "Column 'a' is string from row 4096 on, and int64"),
        (
            [{"a": np.zeros((2, 2)), "b": 1}, {"a": np.zeros((2, 3)), "b": 1}],
            r"Row 1 has float64\(2, 3\) in column 'a'",
        ),
        ([{"a": np.zeros(2), "b": np.zeros(2)}], "Item 0 is a dict of arrays .* each='row'"),
        ([3], "Row 0 is int"),
        (3, "int was given"),
        ([], "There are no rows.*schema="),
        ({"a": [1, 2], "b": [1]}, "'a' has 2, 'b' has 1"),
        (np.array([[1j]]), "tensors of complex128"),
        (pa.table({"a": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}), "'a' is month_day_nano_interval"),
        ([pa.table({"a": [1]}), pa.table({"a": [1], "b": [2]})], None),
    ],
)
def test_refusals_name_row_and_column_and_leave_nothing(rows: Any, words: str | None, tmp_path: Path) -> None:
    if words is None:
        assert data.write(rows, tmp_path / "table").read().column("b").to_pylist() == [None, 2]
        return
    with pytest.raises(InvalidInputError, match=words):
        data.write(rows, tmp_path / "table")
    assert files_below(tmp_path) == []


def test_a_schema_says_the_types() -> None:
    schema = pa.schema([("n", pa.int8()), ("v", pa.list_(pa.float32())), ("extra", pa.string())])
    rows = [{"n": 1, "v": np.zeros(2, np.float32), "other": "x"}, {"n": 2, "v": np.zeros(3, np.float32), "other": "y"}]
    table = data.write(rows, "typed", schema=schema)

    assert {field.name: str(field.type) for field in table.schema} == {
        "n": "int8",
        "v": "list<item: float>",
        "other": "string",
        "extra": "string",
    }
    with pytest.raises(InvalidInputError, match="Row 1 has 300 in column 'n'"):
        data.write([{"n": 1}, {"n": 300}], "typed", schema=schema)
    assert data.write([], "typed", schema=schema).num_rows == 0


def test_no_rows_make_an_empty_table() -> None:
    table = data.write(FRAME.iloc[:0], "empty")

    assert (table.num_rows, table.files) == (0, [])
    assert table.read().schema.names == ["x", "name", "at"]
    assert data.open("empty").head().num_rows == 0


def test_versions_are_numbered_and_stay() -> None:
    for number in range(1, 6):
        assert data.write({"n": [number]}, "counted").version == number

    assert data.open("counted").read().column("n").to_pylist() == [5]
    assert data.open("counted:2").read().column("n").to_pylist() == [2]
    assert data.open("counted", version=3).version == 3
    with pytest.raises(NotFoundError, match="no version 9; it has 1 to 5"):
        data.open("counted:9")
    with pytest.raises(InvalidInputError, match="numbered by themselves: write to 'counted'"):
        data.write({"n": [1]}, "counted:7")


@pytest.mark.parametrize("name", ["", "a b", "-x", "x" * 101, "ü", "0123456789ab"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(InvalidInputError):
        data.write({"n": [1]}, name)


def test_a_table_that_is_not_there() -> None:
    with pytest.raises(NotFoundError, match="There is no table"):
        data.open("nowhere")


def test_an_iterator_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def rows() -> Iterator[dict[str, int]]:
        yield from ({"n": number} for number in range(10_000))
        raise OSError("the sensor was unplugged")

    with pytest.raises(OSError, match="unplugged"):
        data.write(rows(), tmp_path / "table")
    assert files_below(tmp_path) == []


def test_progress_is_told() -> None:
    seen: list[data.Progress] = []
    data.write({"n": np.arange(2_000_000)}, "long", progress=seen.append)

    assert seen[-1] == data.Progress(2_000_000, 16_000_000, 1, 2_000_000)
    assert [each.rows for each in seen] == sorted(each.rows for each in seen)
    assert len(seen) > 3


def test_a_disk_that_is_full_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cargobike.data.tables.files.part_files.os.fsync", _no_room)

    with pytest.raises(StoreError, match=r"There is no room for the table at .*table: No space"):
        data.write({"n": [1]}, tmp_path / "table")
    monkeypatch.undo()
    assert files_below(tmp_path) == []


def _no_room(fd: int) -> None:
    if os.readlink(f"/proc/self/fd/{fd}").endswith(".parquet"):
        raise OSError(28, "No space left on device")


def test_files_of_other_formats_and_tables_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,name\n1,a\n2,b\n")
    (tmp_path / "b.csv").write_text("x,name\n3,c\n")
    (tmp_path / "a.jsonl").write_text('{"x": 1, "v": [1, 2]}\n{"x": 2, "v": []}\n')

    table = data.write(f"{tmp_path}/*.csv", "csv")
    assert table.read().to_pydict() == {"x": [1, 2, 3], "name": ["a", "b", "c"]}
    assert table.manifest.source == f"{tmp_path}/*.csv"
    assert data.write([tmp_path / "a.csv", tmp_path / "b.csv"], "csv").fingerprint == table.fingerprint
    assert data.write(tmp_path / "a.jsonl", "lines").read().column("v").to_pylist() == [[1, 2], []]
    for again in (table, "csv:1", table.url):
        assert data.write(again, tmp_path / "copy").fingerprint == table.fingerprint
    with pytest.raises(NotFoundError, match=r"There is no file and no table 'cvs' here\. Did you mean 'csv'"):
        data.write("cvs", "copy")


def test_memory_holds_a_piece_of_a_long_stream(tmp_path: Path) -> None:
    script = """
import resource
import numpy as np
from cargobike import data

def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

data.write({"x": np.zeros((1000, 28), np.float32)}, "./first")
before = peak_mb()
blocks = ({"x": np.random.default_rng(n).random((50_000, 28), np.float32)} for n in range(60))
table = data.write(blocks, "./table", each="batch")
print([table.num_rows, table.size_bytes / 1e6, peak_mb() - before])
"""
    rows, size_mb, grown_mb = run_script(tmp_path, script)
    assert rows == 3_000_000
    assert size_mb > 300
    assert grown_mb < 120
