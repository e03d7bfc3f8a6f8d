"""Parquet files as a source: which files a path means, what is refused, and what is said."""

from __future__ import annotations

import os
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.data.loading.loader import Loader
from cargobike.data.sources.opening import open_again, open_source
from cargobike.data.sources.parquet import ParquetSource


def write(path: Path, first: int, rows: int, **others: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = np.arange(first, first + rows)
    pq.write_table(pa.table({"id": ids, "x": ids / 2, **others}), path, row_group_size=10)
    return path


def ids(source: object) -> list[int]:
    return [int(row) for batch in Loader(source, columns=["id"]) for row in batch["id"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "t" / "b.parquet", 25, 5)
    write(tmp_path / "t" / "a.parquet", 0, 25)
    write(tmp_path / "t" / "deep" / "c.parquet", 30, 1)
    write(tmp_path / "t" / "_temporary" / "d.parquet", 99, 1)
    write(tmp_path / "t" / ".hidden.parquet", 99, 1)
    (tmp_path / "t" / "_SUCCESS").touch()
    (tmp_path / "t" / "notes.txt").write_text("no rows")
    return tmp_path / "t"


def test_a_folder_a_glob_a_list_and_an_address(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ids(folder) == list(range(31))
    assert ids(str(folder / "*.parquet")) == list(range(30))
    assert ids(str(folder / "**" / "?.parquet")) == list(range(31)), "hidden ones are left out"
    assert ids([folder / "b.parquet", folder / "a.parquet"]) == [*range(25, 30), *range(25)], "as they were given"
    assert ids(f"file://{folder}/a.parquet") == list(range(25))
    monkeypatch.chdir(folder)
    assert ids("a.parquet") == list(range(25))


def test_an_address_of_other_storage(folder: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/loader-test/t", recursive=True)
    try:
        assert ids("memory://loader-test/t/a.parquet") == list(range(25))
        assert ids("memory://loader-test/t") == list(range(31))
        assert ids("memory://loader-test/t/*b.parquet") == list(range(25, 30))
        with pytest.raises(NotFoundError, match="There are no files at memory://loader-test/nothing"):
            open_source("memory://loader-test/nothing")
    finally:
        memory.rm("/loader-test", recursive=True)


def test_a_source_is_opened_again_from_its_description(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    spec = open_source("*.parquet").spec()
    monkeypatch.chdir("/")
    again = open_again(spec)
    assert again.num_rows == 30
    assert again.fingerprint == spec.fingerprint
    write(folder / "b.parquet", 0, 7)
    with pytest.raises(InvalidInputError, match="has changed since it was opened first"):
        open_again(spec)


def test_groups_have_their_place_rows_and_size(folder: Path) -> None:
    source = open_source(folder)
    assert [group.rows for group in source.groups] == [10, 10, 5, 5, 1]
    assert source.groups[1].place == f"{folder}/a.parquet, row group 1"
    assert source.groups[1].size_bytes > 100
    assert source.read(2, ["x"]).to_pydict() == {"x": [10.0, 10.5, 11.0, 11.5, 12.0]}
    assert source.read(2, ["x", "id"]).schema.names == ["x", "id"], "in the order in which they were asked for"
    source.close()
    source.close()
    assert source.read(3).num_rows == 5, "a closed source opens its files again"


def test_files_without_rows_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", 0, 0)
    write(tmp_path / "b.parquet", 0, 3)
    assert ids(tmp_path) == [0, 1, 2]


def test_a_path_that_does_not_exist_is_told_the_nearest(folder: Path) -> None:
    with pytest.raises(NotFoundError, match=r"There is no file .*a\.parket.* Did you mean 'a\.parquet'\?"):
        open_source(folder / "a.parket")
    with pytest.raises(NotFoundError, match=r"There is no file .*z\*\.parquet"):
        open_source(str(folder / "z*.parquet"))
    (folder / "empty").mkdir()
    with pytest.raises(NotFoundError, match=r"empty has no files that end in \*\.parquet"):
        open_source(folder / "empty")


def test_files_with_different_columns_are_named_with_their_columns(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", 0, 3, label=[1, 2, 3], extra=[1, 2, 3])
    write(tmp_path / "b.parquet", 0, 3, labell=[1, 2, 3], extra=["a", "b", "c"])
    with pytest.raises(InvalidInputError) as caught:
        open_source(tmp_path)
    words = str(caught.value)
    assert f"{tmp_path}/a.parquet and {tmp_path}/b.parquet have different columns" in words
    assert f"'label' is missing in {tmp_path}/b.parquet. Did you mean 'labell'?" in words
    assert f"'labell' is only in {tmp_path}/b.parquet." in words
    assert f"'extra' is int64 in {tmp_path}/a.parquet and string in {tmp_path}/b.parquet." in words


def test_columns_may_stand_in_another_order(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [0, 1], "x": [0.0, 1.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [2.0], "id": [2]}), tmp_path / "b.parquet")
    (batch,) = list(Loader(tmp_path))
    assert (batch["id"].tolist(), batch["x"].tolist()) == ([0, 1, 2], [0.0, 1.0, 2.0])


@pytest.mark.parametrize("kept", [0, 3, 100, -1, -50])
def test_a_file_that_was_cut_off_is_named(folder: Path, kept: int) -> None:
    whole = (folder / "a.parquet").read_bytes()
    (folder / "a.parquet").write_bytes(whole[:kept])
    with pytest.raises(StoreError, match=r"a\.parquet \([\d,]+ bytes\) cannot be read as Parquet: .*Was it cut off"):
        open_source(folder)


def test_damage_in_the_middle_is_found_where_it_is(folder: Path) -> None:
    source = open_source(folder / "a.parquet")
    damaged = bytearray((folder / "a.parquet").read_bytes())
    offset = pq.read_metadata(folder / "a.parquet").row_group(1).column(0).data_page_offset
    stat = (folder / "a.parquet").stat()
    damaged[offset : offset + 20] = b"\xff" * 20
    (folder / "a.parquet").write_bytes(damaged)
    os.utime(folder / "a.parquet", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert source.read(0).num_rows == 10
    with pytest.raises(StoreError, match=r"a\.parquet, row group 1"):
        source.read(1)


def test_a_file_that_changes_while_it_is_read_is_refused(folder: Path) -> None:
    loader = Loader(folder)
    write(folder / "a.parquet", 500, 25)
    with pytest.raises(StoreError, match=r"a\.parquet has changed since it was opened"):
        list(loader)


def test_a_file_that_disappears_is_named(folder: Path) -> None:
    loader = Loader(folder)
    (folder / "b.parquet").unlink()
    with pytest.raises(StoreError, match=r"b\.parquet"):
        list(loader)


def test_many_footers_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        write(tmp_path / f"{number:03}.parquet", number * 3, 3)
    read: list[object] = []
    real = pq.read_metadata

    def counted(file: object) -> object:
        read.append(file)
        return real(file)

    monkeypatch.setattr(pq, "read_metadata", counted)
    source = open_source(tmp_path)
    assert isinstance(source, ParquetSource)
    assert ids(source) == list(range(120))
    assert len(read) == 40


def test_something_that_has_no_rows_is_told_what_is_understood() -> None:
    with pytest.raises(InvalidInputError, match=r"Rows cannot be read from builtins\.int; give .*dict of NumPy arrays"):
        open_source(3)
