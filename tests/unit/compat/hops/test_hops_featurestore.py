"""The old feature store by its names: groups, features by name, training datasets as files."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cargobike import data, features, project
from cargobike.compat.hops import featurestore
from cargobike.compat.hops.translating.gone import GoneError
from cargobike.errors import InvalidInputError, NotFoundError

TEAMS = pd.DataFrame({"team_id": [1, 2, 3], "Team_Budget": [10.5, 20.0, 7.25], "team_position": [2, 1, 3]})
SEASONS = pd.DataFrame({"team_id": [3, 1, 2], "average_attendance": [1000, 3000, 2000]})


@pytest.fixture(autouse=True)
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cargobike.compat.hsfs.frames.has_spark", lambda: False)  # another test may have a session
    project.use(tmp_path / "Football")
    featurestore.create_featuregroup(TEAMS, "teams_features", description="Clubs", primary_key="team_id")
    featurestore.create_featuregroup(SEASONS, "season_features")


def test_features_are_found_by_name_and_joined(tmp_path: Path) -> None:
    found = featurestore.get_features(["average_attendance", "team_budget"])
    assert found.to_dict("list") == {"average_attendance": [1000, 3000, 2000], "team_budget": [7.25, 10.5, 20.0]}
    named = ["teams_features_1.team_budget", "season_features_1.average_attendance"]
    versions = {"teams_features": 1, "season_features": 1}
    for said in (
        {"join_key": "team_id"},
        {"featuregroups_version_dict": versions},
        {"featurestore": "football_featurestore"},
    ):
        frame = featurestore.get_features(named, **said)
        assert sorted(frame.itertuples(index=False, name=None)) == [(7.25, 1000), (10.5, 3000), (20.0, 2000)]
    with pytest.raises(InvalidInputError, match="join_key='player_id' was given"):
        featurestore.get_features(named, join_key="player_id")
    with pytest.raises(InvalidInputError, match="No group has a feature 'team_budge'"):
        featurestore.get_features(["team_budge"])
    with pytest.raises(InvalidInputError, match="this project has football_featurestore"):
        featurestore.get_features(named, featurestore="other_featurestore")


def test_versions_are_told_apart() -> None:
    assert featurestore.get_latest_featuregroup_version("teams_features") == 1
    assert featurestore.get_latest_featuregroup_version("players") == 0
    doubled = TEAMS.assign(Team_Budget=TEAMS["Team_Budget"] * 2)
    featurestore.create_featuregroup(doubled, "teams_features", primary_key=["team_id"], featuregroup_version=2)
    assert featurestore.get_feature("team_budget")["team_budget"].tolist() == [21.0, 40.0, 14.5]
    first = featurestore.get_feature("team_budget", featuregroup="teams_features", featuregroup_version=1)
    assert first["team_budget"].tolist() == [10.5, 20.0, 7.25]
    old = featurestore.get_features(["team_budget"], featuregroups_version_dict={"teams_features": 1})
    assert old["team_budget"].tolist() == [10.5, 20.0, 7.25]
    with pytest.raises(InvalidInputError, match=r"of version 2 already\. Insert into it .* or make version 3"):
        featurestore.create_featuregroup(TEAMS, "teams_features", featuregroup_version=2)
    assert featurestore.get_featuregroups() == ["season_features_1", "teams_features_1", "teams_features_2"]


@pytest.mark.parametrize("kind", ["pandas", "numpy", "python", "polars"])
def test_frames_of_each_kind(kind: str) -> None:
    found: Any = featurestore.get_featuregroup("season_features", dataframe_type=kind)
    rows = (
        found.rows() if kind == "polars" else found.to_numpy().tolist() if kind == "pandas" else list(map(list, found))
    )
    assert sorted(map(list, rows)) == [[1, 3000], [2, 2000], [3, 1000]]
    assert featurestore.get_feature("average_attendance", dataframe_type="python") == [1000, 3000, 2000]
    with pytest.raises(InvalidInputError, match="dataframe_type='koalas' was given"):
        featurestore.get_featuregroup("season_features", dataframe_type="koalas")


def test_rows_are_appended_or_replace_all() -> None:
    more = pd.DataFrame({"team_id": [4, 1], "average_attendance": [5, 3001]})
    featurestore.insert_into_featuregroup(more, "season_features")
    frame = featurestore.get_featuregroup("season_features").set_index("team_id")["average_attendance"]
    assert frame.to_dict() == {1: 3001, 2: 2000, 3: 1000, 4: 5}
    featurestore.insert_into_featuregroup(more, "season_features", mode="overwrite")
    assert len(featurestore.get_featuregroup("season_features")) == 2
    with pytest.raises(InvalidInputError, match="mode='add' was given"):
        featurestore.insert_into_featuregroup(more, "season_features", mode="add")


def test_rows_that_share_a_key_are_all_kept() -> None:
    games = pd.DataFrame({"home_team_id": [1, 1, 2], "score": [3, 4, 5]})
    featurestore.create_featuregroup(games, "games_features")
    featurestore.insert_into_featuregroup(games[:1], "games_features")
    assert sorted(featurestore.get_featuregroup("games_features")["score"]) == [3, 3, 4, 5]
    assert featurestore.sql("SELECT * FROM games_features_1 WHERE score > 3").columns.tolist() == [
        "home_team_id",
        "score",
    ]
    assert "row_of_frame" not in featurestore.get_features_list()


def test_arrays_and_lists_become_groups() -> None:
    featurestore.create_featuregroup(np.array([[1, 2.5], [2, 3.5]]), "arrays")
    assert featurestore.get_featuregroup("arrays", dataframe_type="numpy").tolist() == [[1.0, 2.5], [2.0, 3.5]]
    featurestore.create_featuregroup([[1, 2], [3, 4]], "lists")
    assert featurestore.get_featuregroup("lists", dataframe_type="python") == [[1, 2], [3, 4]]


@pytest.mark.parametrize("data_format", ["tfrecords", "csv", "tsv", "parquet", "orc", "avro", "npy", "hdf5"])
def test_training_datasets_are_files_where_readers_look(data_format: str) -> None:
    frame = featurestore.get_features(["average_attendance", "team_budget"])
    featurestore.create_training_dataset(frame, "attendance", data_format=data_format, description="Visitors")
    path = featurestore.get_training_dataset_path("attendance")
    assert "/Football_Training_Datasets/attendance_1/attendance" in path
    files = [path] if data_format in {"npy", "hdf5"} else glob.glob(path + "/part-r-*")
    assert len(files) == 1
    assert Path(files[0]).is_file()
    read = featurestore.get_training_dataset("attendance")
    assert sorted(read.to_numpy().tolist()) == [[1000, 7.25], [2000, 20.0], [3000, 10.5]]
    featurestore.insert_into_training_dataset(frame, "attendance", write_mode="append")
    assert len(featurestore.get_training_dataset("attendance", dataframe_type="numpy")) == 6
    featurestore.insert_into_training_dataset(frame, "attendance")
    assert len(featurestore.get_training_dataset("attendance")) == 3
    assert featurestore.get_training_datasets() == ["attendance_1"]
    assert featurestore.get_latest_training_dataset_version("attendance") == 1
    assert featurestore.get_latest_training_dataset_version("other") == 0


def test_training_datasets_can_be_loaded_and_described() -> None:
    featurestore.create_training_dataset(SEASONS, "visits", data_format="parquet")
    path = featurestore.get_training_dataset_path("visits")
    batch = next(iter(data.Loader(sorted(glob.glob(path + "/part-r-*")), batch_size=3)))
    assert batch["average_attendance"].tolist() == [1000, 3000, 2000]
    assert featurestore.get_training_dataset_statistics("visits")["average_attendance"].max == 3000
    metadata = featurestore.get_featurestore_metadata(update_cache=True)
    assert metadata.training_datasets["visits_1"].rows == 3
    assert metadata.featuregroups["teams_features_1"].description == "Clubs"
    with pytest.raises(NotFoundError, match="There is no training dataset 'visit' of version 1; there are visits_1"):
        featurestore.get_training_dataset_path("visit")


def test_what_cannot_be_written_says_what_to_do() -> None:
    for data_format, words in {
        "image": "data.pack",
        "petastorm": "materialize_dataset",
    }.items():
        with pytest.raises(InvalidInputError, match=words):
            featurestore.create_training_dataset(SEASONS, "x", data_format=data_format)
    with pytest.raises(InvalidInputError, match="Did you mean 'parquet'"):
        featurestore.create_training_dataset(SEASONS, "x", data_format="parket")
    with pytest.raises(InvalidInputError, match="town holds no numbers"):
        featurestore.create_training_dataset({"town": ["Lund"]}, "x", data_format="npy")
    assert featurestore.get_training_datasets() == []


def test_figures_and_words() -> None:
    featurestore.connect("host", "Football", api_key_file="none")
    figures = featurestore.visualize_featuregroup_distributions("teams_features")
    assert "<svg" in figures._repr_html_()
    correlations = featurestore.visualize_featuregroup_correlations("teams_features")
    assert correlations["team_budget"]["team_position"] == pytest.approx(-0.965, abs=0.01)
    featurestore.update_featuregroup_stats("teams_features")
    featurestore.add_tag("teams_features", "season", "2026")
    assert featurestore.get_tags("teams_features") == {"season": "2026"}
    featurestore.enable_featuregroup_online("teams_features")
    assert features.group("teams_features").definition.online
    assert featurestore.get_featuregroups(online=True) == ["teams_features_1"]
    with pytest.raises(GoneError, match="Clusters are not computed"):
        featurestore.visualize_featuregroup_clusters("teams_features")
    with pytest.raises(GoneError, match="Addresses are given where data is read"):
        featurestore.get_storage_connectors()
    assert (
        featurestore.get_project_featurestores() == [featurestore.project_featurestore()] == ["football_featurestore"]
    )
