"""Names of folders as columns, and groups that are kept on this machine."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.data.loading.loader import Loader
from cargobike.data.sources.cached import CachedSource
from cargobike.data.sources.opening import open_again
from cargobike.data.sources.parquet import parquet_at
from cargobike.data.sources.partitions import PartitionedSource
from cargobike.storage import open_storage


def write(folder: Path, *names: str) -> None:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [number, number + 10]}), folder / name, row_group_size=1)


def test_folders_are_columns_of_numbers_or_text(tmp_path: Path) -> None:
    write(tmp_path, "year=2025/place=a%2Fb/p.parquet", "year=2026/place=__HIVE_DEFAULT_PARTITION__/p.parquet")
    source = PartitionedSource(parquet_at([str(tmp_path)]))
    assert source.partitions == ["year", "place"]
    assert source.schema.names == ["year", "place", "x"]
    assert [source.read(group).to_pylist()[0] for group in range(4)] == [
        {"year": 2025, "place": "a/b", "x": 0},
        {"year": 2025, "place": "a/b", "x": 10},
        {"year": 2026, "place": None, "x": 1},
        {"year": 2026, "place": None, "x": 11},
    ]
    assert source.read(0, ["place"]).to_pydict() == {"place": ["a/b"]}
    assert source.read(0, ["x"]).schema.names == ["x"]
    assert [source.row_group(group).position for group in range(4)] == [0, 1, 2, 3]
    assert [len(batch["year"]) for batch in Loader(open_again(source.spec()), 3, nulls="nan")] == [3, 1]


def test_files_below_different_levels_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "year=2025/p.parquet", "p.parquet")
    with pytest.raises(InvalidInputError, match="partitioned alike"):
        PartitionedSource(parquet_at([str(tmp_path)]))


def test_groups_are_kept_up_to_a_limit(tmp_path: Path) -> None:
    write(tmp_path / "data", "p.parquet")
    storage = open_storage(tmp_path / "cache")
    source = parquet_at([str(tmp_path / "data")])
    cached = CachedSource(source, storage, 1000)
    first = [cached.read(group).to_pylist() for group in range(2)]
    (tmp_path / "data" / "p.parquet").unlink()
    kept = [entry.path for entry in storage.list()]
    assert 1 <= len(kept) <= 2
    again = CachedSource(source, storage, 1000)
    assert again.read(0).to_pylist() == first[0]
    assert again.num_rows == 2
    again.close()
