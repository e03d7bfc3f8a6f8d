"""Feature views by the names of Hopsworks: splits, look-ups, transformations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cargobike import features, project
from cargobike.compat import hopsworks
from cargobike.compat.hopsworks.hsfs.builtin_transformations import label_encoder, min_max_scaler, robust_scaler
from cargobike.errors import InvalidInputError, NotFoundError


@hopsworks.udf(float)  # type: ignore[untyped-decorator]
def doubled(goals: Any) -> Any:
    return goals * 2


@hopsworks.udf(float, drop=["goals"])  # type: ignore[untyped-decorator]
def for_each(goals: Any, budget: Any) -> Any:
    return goals / budget


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("cargobike.compat.hsfs.frames.has_spark", lambda: False)  # another test may have a session
    project.use(tmp_path / "Football")
    store = hopsworks.login().get_feature_store()
    games = store.get_or_create_feature_group(
        "games", version=1, primary_key=["game"], event_time="day", online_enabled=True
    )
    games.insert(
        pd.DataFrame(
            {
                "game": range(10),
                "day": pd.date_range("2022-01-01", periods=10),
                "team_id": [1, 2] * 5,
                "goals": range(10),
                "won": [False, True] * 5,
            }
        )
    )
    teams = store.get_or_create_feature_group("teams", version=1, primary_key=["team_id"], online_enabled=True)
    teams.insert({"team_id": [1, 2], "city": ["Lund", "Kista"], "budget": [10.0, 20.0]})
    return store


def query_of(store: Any) -> Any:
    games, teams = store.get_feature_group("games"), store.get_feature_group("teams")
    return games.select(["game", "goals", "won"]).join(teams.select_features(), on=["team_id"])


def test_a_split_has_features_and_labels_of_each_part(store: Any) -> None:
    view = store.create_feature_view("wins", query_of(store), version=1, labels=["won"])
    X_train, X_test, y_train, y_test = view.train_test_split(test_size=0.3)
    assert (len(X_train), len(X_test), len(y_train), len(y_test)) == (7, 3, 7, 3)
    assert list(X_train.columns) == ["game", "goals", "city", "budget"]
    assert list(y_test.columns) == ["won"]
    assert sorted([*X_train["game"], *X_test["game"]]) == list(range(10))
    assert ((X_test["game"] % 2 == 1) == y_test["won"]).all()
    again = view.get_train_test_split(view.training_dataset_version)
    pd.testing.assert_frame_equal(again[0], X_train)
    parts = view.train_validation_test_split(validation_size=0.2, test_size=0.2, primary_key=True, event_time=True)
    assert [len(part) for part in parts] == [6, 2, 2, 6, 2, 2]
    assert list(parts[0].columns) == ["game", "goals", "city", "budget", "day"]
    X, y = view.training_data(extra_filter=store.get_feature_group("games").goals >= 5)
    assert (sorted(X["goals"]), len(y)) == ([5, 6, 7, 8, 9], 5)
    with pytest.raises(InvalidInputError, match="Which rows are for train, test"):
        view.train_test_split()


def test_a_training_dataset_stays_as_it_was_written(store: Any) -> None:
    view = store.create_feature_view("wins", query_of(store), labels=["won"])
    version, job = view.create_train_test_split(test_start="2022-01-08", data_format="csv")
    assert (version, job.state) == (1, "FINISHED")
    store.get_feature_group("games").insert(
        {"game": [10], "day": [pd.Timestamp("2022-01-11")], "team_id": [1], "goals": [5], "won": [True]}
    )
    X_train, X_test, _, _ = store.get_feature_view("wins", 1).get_train_test_split(1)
    assert (X_train["game"].tolist(), X_test["game"].tolist()) == ([0, 1, 2, 3, 4, 5, 6], [7, 8, 9])
    with pytest.raises(InvalidInputError, match="has the parts train, test; train were wanted"):
        view.get_training_data(1)


def test_versions_have_the_numbers_that_were_given(store: Any) -> None:
    first = store.get_or_create_feature_view("wins", version=3, query=query_of(store), labels=["won"])
    assert store.get_or_create_feature_view("wins", version=3).view.version == first.view.version == 1
    assert store.create_feature_view("wins", query_of(store)).version == 4
    assert [one.version for one in store.get_feature_views("wins")] == [3, 4]
    with pytest.raises(InvalidInputError, match="of version 3 already"):
        store.create_feature_view("wins", query_of(store), version=3)
    with pytest.raises(NotFoundError, match="it has the versions 3, 4"):
        store.get_feature_view("wins")
    with pytest.raises(InvalidInputError, match="the label 'win' is not in the query"):
        store.create_feature_view("other", query_of(store), labels=["win"])


def test_look_ups_have_the_order_of_the_view_and_no_labels(store: Any) -> None:
    chosen = [label_encoder("city"), min_max_scaler("goals")]
    view = store.create_feature_view("wins", query_of(store), labels=["won"], transformation_functions=chosen)
    X_train, _, _, _ = view.train_test_split(train_end="2022-01-06", test_start="2022-01-06")
    assert X_train["city"].tolist() == [1, 0, 1, 0, 1]
    assert X_train["goals"].tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    view = store.get_feature_view("wins", 1)
    view.init_serving(1)
    entry = {"game": 8, "team_id": 1}
    assert view.get_feature_vector(entry) == [8, 2.0, 1, 10.0]
    assert view.get_feature_vector(entry, passed_features={"budget": 11.0})[-1] == 11.0
    plain = view.get_feature_vector(entry, transform=False)
    assert plain == [8, 8, "Lund", 10.0]
    assert view.transform(plain) == [8, 2.0, 1, 10.0]
    many = view.get_feature_vectors([entry, {"game": 9, "team_id": 2}], return_type="pandas")
    assert many["goals"].tolist() == [2.0, 2.25]
    assert view.get_feature_vector(entry, return_type="numpy").tolist() == [8, 2.0, 1, 10.0]
    with pytest.raises(NotFoundError, match="There is no row for"):
        view.get_feature_vector({"game": 99, "team_id": 1})
    assert view.get_feature_vector({"game": 99, "team_id": 1}, allow_missing=True)[:2] == [99, None]
    batch = view.get_batch_data(start_time="2022-01-09")
    assert batch.to_dict("list") == {"game": [8, 9], "goals": [2.0, 2.25], "city": [1, 0], "budget": [10.0, 20.0]}


def test_keys_and_event_times_are_looked_up_too(store: Any) -> None:
    games = store.get_feature_group("games")
    view = store.create_feature_view("all", games.select_all(), labels=["won"])
    day = pd.Timestamp("2022-01-05", tz="UTC").to_pydatetime()
    assert view.get_feature_vector({"game": 4}) == [4, day, 1, 4]
    assert view.get_feature_vector({"game": 99}, allow_missing=True) == [99, None, None, None]


def test_labels_can_be_encoded(store: Any) -> None:
    games = store.get_feature_group("games")
    teams = store.get_feature_group("teams")
    query = games.select(["goals"]).join(teams.select(["city"]), on=["team_id"])
    view = store.create_feature_view("where", query, labels=["city"], transformation_functions=[label_encoder("city")])
    _, _, y_train, _ = view.train_test_split(test_size=0.2)
    assert set(y_train["city"]) == {0, 1}


def test_functions_of_users_run_in_training_and_look_ups(store: Any) -> None:
    view = store.create_feature_view(
        "own", query_of(store), labels=["won"], transformation_functions=[doubled("goals")]
    )
    X, _ = view.training_data()
    assert X["goals"].tolist() == list(range(0, 20, 2))
    view = store.get_feature_view("own", 1)
    assert view.get_feature_vector({"game": 4, "team_id": 1})[1] == 8.0
    chosen = [for_each("goals", "budget")]
    ratio = store.create_feature_view("ratio", query_of(store), labels=["won"], transformation_functions=chosen)
    X, _ = ratio.training_data()
    assert list(X.columns) == ["game", "city", "budget", "for_each_goals_budget_"]
    np.testing.assert_allclose(X["for_each_goals_budget_"], np.arange(10) / np.array([10.0, 20.0] * 5))
    assert ratio.get_feature_vector({"game": 4, "team_id": 1}) == [4, "Lund", 10.0, 0.4]


def test_transformations_that_are_not_there_say_so(store: Any) -> None:
    with pytest.raises(InvalidInputError, match="robust_scaler is not there; a function does it"):
        robust_scaler("goals")
    with pytest.raises(InvalidInputError, match="takes statistics of the training data"):
        hopsworks.udf(float)(lambda goals, statistics: goals)
    with pytest.raises(NotFoundError, match="Did you mean 'label_encoder'"):
        store.get_transformation_function("label_encode")


def test_views_of_hopsworks_are_views_of_ours(store: Any) -> None:
    store.create_feature_view("wins", query_of(store), labels=["won"]).train_test_split(test_size=0.5)
    assert features.view("wins").features == ["goals", "city", "budget"]
    assert features.training_dataset("wins_1").commits == {"games": 0, "teams": 0}


def test_training_datasets_without_a_view_work_as_in_hsfs_2(store: Any) -> None:
    made = store.create_training_dataset(
        "old", 1, data_format="csv", splits={"train": 0.7, "test": 0.3}, seed=12, label=["won"]
    )
    made.save(query_of(store))
    found = store.get_training_dataset("old", 1)
    assert (len(found.read("train")), len(found.read("test")), len(found.read())) == (7, 3, 10)
    assert list(found.read("train").columns) == ["game", "goals", "won", "city", "budget"]
    found.init_prepared_statement()
    assert found.get_serving_vector({"game": 3, "team_id": 2}) == [3, 3, "Kista", 20.0]
    assert found.get_serving_vectors({"game": [0, 3], "team_id": [1, 2]})[0] == [0, 0, "Lund", 10.0]
    assert Path(found.location).is_dir()
    with pytest.raises(InvalidInputError, match="has a version 1 already"):
        made.save(query_of(store))
    with pytest.raises(InvalidInputError, match="A DataFrame was given; give a query"):
        store.create_training_dataset("frame").save(found.read())
    with pytest.raises(NotFoundError, match="no training dataset 'other' of version 1"):
        store.get_training_dataset("other")
