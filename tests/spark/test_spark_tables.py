"""Spark DataFrames as tables: written by executors on a disk or a storage that they see, else through the driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from cargobike import data
from cargobike.core.errors import InvalidInputError
from cargobike.data.tables.verifying import verify
from cargobike.store.files.storages import open_storage

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def session(spark_applications: SparkApplications) -> SparkSession:
    return SparkSession(spark_applications.context(), options={"spark.sql.shuffle.partitions": "2"})


def test_executors_write_a_table(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = session.range(1000, numPartitions=3).selectExpr("id", "cast(id as string) as text")
    table = data.write(frame, tmp_path / "table")

    assert [file.path[:14] for file in table.files] == [f"1/part-{number:06d}-" for number in range(3)]
    assert table.read().column("id").to_pylist() == list(range(1000))
    assert (table.manifest.source, verify(table).problems) == ("spark", [])
    assert data.write(frame, tmp_path / "table").fingerprint == table.fingerprint
    assert data.write(frame.limit(0), tmp_path / "table").schema.names == ["id", "text"]
    monkeypatch.setattr("cargobike.data.tables.spark_writing.is_seen_by_executors", lambda *_: False)
    through_driver = data.write(frame, tmp_path / "table")
    assert through_driver.read().equals(table.read())
    assert len(through_driver.files) == 1
    assert data.write(frame.limit(0), tmp_path / "table").num_rows == 0


def test_executors_write_to_a_storage_that_they_reach(session: SparkSession, storage_url: Callable[[str], str]) -> None:
    url = storage_url("hdfs")
    frame = session.range(100, numPartitions=2)
    table = data.write(frame, f"{url}/table")

    assert len(table.files) == 2
    assert table.read().column("id").to_pylist() == list(range(100))
    paths = {entry.path for entry in open_storage(table.url).list(deep=True)}
    assert paths == {"1/manifest.json", *(file.path for file in table.files)}


def test_a_failed_job_leaves_nothing(session: SparkSession, tmp_path: Path) -> None:
    frame = session.range(100, numPartitions=4).selectExpr("if(id = 99, raise_error('broken row'), id) as id")
    with pytest.raises(Exception, match="broken row"):
        data.write(frame, tmp_path / "table")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    with pytest.raises(InvalidInputError, match="cast its columns there instead"):
        data.write(frame, tmp_path / "table", schema=data.write({"id": [1]}, tmp_path / "other").schema)
