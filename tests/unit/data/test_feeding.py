"""Data on its way to a train function: written by one product, opened on a worker for another."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cargobike import experiment
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.feeding import Feed
from cargobike.data.materialize import materialize
from cargobike.data.shard import Shard
from cargobike.experiments.trial.payload import DataFiles, Payload

TABLE = pa.table({"x": list(range(10)), "name": [f"row {n}" for n in range(10)]})


def total(scale: int, data: Any) -> float:
    return float(scale * sum(sum(batch.column("x").to_pylist()) for batch in data.batches(3)))


def test_a_train_function_gets_the_rows_that_were_given() -> None:
    result = experiment.launch(total, {"scale": [1, 2]}, data=TABLE, quiet=True)
    assert sorted(trial.value or 0.0 for trial in result.trials) == [45.0, 90.0]


def test_a_feed_names_what_opens_it(tmp_path: Path) -> None:
    feed = materialize(TABLE, ProjectFolder(tmp_path))
    assert feed.opener == "cargobike.data.shard:Shard"
    shares = [Shard(feed, tmp_path, rank, 3, lambda name: None) for rank in range(3)]
    assert [len(share) for share in shares] == [3, 3, 4]
    assert [x for share in shares for x in share.read()["x"].to_pylist()] == list(range(10))


def test_what_cannot_be_fed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="data=list was given"):
        materialize([1, 2], ProjectFolder(tmp_path))


def test_payloads_that_were_recorded_before_still_load() -> None:
    recorded = msgspec.msgpack.encode(
        {"function": b"", "sys_path": [], "launch_dir": "/", "data": ["data/abc", ["a.parquet"], [3]]}
    )
    feed = Payload.decode(recorded).data
    assert feed == Feed("data/abc", ["a.parquet"], [3], "cargobike.data.shard:Shard")
    assert DataFiles("data/abc", ["a.parquet"], [3]) == feed, "the name in pickles"


def _whole(table: pa.Table, project: Path) -> Shard:
    return Shard(materialize(table, ProjectFolder(project)), project, 0, 1, lambda name: None)


def test_columns_come_in_the_order_that_was_asked_for(tmp_path: Path) -> None:
    data = _whole(TABLE, tmp_path)
    assert data.read(["name", "x"]).schema.names == ["name", "x"]
    assert [batch.schema.names for batch in data.batches(10, columns=("name",))] == [["name"]]
    empty = Shard(materialize(TABLE.slice(0, 1), ProjectFolder(tmp_path)), tmp_path, 1, 2, lambda name: None)
    shares = [empty, Shard(empty._files, tmp_path, 0, 2, lambda name: None)]
    assert sorted(share.num_rows for share in shares) == [0, 1]
    assert [share.read(["name", "x"]).schema.names for share in shares] == [["name", "x"]] * 2


def test_parts_of_columns_can_be_asked_for(tmp_path: Path) -> None:
    nested = _whole(pa.table({"s": [{"a": 1, "b": 2}], "t": [3]}), tmp_path)
    assert nested.read(["s.b"]).to_pylist() == [{"s": {"b": 2}}]


@pytest.mark.parametrize("ask", ["batches", "read", "to_pandas"])
def test_columns_that_do_not_exist_are_refused_with_the_nearest_name(tmp_path: Path, ask: str) -> None:
    data = _whole(TABLE, tmp_path)
    with pytest.raises(InvalidInputError, match=r"(?s)it has 'x', 'name'.*'nme' is unknown. Did you mean 'name'\?"):
        getattr(data, ask)(columns=["x", "nme"])
    with pytest.raises(InvalidInputError, match=r"columns='name' was given; give a list of names: columns=\['name'\]"):
        getattr(data, ask)(columns="name")


def test_old_timestamps_of_sparks_own_files_are_read(tmp_path: Path) -> None:
    early = datetime(1600, 1, 1, 12, 0, 0, 123456)
    folder = tmp_path / "data" / "abc"
    folder.mkdir(parents=True)
    times = pa.table({"t": pa.array([datetime(2020, 1, 1)], pa.timestamp("us"))})
    pq.write_table(times, folder / "a.parquet", use_deprecated_int96_timestamps=True)
    data = Shard(Feed("data/abc", ["a.parquet"], [1]), tmp_path, 0, 1, lambda name: None)
    assert data.schema.field("t").type == pa.timestamp("us")
    assert data.read().to_pylist() == [{"t": datetime(2020, 1, 1)}]
    assert _whole(pa.table({"t": pa.array([early], pa.timestamp("us"))}), tmp_path).read().to_pylist() == [{"t": early}]


def test_missing_structs_with_parts_that_are_never_missing_are_written(tmp_path: Path) -> None:
    kind = pa.struct([pa.field("p", pa.int32(), nullable=False)])
    parts = pa.StructArray.from_arrays(
        [pa.array([1, None], pa.int32())], fields=list(kind), mask=pa.array([False, True])
    )
    assert _whole(pa.table({"s": parts}), tmp_path).read().to_pylist() == [{"s": {"p": 1}}, {"s": None}]
