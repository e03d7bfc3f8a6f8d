"""A rank's share of the rows: which rows it is, in which batches they come, and which files it needs."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cargobike.core.errors import InvalidInputError, MissingLibraryError
from cargobike.core.registering.feeding import Feed
from cargobike.data.shard import Shard
from cargobike.experiments.trial.program import load_opener

ROWS = [7, 1, 5]


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    """Thirteen rows in three files, in groups of two rows: borders of files, of groups and of ranks differ."""
    folder = tmp_path / "data" / "abc"
    folder.mkdir(parents=True)
    first = 0
    for number, rows in enumerate(ROWS):
        numbers = list(range(first, first + rows))
        table = pa.table({"x": numbers, "name": [f"row {n}" for n in numbers]})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=2)
        first += rows
    return Feed("data/abc", ["0.parquet", "1.parquet", "2.parquet"], ROWS)


class Share(Shard):
    """A share that remembers the files that it asked for."""

    def __init__(self, feed: Feed, root: Path, rank: int, world_size: int) -> None:
        self.brought: list[str] = []
        super().__init__(feed, root, rank, world_size, self.brought.append)


def numbers_of(batch: pa.RecordBatch | pa.Table) -> list[int]:
    return [int(x) for x in batch.column("x").to_pylist()]


@pytest.mark.parametrize("world_size", [1, 2, 3, 5, 13, 20])
def test_ranks_see_every_row_once_in_order_and_differ_by_one_row(feed: Feed, tmp_path: Path, world_size: int) -> None:
    shares = [Share(feed, tmp_path, rank, world_size) for rank in range(world_size)]
    assert [x for share in shares for x in numbers_of(share.read())] == list(range(13))
    assert {share.total_rows for share in shares} == {13}
    assert [(share.rank, share.world_size) for share in shares] == [(rank, world_size) for rank in range(world_size)]
    sizes = [share.num_rows for share in shares]
    assert sizes == [len(share) for share in shares] == [len(numbers_of(share.read())) for share in shares]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 12, 13, 14, 1024])
def test_batches_have_the_size_asked_for_across_files_and_groups(feed: Feed, tmp_path: Path, size: int) -> None:
    share = Share(feed, tmp_path, 0, 1)
    for _ in range(2):  # the next epoch begins anew
        batches = [numbers_of(batch) for batch in share.batches(size)]
        assert batches == [list(range(13))[start : start + size] for start in range(0, 13, size)]


def test_batches_of_a_rank_hold_its_rows_only(feed: Feed, tmp_path: Path) -> None:
    batches = [numbers_of(batch) for batch in Share(feed, tmp_path, 1, 3).batches(3)]
    assert batches == [[4, 5, 6], [7]]
    assert [numbers_of(batch) for batch in Share(feed, tmp_path, 0, 14).batches(3)] == []


def test_a_batch_has_1024_rows_unless_told_otherwise(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(pa.table({"x": list(range(1030))}), folder / "a.parquet")
    share = Share(Feed("data", ["a.parquet"], [1030]), tmp_path, 0, 1)
    assert [batch.num_rows for batch in share.batches()] == [1024, 6]


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_without_rows_is_refused_before_the_first_is_asked_for(feed: Feed, tmp_path: Path, size: int) -> None:
    with pytest.raises(InvalidInputError, match=f"size={size} was given; a batch has at least one row"):
        Share(feed, tmp_path, 0, 1).batches(size)


def test_a_rank_brings_only_the_files_that_hold_its_rows(feed: Feed, tmp_path: Path) -> None:
    def brought(rank: int, world_size: int) -> list[str]:
        share = Share(feed, tmp_path, rank, world_size)
        share.read()
        return share.brought

    assert brought(0, 1) == ["data/abc/0.parquet", "data/abc/1.parquet", "data/abc/2.parquet"]
    assert brought(0, 13) == brought(6, 13) == ["data/abc/0.parquet"]
    assert brought(7, 13) == ["data/abc/1.parquet"]
    assert brought(8, 13) == ["data/abc/2.parquet"]


def test_a_rank_reads_only_the_groups_that_hold_its_rows(
    feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[int] = []
    read = pq.ParquetFile.read_row_group

    def watched(file: pq.ParquetFile, group: int, **options: object) -> pa.Table:
        groups.append(group)
        return read(file, group, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", watched)
    assert numbers_of(Share(feed, tmp_path, 1, 6).read()) == [2, 3]
    assert groups == [1]


def test_columns_are_chosen_in_batches_tables_and_empty_shares(feed: Feed, tmp_path: Path) -> None:
    share, empty = Share(feed, tmp_path, 0, 1), Share(feed, tmp_path, 0, 14)
    assert share.schema.names == ["x", "name"]
    assert empty.num_rows == 0
    for table in (share.read(["name", "x"]), empty.read(["name", "x"])):
        assert table.schema.names == ["name", "x"]
    assert share.read(["name"]).num_rows == 13
    assert empty.read().num_rows == 0
    assert empty.read().schema.names == ["x", "name"]
    assert {tuple(batch.schema.names) for batch in share.batches(4, columns=["name", "x"])} == {("name", "x")}
    assert share.to_pandas(["x"])["x"].tolist() == list(range(13))


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "cargobike.data.shard")
    with pytest.raises(MissingLibraryError, match=r'pip install "cargobike\[data\]"') as caught:
        load_opener(Feed("data/abc", ["0.parquet"], [1]))
    assert caught.value.name == "pyarrow"
