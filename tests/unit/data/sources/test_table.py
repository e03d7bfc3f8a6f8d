"""A table as a source: groups, columns, and files that are not as they were written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cargobike import data
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.registering.lazy import load
from cargobike.data.sources.table import TableSource


@pytest.fixture
def table() -> data.Table:
    return data.write({"n": np.arange(2_000_000), "half": np.arange(2_000_000) / 2}, "numbers")


def test_groups_are_read_one_by_one(table: data.Table) -> None:
    source = TableSource(table)

    assert source.num_rows == 2_000_000
    assert len(source.groups) == 8
    second = source.read(1, ["half"])
    assert second.column("half")[0].as_py() == source.groups[0].rows / 2
    assert second.schema.names == ["half"]
    assert source.groups[1].place.endswith(", row group 1")


def test_a_spec_opens_the_same_source(table: data.Table) -> None:
    spec = TableSource(table).spec()
    again = load(spec.opener)(spec.options)

    assert again.fingerprint == spec.fingerprint == table.fingerprint
    assert again.groups == TableSource(table).groups


def test_an_unknown_column_gets_the_nearest_name(table: data.Table) -> None:
    with pytest.raises(InvalidInputError, match=r"'haf' is unknown\. Did you mean 'half'"):
        TableSource(table).read(0, ["haf"])


def test_files_that_changed_are_refused_by_name(table: data.Table) -> None:
    (file,) = table.files
    path = Path(table.url) / file.path
    whole = path.read_bytes()

    path.write_bytes(whole[:-100])
    with pytest.raises(StoreError, match=rf"{file.path} has changed since the table numbers:1 was written"):
        TableSource(table).read(0)
    path.write_bytes(whole[:-100] + bytes(100))
    with pytest.raises(StoreError, match=rf"{file.path} is no Parquet file any more"):
        TableSource(table).read(0)
    path.unlink()
    with pytest.raises(StoreError, match=rf"{file.path} is gone"):
        TableSource(table).read(0)


def test_a_file_of_another_table_is_refused(tmp_path: Path) -> None:
    one = data.write(pa.table({"n": [1, 2, 3]}), tmp_path / "one")
    other = data.write(pa.table({"n": [1, 2]}), tmp_path / "two")
    place = Path(one.url) / one.files[0].path
    content = (Path(other.url) / other.files[0].path).read_bytes()
    place.write_bytes(content)

    with pytest.raises(StoreError, match="has changed since"):
        one.read()
