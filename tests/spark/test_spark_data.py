"""Spark DataFrames as data of experiments, and predictions over them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cargobike import experiment, project, trial
from cargobike.core.errors import InvalidInputError, SignatureError
from cargobike.core.records import Resources
from cargobike.data.materialize import materialize
from cargobike.data.shard import Shard
from cargobike.engines.spark.engine import SparkEngine

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def session(spark_applications: SparkApplications) -> SparkSession:
    return SparkSession(spark_applications.context(), options={"spark.sql.shuffle.partitions": "2"})


def add_up(data: Any) -> float:
    total = 0.0
    for batch in data.batches(100, columns=["x"]):
        assert isinstance(batch, pa.RecordBatch)
        assert batch.num_rows <= 100
        total += batch.column("x").to_numpy().sum()
    assert data.total_rows == 1000
    trial.report(rows=float(data.num_rows))
    return total


@pytest.mark.parametrize("share_disk", [True, False])
def test_each_rank_reads_its_share_of_a_dataframe(session: SparkSession, share_disk: bool, tmp_path: Path) -> None:
    frame = session.range(1000, numPartitions=3).selectExpr("id", "cast(id as double) as x")
    run = experiment.allreduce(
        add_up,
        workers=2,
        data=frame,
        engine=SparkEngine(session, share_disk=share_disk),
        resources=Resources(cpus=2, gpus=0),
        quiet=True,
    )
    assert run.values == [sum(range(500)), sum(range(500, 1000))]
    assert len([*Path(project.current().root, "data").iterdir()]) == 1, "it was written once"


def test_data_comes_through_the_driver_where_executors_do_not_see_the_project(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cargobike.data.tables.spark_writing.is_seen_by_executors", lambda *_: False)
    frame = session.range(1000, numPartitions=3).selectExpr("id", "concat('row ', id) as text")
    files = materialize(frame, project.prepare())
    whole = Shard(files, Path(project.current().root), 0, 1, lambda _: None)
    assert whole.read().column("id").to_pylist() == list(range(1000)), "all rows, in order"


def shards(rows: int, world_size: int) -> list[Shard]:
    table = pa.table({"x": np.arange(rows)})
    files = materialize(table, project.prepare())
    root = Path(project.current().root)
    return [Shard(files, root, rank, world_size, lambda _: None) for rank in range(world_size)]


@pytest.mark.parametrize(("rows", "world_size"), [(1, 1), (10, 3), (2, 3), (200_000, 7)])
def test_all_rows_are_seen_once_and_shares_differ_by_one_at_most(rows: int, world_size: int) -> None:
    found = shards(rows, world_size)
    assert [x for shard in found for x in shard.read().column("x").to_pylist()] == list(range(rows))
    assert max(map(len, found)) - min(map(len, found)) <= 1
    for shard in found:
        sizes = [batch.num_rows for batch in shard.batches(1000)]
        assert sum(sizes) == len(shard)
        assert all(size == 1000 for size in sizes[:-1])


def test_a_search_on_this_machine_can_be_given_data_too() -> None:
    def count(data: Any, factor: int) -> float:
        return float(factor * len(data.to_pandas()))

    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    result = experiment.launch(count, {"factor": [1, 2]}, data=frame, workers=1, quiet=True)
    assert [t.value for t in result.trials] == [3.0, 6.0]


def test_data_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(SignatureError, match="'data' is given, but the function has no such parameter"):
        experiment.launch(lambda x: x, {"x": [1]}, data=pd.DataFrame({"x": [1]}))
    with pytest.raises(InvalidInputError, match="data=list was given"):
        experiment.launch(lambda x, data: x, {"x": [1]}, data=[1, 2])
    with pytest.raises(InvalidInputError, match="no rows"):
        experiment.launch(lambda x, data: x, {"x": [1]}, data=pd.DataFrame({"x": []}))
    assert not [*Path(project.current().root).rglob("*.parquet")]


class Doubler:
    def __init__(self) -> None:
        self.factor = 2.0

    def __call__(self, batch: pd.DataFrame) -> dict[str, Any]:
        return {"twice": batch["x"].to_numpy() * self.factor, "even": batch["x"] % 2 == 0}


def test_predictions_keep_number_and_order(session: SparkSession) -> None:
    frame = session.range(1000, numPartitions=4).selectExpr("cast(id as double) as x", "concat('row ', id) as text")
    predicted = experiment.inference(Doubler, frame, batch_size=64)
    assert predicted.columns == ["x", "text", "twice", "even"]
    rows = predicted.collect()
    assert [row.twice for row in rows] == [2.0 * x for x in range(1000)]
    assert [row.text for row in rows] == [f"row {x}" for x in range(1000)]
    assert rows[3].even is False

    def sums(batch: pa.RecordBatch) -> list[float]:
        return [x + 1 for x in batch.column("x").to_pylist()]

    plain = experiment.inference(sums, frame, form="arrow", output="prediction double")
    assert [row.prediction for row in plain.collect()] == [x + 1.0 for x in range(1000)]


ODD = """
    timestamp'1600-01-01 12:00:00.123456' early, timestamp'9999-12-31 01:02:03' late,
    timestamp_ntz'1600-02-03 04:05:06' local, date'1600-01-01' day,
    interval '-3-2' year to month months, interval '5' year years,
    interval '1 02:03:04.5' day to second span, struct(1 as p, 'q' as q) parts, array(1, null) list, map('x', 1) map"""


def test_columns_have_the_same_types_with_and_without_a_shared_disk(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    frame = session.sql(f"select 1 id, {ODD}").union(session.sql("select 2, " + ", ".join(["null"] * 10)))
    tables = []
    for is_seen in (True, False):
        monkeypatch.setattr("cargobike.data.tables.spark_writing.is_seen_by_executors", lambda *_, seen=is_seen: seen)
        files = materialize(frame, project.prepare())
        tables.append(Shard(files, Path(project.current().root), 0, 1, lambda _: None).read())
    session.conf.unset("spark.sql.session.timeZone")
    assert tables[0].schema.equals(tables[1].schema, check_metadata=True)
    assert tables[0].to_pylist() == tables[1].to_pylist()
    types = {field.name: str(field.type) for field in tables[0].schema}
    assert types["early"] == types["late"] == "timestamp[us, tz=Asia/Tokyo]"
    assert (types["local"], types["months"], types["span"]) == ("timestamp[us]", "int32", "duration[us]")
    first, second = tables[0].to_pylist()
    assert (first["early"].year, first["early"].microsecond, first["late"].year) == (1600, 123456, 9999)
    assert (first["months"], first["years"], first["span"].total_seconds()) == (-38, 60, 93784.5)
    assert second == {"id": 2, **dict.fromkeys(list(types)[1:])}


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("select make_interval(1, 2) i", "'i' is interval; make numbers or dates"),
        ("select array(interval '3' year) a", "'a' is array<interval year>"),
        ("select 1 a, 2 a", "'a' is the name of several columns"),
    ],
)
def test_columns_that_cannot_be_written_are_named(session: SparkSession, select: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        materialize(session.sql(select), project.prepare())


def test_predictions_become_what_was_announced_or_can_come(session: SparkSession) -> None:
    frame = session.range(100, numPartitions=2).selectExpr("id as x")
    labels = experiment.inference(lambda batch: np.arange(len(batch)), frame, output="label int")
    assert [row.label for row in labels.collect()] == [*range(50), *range(50)]
    doubles = experiment.inference(lambda batch: np.float32(batch["x"]), frame, output="double")
    assert doubles.collect()[99].prediction == 99.0
    late = experiment.inference(lambda batch: [None if x < 60 else x / 2 for x in batch["x"]], frame)
    assert [row.prediction for row in late.collect()] == [None] * 60 + [x / 2 for x in range(60, 100)]
    few = session.range(10, numPartitions=2).selectExpr("id as x")  # all of them are looked at to find a type
    mixed = experiment.inference(lambda batch: [x if x < 5 else x / 2 for x in batch["x"].tolist()], few)
    assert [row.prediction for row in mixed.collect()] == [*map(float, range(5)), *(x / 2 for x in range(5, 10))]
    holes = experiment.inference(lambda batch: {"n": batch["x"].where(batch["x"] != 77)}, frame, output="n int")
    assert [row.n for row in holes.collect()] == [None if x == 77 else x for x in range(100)]
    found = experiment.inference(lambda batch: {"n": batch["x"].where(batch["x"] != 77)}, frame)
    assert [row.n for row in found.collect()] == [None if x == 77 else x for x in range(100)]


def test_a_prediction_that_does_not_fit_names_its_row(session: SparkSession) -> None:
    frame = session.range(100, numPartitions=2).selectExpr("id as x")
    halves = experiment.inference(lambda batch: batch["x"] / (1 + (batch["x"] > 60)), frame, output="bigint")
    with pytest.raises(Exception, match=r"'prediction' = 30.5 for row 11 of partition 1, .*That row is {'x': 61}"):
        halves.collect()
    with pytest.raises(InvalidInputError, match=r"only None for prediction in the first 4096 rows.*output="):
        experiment.inference(lambda batch: [None] * len(batch), frame)
    with pytest.raises(InvalidInputError, match="output='label integr' was given; it says names and types"):
        experiment.inference(lambda batch: batch["x"], frame, output="label integr")


def test_a_streaming_dataframe_is_predicted_as_it_arrives(session: SparkSession, tmp_path: Path) -> None:
    arriving = tmp_path / "arriving"
    frame = session.range(100, numPartitions=2).selectExpr("id as x")
    frame.write.parquet(str(arriving))
    stream = session.readStream.schema(frame.schema).parquet(str(arriving))
    with pytest.raises(InvalidInputError, match=r"streaming DataFrame.*say what predict returns: output="):
        experiment.inference(lambda batch: batch["x"] * 2, stream)
    predicted = experiment.inference(lambda batch: batch["x"] * 2, stream, output="twice bigint")
    assert predicted.isStreaming
    writing = predicted.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoints"))
    for rows in (100, 150):
        query = writing.trigger(availableNow=True).start(str(tmp_path / "out"))
        assert query.awaitTermination(120)
        out = session.read.parquet(str(tmp_path / "out")).collect()
        assert sorted((row.x, row.twice) for row in out) == [(x, 2 * x) for x in range(rows)]
        session.range(100, 150).selectExpr("id as x").write.mode("append").parquet(str(arriving))


def test_predictions_become_a_table_where_that_is_asked_for(session: SparkSession) -> None:
    frame = session.range(100, numPartitions=2).selectExpr("id as x")
    table = experiment.inference(lambda batch: batch["x"] + 1, frame, output_to="later")
    assert sorted(table.read()["prediction"].to_pylist()) == list(range(1, 101))


def test_predictions_that_do_not_fit_are_refused(session: SparkSession) -> None:
    frame = session.range(10, numPartitions=1).selectExpr("id as x")
    with pytest.raises(InvalidInputError, match="columns that the data has already: x"):
        experiment.inference(lambda batch: {"x": batch["x"]}, frame)
    with pytest.raises(InvalidInputError, match=r"a table or its name, .* a Spark, pandas or polars DataFrame"):
        experiment.inference(lambda batch: batch, [1, 2])
    with pytest.raises(InvalidInputError, match="say it: output="):
        experiment.inference(lambda batch: batch["x"], frame.limit(0))
