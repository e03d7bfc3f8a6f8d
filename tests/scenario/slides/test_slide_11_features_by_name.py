"""Slide 11: features by name, whichever groups own them, joined by the key that they share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from cargobike import project
from cargobike.compat.hops import featurestore
from cargobike.errors import InvalidInputError

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

EXPECTED = [(1000.0, 27.5), (2000.0, 24.0), (3000.0, 25.5)]


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cargobike.compat.hsfs.frames.has_spark", lambda: False)  # another test may have a session
    project.use(tmp_path)
    attendances = pd.DataFrame({"team_id": [1, 2, 3], "average_attendance": [3000.0, 2000.0, 1000.0]})
    players = pd.DataFrame({"team_id": [3, 2, 1], "average_player_age": [27.5, 24.0, 25.5]})
    featurestore.create_featuregroup(attendances, "attendances_features", primary_key="team_id")
    featurestore.create_featuregroup(players, "players_features", primary_key="team_id")


@pytest.mark.usefixtures("groups")
def test_the_line_of_the_slide() -> None:
    features_df = featurestore.get_features(["average_attendance", "average_player_age"])
    assert features_df.columns.tolist() == ["average_attendance", "average_player_age"]
    assert sorted(features_df.itertuples(index=False, name=None)) == EXPECTED


@pytest.mark.usefixtures("groups")
def test_a_name_that_two_groups_have_is_refused_with_both() -> None:
    again = pd.DataFrame({"team_id": [1], "average_player_age": [20.0]})
    featurestore.create_featuregroup(again, "young_players", primary_key="team_id")
    with pytest.raises(InvalidInputError, match=r"write 'players_features\.average_player_age' or 'young_players"):
        featurestore.get_features(["average_attendance", "average_player_age"])
    named = featurestore.get_features(["average_attendance", "players_features_1.average_player_age"])
    assert sorted(named.itertuples(index=False, name=None)) == EXPECTED


@pytest.mark.usefixtures("groups")
def test_the_line_of_the_slide_on_spark(spark_applications: SparkApplications) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession(spark_applications.context(), options={"spark.sql.shuffle.partitions": "2"})
    features_df = featurestore.get_features(["average_attendance", "average_player_age"], dataframe_type="spark")
    assert features_df.columns == ["average_attendance", "average_player_age"]
    assert sorted(tuple(row) for row in features_df.collect()) == EXPECTED
    featurestore.create_featuregroup(spark.createDataFrame([(1, "x")], ["team_id", "town"]), "towns")
    assert [tuple(row) for row in featurestore.get_featuregroup("towns", dataframe_type="spark").collect()] == [
        (1, "x")
    ]
    featurestore.create_training_dataset(features_df, "attendance", data_format="parquet")
    path = featurestore.get_training_dataset_path("attendance")
    assert sorted(tuple(row) for row in spark.read.parquet(path).collect()) == EXPECTED
