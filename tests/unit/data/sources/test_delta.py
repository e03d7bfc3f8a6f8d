from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cargobike import data
from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.data.sources.delta import open_delta
from cargobike.data.sources.opening import open_again, open_source
from cargobike.data.sources.source import Source


def rows_of(source: Source, columns: list[str] | None = None) -> list[dict[str, Any]]:
    tables = [source.read(group, columns) for group in range(len(source.groups))]
    assert [table.num_rows for table in tables] == [group.rows for group in source.groups]
    found = [row for table in tables for row in table.to_pylist()]
    return sorted(found, key=lambda row: row["a"])


def open_all(table: Path) -> None:
    for version in range(4):
        open_delta(table, version=version)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of four versions: written, appended to, given a column, and rows deleted."""
    path = tmp_path / "trips"
    write_deltalake(path, pa.table({"a": [1, 2], "day": ["mon day", "tue"]}), partition_by=["day"])
    write_deltalake(path, pa.table({"a": [3], "day": ["mon day"]}), mode="append")
    write_deltalake(path, pa.table({"a": [4], "day": ["wed"], "x": [0.5]}), mode="append", schema_mode="merge")
    DeltaTable(path).delete("a = 2")
    return path


def test_each_version_is_read_as_it_was(table: Path) -> None:
    assert [row["a"] for row in rows_of(open_delta(table, version=0))] == [1, 2]
    assert rows_of(open_delta(table, version=1))[2] == {"a": 3, "day": "mon day"}
    assert rows_of(open_delta(table, version=2))[2:] == [
        {"a": 3, "day": "mon day", "x": None},
        {"a": 4, "day": "wed", "x": 0.5},
    ]
    newest = open_delta(table)
    assert newest.version == 3
    assert [row["a"] for row in rows_of(newest)] == [1, 3, 4]
    assert newest.schema.equals(pa.schema([("a", pa.int64()), ("day", pa.string()), ("x", pa.float64())]))
    assert rows_of(newest, ["x", "a"])[0] == {"x": None, "a": 1}
    assert rows_of(newest, ["day", "a"])[2] == {"day": "wed", "a": 4}


def test_a_folder_is_seen_to_be_a_table_and_a_spec_keeps_its_version(table: Path) -> None:
    source = open_source(table)
    spec = source.spec()
    write_deltalake(table, pa.table({"a": [5], "day": ["wed"], "x": [1.5]}), mode="append")
    again = open_again(spec)
    assert [row["a"] for row in rows_of(again)] == [1, 3, 4]
    assert again.groups == source.groups
    loader = data.Loader(data.delta(table, version=1), batch_size=10, columns=["a"])
    assert sorted(int(number) for batch in loader for number in batch["a"]) == [1, 2, 3]


def test_what_is_not_there_is_said(table: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="has no version 9; its newest is 3"):
        open_delta(table, version=9)
    with pytest.raises(NotFoundError, match=r"There is no Delta table at .*nowhere\. There is no such folder"):
        open_delta(tmp_path / "nowhere")
    with pytest.raises(InvalidInputError, match="version=-1 was given; versions of a Delta table are 0, 1"):
        open_delta(table, version=-1)
    next(table.rglob("*.parquet")).unlink()
    with pytest.raises(StoreError, match=r"1 of the \d files of .* are gone, such as .*VACUUM"):
        open_all(table)


def test_a_file_that_was_cut_off_is_named(table: Path) -> None:
    file = next(table.rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(StoreError, match=rf"{file.name}.* cannot be read as Parquet"):
        open_all(table)


@pytest.mark.parametrize(
    ("protocol", "settings", "match"),
    [
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
          "writerFeatures": ["deletionVectors"]}, {}, r"deletion vectors(.|\n)*APPLY \(PURGE\)(.|\n)*data\.write"),
        ({"minReaderVersion": 2, "minWriterVersion": 5}, {"delta.columnMapping.mode": "name"},
         r"column mapping(.|\n)*CREATE TABLE"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_read_by_their_files_are_refused(
    tmp_path: Path, protocol: dict[str, Any], settings: dict[str, str], match: str
) -> None:
    path = tmp_path / "table"
    write_deltalake(path, pa.table({"a": [1]}))
    log = path / "_delta_log" / "00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = protocol
        if "metaData" in action and settings:
            action["metaData"]["configuration"] = settings
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][0]["metadata"] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
            action["metaData"]["schemaString"] = json.dumps(schema)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    with pytest.raises(InvalidInputError, match=match):
        open_delta(path)


def test_a_log_that_names_files_elsewhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_deltalake(path, pa.table({"a": [1]}))
    log = path / "_delta_log" / "00000000000000000000.json"
    file = next(path.glob("*.parquet"))
    log.write_text(log.read_text().replace(file.name, f"../{file.name}"))
    with pytest.raises(InvalidInputError, match="names a file outside of it"):
        open_delta(path)
