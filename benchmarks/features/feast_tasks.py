"""Feast at the same work, in an environment of its own: `feast_tasks.py join duckdb|dask FOLDER`, `… online KEYS`.

Set up as its documentation shows, with one feature view for each group. `duckdb` is its quickest local offline store,
`dask` the one that it uses by default.
"""

from __future__ import annotations

import datetime
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from feast import Entity, FeatureStore, FeatureView, Field, FileSource, RepoConfig, ValueType
from feast.types import Float32
from turns import answer, percentiles, timed

TTL = datetime.timedelta(days=36500)


def store_of(folder: Path, offline: str) -> FeatureStore:
    return FeatureStore(
        config=RepoConfig(
            project="bench",
            provider="local",
            registry=str(folder / "registry.db"),
            offline_store={"type": offline},
            online_store={"type": "sqlite", "path": str(folder / "online.db")},
            entity_key_serialization_version=3,
        )
    )


def view_of(name: str, path: Path, key: Entity, names: list[str]) -> FeatureView:
    fields = [Field(name=each, dtype=Float32) for each in names]
    source = FileSource(path=str(path), timestamp_field="at")
    return FeatureView(name=name, entities=[key], ttl=TTL, schema=fields, source=source)


def join(offline: str, data: Path, folder: Path) -> None:
    key = Entity(name="key", join_keys=["key"], value_type=ValueType.INT64)
    store = store_of(folder, offline)
    names = {name: [f"{name}_{number}" for number in range(4)] for name in ("first", "second")}
    store.apply([key, *(view_of(name, data / f"{name}.parquet", key, each) for name, each in names.items())])
    wanted = [f"{name}:{each}" for name, columns in names.items() for each in columns]

    def work() -> int:
        labels: Any = pq.read_table(data / "labels.parquet").to_pandas().rename(columns={"at": "event_timestamp"})
        return len(store.get_historical_features(entity_df=labels, features=wanted).to_arrow())

    rows, figures = timed(work)
    answer({**figures, "rows": rows})


def online(keys: int, folder: Path) -> None:
    random = np.random.default_rng(0)
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    values = {f"f{number}": random.random(keys, dtype=np.float32) for number in range(8)}
    times = pa.array([moment] * keys, pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table({"key": random.permutation(keys), "at": times, **values}), folder / "things.parquet")
    key = Entity(name="key", join_keys=["key"], value_type=ValueType.INT64)
    store = store_of(folder, "duckdb")
    store.apply([key, view_of("things", folder / "things.parquet", key, list(values))])
    day = datetime.timedelta(days=1)
    _, figures = timed(lambda: store.materialize(moment - day, moment + day))
    wanted = [f"things:{name}" for name in values]

    def look(rows: list[dict[str, Any]]) -> Any:
        return store.get_online_features(features=wanted, entity_rows=rows).to_dict()

    assert look([{"key": 1}])["f0"][0] is not None
    one = percentiles(look, [[{"key": int(each)}] for each in random.integers(0, keys, 2000)])
    many = percentiles(look, [[{"key": int(each)} for each in random.integers(0, keys, 100)] for _ in range(200)])
    rates = {"rows_per_s": keys / figures["wall"], "rows_per_cpu_s": keys / figures["cpu"]}
    answer({**rates, "one_p50": one[0], "one_p99": one[1], "many_p50": many[0], "many_p99": many[1]})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        if sys.argv[1] == "join":
            join(sys.argv[2], Path(sys.argv[3]), Path(temporary))
        else:
            online(int(sys.argv[2]), Path(temporary))
