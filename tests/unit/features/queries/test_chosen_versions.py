"""Versions of groups by name, features under other names, joins that are spelt out, and views fed by queries."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from cargobike import features, project
from cargobike.errors import InvalidInputError, NotFoundError
from cargobike.features.queries.joins import Join, join_groups


@pytest.fixture(autouse=True)
def groups(tmp_path: Path) -> None:
    project.use(tmp_path)
    for version in (1, 2):
        teams = features.create_group("teams", key="team_id", version=version)
        teams.insert({"team_id": [1, 2], "budget": [10.0 * version, 20.0 * version]})
    games = features.create_group("games", key="game", event_time="at")
    at = pd.to_datetime(["2026-01-01", "2026-01-02"], utc=True)
    games.insert({"game": [7, 8], "at": at, "home": [1, 3], "goals": [2, 4]})


def test_a_name_can_say_the_version_of_a_group() -> None:
    assert features.get_features(["budget"]).to_arrow()["budget"].to_pylist() == [20.0, 40.0]
    assert features.get_features(["teams:1.budget"]).to_arrow()["budget"].to_pylist() == [10.0, 20.0]
    assert features.create_view("old", features=["teams:1.budget"]).record.features[0].version == 1
    with pytest.raises(NotFoundError, match="has no version 3; it has 1, 2"):
        features.get_features(["teams:3.budget"])
    with pytest.raises(InvalidInputError, match="Several versions of teams were asked for at once"):
        features.get_features(["teams:1.budget", "teams.budget"])


def test_a_view_can_give_features_other_names() -> None:
    view = features.create_view("renamed", features={"money": "teams:1.budget", "score": "games.goals"}, label="won")
    assert view.features == ["money", "score"]
    assert view.record.features[0].feature == "budget"
    with pytest.raises(InvalidInputError, match=r"'teams\.\*' is a group|'won' is the label too"):
        features.create_view("wrong", features={"won": "games.goals"}, label="won")


def test_texts_of_other_programs_are_kept_with_a_view() -> None:
    features.create_view("known", features=["goals"], attached={"other": "text"})
    assert features.view("known").record.attached == {"other": "text"}
    assert features.create_view("known", features=["goals"], attached={"other": "more"}).version == 2


def test_joins_are_right_by_other_columns_and_can_leave_rows_out() -> None:
    games, teams = features.group("games"), features.group("teams", 1)
    join = Join(teams, ("home",), {"home_budget": "budget"})
    output = ["game", "home_budget"]
    query = join_groups(games, {"game": "game"}, [join], output=output)
    assert query.to_arrow().to_pydict() == {"game": [7, 8], "home_budget": [10.0, None]}
    inner = Join(teams, ("home",), {"home_budget": "budget"}, required=True)
    assert join_groups(games, {"game": "game"}, [inner], output=output).to_arrow()["game"].to_pylist() == [7]
    with pytest.raises(InvalidInputError, match="teams is joined twice"):
        join_groups(games, {}, [join, join], output=output)
    with pytest.raises(InvalidInputError, match="games has no column 'hom' to find teams by"):
        join_groups(games, {}, [Join(teams, ("hom",), {})], output=output)


def test_a_view_takes_a_query_that_has_its_features() -> None:
    view = features.create_view("scores", features=["goals"], label="home", transformations={"home": "ordinal"})
    query = features.get_features(["game", "goals", "home"])
    assert view.training_data(query).to_arrow()["home"].to_pylist() == [0, 1]
    dataset = view.create_training_dataset("scores", query.pinned())
    assert dataset.commits == {"games": 0}
    with pytest.raises(InvalidInputError, match="the query has no home"):
        view.training_data(features.get_features(["goals"]))


def test_a_pinned_query_stays_where_it_was() -> None:
    old = features.get_features(["goals"]).pinned()
    features.group("games").insert(
        {"game": [9], "at": [pd.Timestamp("2026-01-03", tz="UTC")], "home": [1], "goals": [5]}
    )
    assert old.pinned().to_arrow().num_rows == 2
    assert features.get_features(["goals"]).pinned().to_arrow().num_rows == 3


def test_a_group_that_was_removed_is_gone_with_its_rows(tmp_path: Path) -> None:
    group = features.create_group("gone", key="id", online=True)
    group.insert({"id": [1], "x": [0.5]})
    group.update(description="twice revised")
    features.remove_group("gone")
    assert [one.name for one in features.list_groups()] == ["games", "teams"]
    assert not [path for path in tmp_path.rglob("*gone*") if path.is_file() and "online" not in str(path)]
    features.remove_group("teams")
    assert features.group("teams").version == 1
    with pytest.raises(NotFoundError, match="no feature group 'gone'"):
        features.remove_group("gone")
    assert features.create_group("gone", key="id").num_rows == 0
