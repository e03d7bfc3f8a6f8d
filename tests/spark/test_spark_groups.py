"""Feature groups and Spark: DataFrames are inserted, and what was written is read by Spark itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from cargobike import features

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def session(spark_applications: SparkApplications) -> Iterator[SparkSession]:
    """A session in another zone; all sessions of an application share their settings, so it is taken back."""
    session = SparkSession(spark_applications.context(), options={"spark.sql.shuffle.partitions": "2"})
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    yield session
    session.conf.unset("spark.sql.session.timeZone")


def test_a_spark_frame_is_inserted_and_read_back(session: SparkSession) -> None:
    frame = session.sql(
        "SELECT id AS team_id, timestamp_seconds(1777593600 + id) AS at, id / 2 AS budget, cast(id AS string) AS city "
        "FROM range(1000)"
    )
    group = features.create_group("teams", key="team_id", event_time="at")
    assert group.insert(frame).inserted == 1000
    group.insert(frame.where("team_id < 10").selectExpr("team_id", "at", "-1.0D AS budget", "city"))
    group.delete([999])
    files = group.dataset().files
    theirs = {tuple(row) for row in session.read.parquet(*files).select("team_id", "budget").collect()}
    ours = group.read(columns=["team_id", "budget", "at"]).to_pylist()
    assert theirs == {(row["team_id"], row["budget"]) for row in ours}
    assert len(ours) == 999
    assert min(ours, key=lambda row: row["team_id"])["at"].timestamp() == 1777593600
    assert sorted(row["budget"] for row in ours)[:11] == [-1.0] * 10 + [5.0]
