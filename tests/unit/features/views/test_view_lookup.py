"""Other products look features up through the registered door, without knowing this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cargobike import features, project
from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.looking_up import view_keeper
from support.redis_server import RedisServer


def per_seat(budget: np.ndarray, seats: np.ndarray) -> np.ndarray:
    return np.asarray(budget / seats)


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    project.use(tmp_path / "project")
    teams = features.create_group("teams", key="team_id", online=True)
    teams.insert({"team_id": [1, 2, 3], "budget": [10.0, 20.0, None], "fans": [100, 200, 300]})
    cities = features.create_group("cities", key="city", online=True)
    cities.insert({"city": ["Rome", "Oslo"], "country": ["it", "no"]})
    yield ProjectFolder(tmp_path / "project")
    project.use(None)


def test_features_are_found_in_the_order_of_the_view_whatever_group_they_are_of(folder: ProjectFolder) -> None:
    features.create_view("value", features=["budget", "country", "fans"])
    project.use(None)  # the one that asks says where

    lookup = view_keeper().open_lookup("value", folder)
    assert (lookup.keys, lookup.request_fields) == (("team_id", "city"), ())
    assert lookup.columns == ("budget", "country", "fans")
    requests = [{"city": "Oslo", "team_id": 2, "more": 1}, {"team_id": 9, "city": "Rome"}, {"team_id": 3, "city": ""}]
    rows = lookup.rows(requests)
    assert [list(row.items()) for row in rows] == [
        [("budget", 20.0), ("country", "no"), ("fans", 200)],
        [("budget", None), ("country", "it"), ("fans", None)],
        [("budget", None), ("country", None), ("fans", 300)],
    ]
    assert all(type(row) is dict for row in rows)
    assert json.loads(json.dumps(rows)) == rows  # plain values, no types of NumPy
    assert lookup.rows([]) == []
    lookup.close()


def test_computed_and_transformed_features_are_as_in_training(folder: ProjectFolder) -> None:
    view = features.create_view(
        "value",
        features=["fans", "country", "budget"],
        label="y",
        on_demand={"seat_budget": per_seat},
        transformations={"fans": "standardize", "country": "one_hot"},
    )
    labels = {"team_id": [1, 2], "city": ["Rome", "Oslo"], "seats": [5.0, 4.0], "y": [0, 1]}
    with pytest.raises(InvalidInputError, match="were never fitted"):
        view_keeper().open_lookup("value", folder)
    first = view.create_training_dataset("first", labels)
    view.create_training_dataset("second", {**labels, "team_id": [2, 3]})

    lookup = view_keeper().open_lookup("value:1", folder, dataset="first:1")
    assert lookup.request_fields == ("seats",)
    asked = [{"team_id": 1, "city": "Rome", "seats": 5.0}, {"team_id": 2, "city": "Oslo", "seats": 4.0}]
    rows = lookup.rows(asked)
    trained = first["train"].to_arrow().select(list(lookup.columns)).to_pylist()
    assert lookup.columns == ("fans", "country_it", "country_no", "budget", "seat_budget")
    assert rows == trained
    assert [list(row) for row in rows] == [list(lookup.columns)] * 2
    last = view_keeper().open_lookup("value", folder)
    assert last.rows([{"team_id": 2, "city": "Rome", "seats": 1.0}])[0]["fans"] == -1.0
    for each in (lookup, last):
        each.close()


def test_what_cannot_be_looked_up_is_said(folder: ProjectFolder) -> None:
    features.create_view("value", features=["budget", "country"])
    idle = features.create_group("idle", key="team_id")
    idle.insert({"team_id": [1], "calm": [1.0]})
    features.create_view("unprepared", features=["calm"])

    lookup = view_keeper().open_lookup("value", folder)
    with pytest.raises(InvalidInputError, match=r"row 1 has no city\n.*row 2 has no team_id, city"):
        lookup.rows([{"team_id": 1, "city": "Rome"}, {"team_id": 1}, {}])
    with pytest.raises(InvalidInputError, match="'one' was given; it is a whole number"):
        lookup.rows([{"team_id": "one", "city": "Rome"}])
    lookup.close()
    with pytest.raises(NotFoundError, match="value"):
        view_keeper().open_lookup("valeu", folder)
    with pytest.raises(NotFoundError, match="no version 7; it has 1"):
        view_keeper().open_lookup("value:7", folder)
    with pytest.raises(InvalidInputError, match="a view is called like"):
        view_keeper().open_lookup("value:new", folder)
    with pytest.raises(NotFoundError, match="not fitted for a training dataset 'other:1'"):
        view_keeper().open_lookup("value", folder, dataset="other:1")
    with pytest.raises(StoreError, match="never materialized"):
        view_keeper().open_lookup("unprepared", folder)


def test_groups_that_other_hosts_cannot_look_up_are_told_with_where_they_are(
    folder: ProjectFolder, redis_server: RedisServer
) -> None:
    features.create_view("value", features=["budget", "country"])
    where = {"teams": "in files of each host", "cities": "in files of each host"}
    assert view_keeper().bound_to_host("value:1", folder) == where
    features.group("teams").update(online=redis_server.url)
    features.group("cities").update(online=False)
    bound = view_keeper().bound_to_host("value", folder)
    assert bound["cities"] == "not kept for look-ups"
    assert "a socket of this host" in bound["teams"], "a server on this host is out of the reach of others"
    with pytest.raises(NotFoundError, match="valeu"):
        view_keeper().bound_to_host("valeu", folder)
