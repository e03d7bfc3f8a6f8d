"""Queries of Hopsworks on Spark: the frames, conditions and joins that pandas gets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

import cargobike.compat.hopsworks as hopsworks
from cargobike import project

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)


def test_a_query_gives_on_spark_what_it_gives_in_pandas(spark_applications: SparkApplications, tmp_path: Path) -> None:
    spark = SparkSession(spark_applications.context(), options={"spark.sql.shuffle.partitions": "2"})
    project.use(tmp_path)
    store = hopsworks.login().get_feature_store()
    games = store.get_or_create_feature_group("games", version=1, primary_key=["game"], event_time="day")
    days = pd.to_datetime(["2022-01-15", "2022-02-15", "2022-02-16"])
    rows = pd.DataFrame({"game": [7, 8, 9], "day": days, "team_id": [1, 1, 3], "city": ["Kista", "Lund", "it's"]})
    games.insert(spark.createDataFrame(rows))
    teams = store.get_or_create_feature_group("teams", version=1, primary_key=["team_id"], event_time="at")
    at = pd.to_datetime(["2022-01-01", "2022-02-01"])
    teams.insert({"team_id": [1, 1], "at": at, "budget": [10.0, 12.5]})
    joined = games.select(["game", "city"]).join(teams.select(["budget"]), on=["team_id"])
    queries = [
        joined,
        joined.filter((games.day >= pd.Timestamp("2022-02-15")) & games.city.isin(["Lund", "it's"])),
        games.select(["game"]).join(teams.select(["budget"]), on=["team_id"], join_type="inner", prefix="t_"),
    ]
    sizes = []
    for query in queries:
        there = query.read(dataframe_type="spark")
        assert isinstance(there, DataFrame)
        here = query.read(dataframe_type="pandas").sort_values("game", ignore_index=True)
        found = there.toArrow().to_pandas().sort_values("game", ignore_index=True)
        pd.testing.assert_frame_equal(found, here, check_dtype=False)
        sizes.append(len(here))
    assert sizes == [3, 2, 2]
    assert SparkSession.getActiveSession() is not None
    assert isinstance(games.read(), DataFrame)
