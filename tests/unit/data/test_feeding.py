"""Data on its way to a train function: written by one product, opened on a worker for another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
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
