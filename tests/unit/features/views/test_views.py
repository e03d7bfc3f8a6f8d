"""A view gives training rows and look-ups that agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cargobike import features, project
from cargobike.core.errors import InvalidInputError, NotFoundError


def per_seat(budget: np.ndarray, seats: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.asarray(budget / seats)


def doubled(values: np.ndarray) -> np.ndarray:
    return values * 2


@pytest.fixture(autouse=True)
def _league(tmp_path: Path) -> Any:
    project.use(tmp_path / "project")
    teams = features.create_group("teams", key="team_id", event_time="at", online=True)
    days = pd.to_datetime(["2026-01-01", "2026-02-01", "2026-01-15"])
    teams.insert(pd.DataFrame({"team_id": [1, 1, 2], "at": days, "budget": [10.0, 20.0, 30.0]}))
    cities = features.create_group("cities", key="city", online=True)
    cities.insert({"city": ["Rome", "Oslo"], "country": ["it", None], "people": [3, 1]})
    yield
    project.use(None)


def labels() -> pd.DataFrame:
    days = pd.to_datetime(["2026-01-10", "2026-03-01", "2026-03-01", "2025-01-01"])
    cities = ["Rome", "Oslo", "Paris", "Rome"]
    return pd.DataFrame({"team_id": [1, 1, 2, 2], "city": cities, "when": days, "value": [1.0, 2.0, 3.0, 4.0]})


def test_training_rows_are_right_in_time_and_all_kept() -> None:
    view = features.create_view("team_value", features=["budget", "country"], label="value")
    data = view.training_data(labels())

    frame = data.to_pandas()
    assert list(frame) == ["team_id", "city", "when", "value", "budget", "country"]
    assert frame["budget"].tolist()[:3] == [10.0, 20.0, 30.0]
    assert np.isnan(frame["budget"][3])
    assert [None if pd.isna(each) else each for each in frame["country"]] == ["it", None, None, "it"]
    # The history was loaded today, long after the labels.
    assert data.explain().lateness["teams"] == (3, 3)
    assert view.training_data(labels(), known_at="commit").to_pandas()["budget"].isna().all()


def test_look_ups_give_the_newest_values_and_say_what_is_absent() -> None:
    view = features.create_view("team_value", features=["budget", "country", "people"], label="value")

    found = view.vector(team_id=1, city="Oslo")
    assert found == {"budget": 20.0, "country": None, "people": 1}
    assert found.states == {"budget": "present", "country": "null", "people": "present"}
    missing = view.vector(team_id=9, city="Rome")
    assert missing.states == {"budget": "missing", "country": "present", "people": "present"}
    many = view.vectors([{"team_id": 2, "city": "Rome"}, {"team_id": 9, "city": "Paris"}])
    assert [vector["budget"] for vector in many] == [30.0, None]
    assert many[1].states == {"budget": "missing", "country": "missing", "people": "missing"}
    frame = pd.DataFrame({"team_id": [2, 1], "city": ["Rome", "Rome"]})
    assert view.vectors(frame).to_pandas()["budget"].tolist() == [30.0, 20.0]
    view.close()


def test_an_insert_into_an_online_group_is_found_at_once() -> None:
    view = features.create_view("budgets", features=["budget"])
    assert view.vector(team_id=2) == {"budget": 30.0}

    features.group("teams").insert({"team_id": [2], "at": ["2026-05-01"], "budget": [99.0]})
    assert view.vector(team_id=2) == {"budget": 99.0}
    features.group("teams").delete({"team_id": [2]})
    assert view.vector(team_id=2).states == {"budget": "missing"}
    assert features.group("teams").verify().is_equal
    view.close()


def test_a_view_has_versions_and_is_found_again() -> None:
    first = features.create_view("v", features=["budget"], label="value")
    assert features.create_view("v", features=["teams.budget"], label="value").version == first.version == 1
    second = features.create_view("v", features=["budget", "people"], label="value")

    assert second.version == 2
    assert features.view("v").features == ["budget", "people"]
    assert features.view("v", 1).features == ["budget"]
    assert [view.name for view in features.list_views()] == ["v"]
    with pytest.raises(NotFoundError, match="There is no view 'w'; there are v"):
        features.view("w")
    with pytest.raises(NotFoundError, match="no version 7; it has 1, 2"):
        features.view("v", 7)


def test_features_are_computed_on_demand_the_same_in_training_and_serving() -> None:
    view = features.create_view("seats", features=["budget"], label="value", on_demand={"per_seat": per_seat})
    rows = labels().assign(seats=[5, 4, 0, 1])

    frame = view.training_data(rows).to_pandas()
    assert frame["per_seat"].tolist()[:3] == [2.0, 5.0, np.inf]
    assert view.vector(team_id=1, seats=4) == {"budget": 20.0, "per_seat": 5.0}
    assert view.vector(team_id=9, seats=4) == {"budget": None, "per_seat": None}
    assert view.vectors({"team_id": [1, 9], "seats": [2, 2]})[0] == {"budget": 20.0, "per_seat": 10.0}
    again = features.view("seats")
    with pytest.raises(InvalidInputError, match="'per_seat' is computed from budget, seats; the rows have no column"):
        view.training_data(labels()).to_arrow()
    with pytest.raises(InvalidInputError, match="A look-up in this view takes team_id, seats:\n  - seats is missing"):
        view.vector(team_id=1)
    again.close()
    view.close()


def test_functions_that_cannot_be_imported_are_given_again() -> None:
    view = features.create_view("local", features=["budget"], on_demand={"half": lambda budget: budget / 2})
    assert view.vector(team_id=1)["half"] == 10.0
    view.close()

    with pytest.raises(InvalidInputError, match="which cannot be imported here"):
        features.view("local").vector(team_id=1)
    again = features.view("local", functions={"half": lambda budget: budget / 2})
    assert again.vector(team_id=1)["half"] == 10.0
    again.close()


def test_transformations_without_a_training_dataset_are_fitted_on_what_is_given() -> None:
    view = features.create_view(
        "scaled",
        features=["budget", "country", "people"],
        transformations={"budget": "min_max", "country": "one_hot", "people": doubled},
    )
    data = view.training_data(labels())

    frame = data.to_pandas()
    assert frame["budget"].tolist()[:3] == [0.0, 0.5, 1.0]
    assert frame["country_it"].tolist() == [1.0, 0.0, 0.0, 1.0]
    assert frame["people"].tolist()[:2] == [6.0, 2.0]
    assert "fitted on all of these rows" in str(data.explain())
    with pytest.raises(InvalidInputError, match="were never fitted"):
        view.vector(team_id=1, city="Rome")


def test_mistakes_are_all_listed() -> None:
    with pytest.raises(InvalidInputError, match="'Team Value' was given as the name of a view"):
        features.create_view("Team Value", features=["budget"])
    with pytest.raises(InvalidInputError, match="team_id says what a row is about"):
        features.create_view("v", features=["budget", "team_id"])
    with pytest.raises(InvalidInputError) as error:
        features.create_view(
            "v", features=["country"], transformations={"country": "min_max", "contry": "ordinal", "people": "onehot"}
        )
    assert [mistake.split(";")[0] for mistake in error.value.mistakes] == [
        "'contry' is no feature of the view. Did you mean 'country'?",
        "'people' is no feature of the view.",
        "'onehot', for 'people', is no transformation",
        "'country' holds string, which cannot be scaled",
    ]
    view = features.create_view("v", features=["budget"], label="value")
    with pytest.raises(InvalidInputError, match="learns 'value', and the rows have no such column"):
        view.training_data({"team_id": [1], "when": ["2026-01-01"]})
    with pytest.raises(InvalidInputError, match="adds: budget"):
        view.training_data(labels().assign(budget=1.0))
    with pytest.raises(InvalidInputError, match="'teamid' is not known"):
        view.vector(teamid=1)
