"""Feature groups and queries by the names of Hopsworks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cargobike import features, project
from cargobike.compat import hopsworks, hsfs
from cargobike.compat.hsfs.feature import Feature
from cargobike.errors import InvalidInputError, NotFoundError


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("cargobike.compat.hsfs.frames.has_spark", lambda: False)  # another test may have a session
    project.use(tmp_path / "Football")
    return hopsworks.login().get_feature_store()


def teams(store: Any, **said: Any) -> Any:
    group = store.get_or_create_feature_group("teams", version=1, primary_key=["team_id"], event_time="at", **said)
    days = pd.to_datetime(["2022-01-01", "2022-01-01", "2022-02-01"])
    group.insert(pd.DataFrame({"team_id": [1, 2, 1], "at": days, "Budget": [10.0, 20.0, 12.5]}))
    return group


def games(store: Any) -> Any:
    group = store.create_feature_group("games", version=1, primary_key=["game"], event_time="day")
    days = pd.to_datetime(["2022-01-15", "2022-02-15", "2022-02-15"])
    rows = {"game": [7, 8, 9], "day": days, "team_id": [1, 1, 3], "goals": [0, 3, 2], "city": ["Kista", "Lund", "Ö {"]}
    group.insert(pd.DataFrame(rows))
    return group


def test_a_group_exists_once_rows_were_inserted(store: Any) -> None:
    group = store.create_feature_group("seasons", primary_key="team_id")
    with pytest.raises(InvalidInputError, match="has no rows yet: insert"):
        group.read()
    with pytest.raises(NotFoundError, match="no feature group 'seasons'"):
        store.get_feature_group("seasons")
    job, report = group.insert({"team_id": [1], "points": [3]})
    assert (job.state, report) == ("FINISHED", None)
    assert store.get_feature_group("seasons", 1).read().to_dict("list") == {"team_id": [1], "points": [3]}
    assert store.create_feature_group("seasons").version == 2
    with pytest.raises(InvalidInputError, match="get_or_create_feature_group returns it"):
        store.create_feature_group("seasons", version=1)


def test_rows_replace_those_with_the_same_key_and_time(store: Any) -> None:
    group = teams(store)
    group.insert({"team_id": [1], "at": [pd.Timestamp("2022-02-01")], "budget": [13.0]})
    frame = group.read().sort_values(["team_id", "at"])
    assert list(frame.columns) == ["team_id", "at", "budget"]
    assert frame["budget"].tolist() == [10.0, 13.0, 20.0]
    group.insert({"team_id": [5], "at": [pd.Timestamp("2022-02-01")], "budget": [1.0]}, overwrite=True)
    assert group.read()["team_id"].tolist() == [5]


def test_rows_without_a_key_are_all_kept(store: Any) -> None:
    group = store.get_or_create_feature_group("log", version=1)
    for _ in range(2):
        group.insert(np.array([[1.0, 2.0], [1.0, 2.0]]))
    assert group.read().to_numpy().tolist() == [[1.0, 2.0]] * 4
    assert [one.name for one in group.features] == ["col_0", "col_1"]


def test_whole_numbers_are_times_in_seconds_or_milliseconds(store: Any) -> None:
    for name, factor in (("seconds", 1), ("milliseconds", 1000)):
        group = store.get_or_create_feature_group(name, version=1, primary_key=["key"], event_time="at")
        group.insert({"key": [1], "at": [1_640_995_200 * factor], "x": [0.5]})
        assert group.read()["at"].tolist() == [pd.Timestamp("2022-01-01", tz="UTC")]


def test_conditions_choose_rows(store: Any) -> None:
    group = games(store)
    assert group.filter(group.goals > 0).read()["game"].tolist() == [8, 9]
    assert group.filter((group.goals > 0) & (group.city == "Lund")).read()["game"].tolist() == [8]
    assert group.filter((group["goals"] == 0) | group.city.isin(["Ö {"])).read()["game"].tolist() == [7, 9]
    assert group.filter(group.city.like("K%")).read()["game"].tolist() == [7]
    assert group.filter(group.day >= pd.Timestamp("2022-02-01")).read()["game"].tolist() == [8, 9]
    assert group.select(["game"]).filter(group.goals != 0).read().columns.tolist() == ["game"]
    with pytest.raises(InvalidInputError, match="has no truth of its own"):
        bool(group.goals > 0)
    with pytest.raises(AttributeError, match="Did you mean 'goals'"):
        _ = group.goal


def test_history_that_was_inserted_today_counts_by_its_event_time(store: Any) -> None:
    group, other = games(store), teams(store)
    query = group.select(["game", "goals"]).join(other.select(["budget"]), on=["team_id"])
    frame = query.read().set_index("game")
    assert frame["budget"].fillna(-1).to_dict() == {7: 10.0, 8: 12.5, 9: -1}
    inner = group.select(["game"]).join(other.select_all(), on=["team_id"], join_type="inner", prefix="t_")
    assert inner.features == ["game", "t_team_id", "t_at", "t_budget"]
    assert inner.filter(other.budget > 11).read()["game"].tolist() == [8]
    assert inner.show(1)["t_budget"].tolist() == [10.0]


def test_a_join_without_the_key_says_what_to_give(store: Any) -> None:
    with pytest.raises(InvalidInputError, match="games has the key game, and is to be joined by nothing"):
        teams(store).select_all().join(games(store).select_all())


def test_the_past_can_be_read(store: Any) -> None:
    group = teams(store)
    before = group.group.history()[0].time
    group.insert({"team_id": [9], "at": [pd.Timestamp("2022-03-01")], "budget": [1.0]})
    assert len(group.read()) == 4
    assert len(group.as_of(before.strftime("%Y-%m-%d %H:%M:%S.%f")).read()) == 3
    assert len(group.commit_details()) == 2
    assert len(group.select_all().as_of(before).read()) == 3
    with pytest.raises(InvalidInputError, match="had no rows yet at 2001"):
        group.read(wallclock_time="20010101")


def test_what_is_said_of_groups(store: Any) -> None:
    group = teams(store)
    group.update_feature_description("budget", "What a club can spend")
    assert features.search("can spend")[0][0].name == "teams"
    group.add_tag("season", "2022")
    assert group.get_tags() == {"season": "2022"}
    assert group.get_statistics()["budget"].mean == pytest.approx(42.5 / 3)
    assert [one.name for one in store.get_feature_groups()] == ["teams"]
    group.delete()
    assert features.list_groups() == []
    assert teams(store).read().shape == (3, 3)


def test_a_schema_makes_a_group_without_rows(store: Any) -> None:
    listed = [Feature("id", "bigint", primary=True), Feature("x", "double"), Feature("tags", "array<string>")]
    group = store.create_feature_group("listed", version=1, features=listed)
    group.save()
    assert features.group("listed").definition.features == {"x": "double", "tags": "list<item: string>"}


def test_sql_names_groups_by_version(store: Any) -> None:
    teams(store)
    frame = store.sql("SELECT max(budget) AS most FROM teams_1")
    assert frame["most"].tolist() == [20.0]


def test_what_is_not_there_says_what_is(store: Any) -> None:
    with pytest.raises(InvalidInputError, match="addresses of data are given where it is read"):
        store.get_storage_connector("s3")
    with pytest.raises(InvalidInputError, match="nearest neighbours are not searched"):
        store.create_feature_group("e", embedding_index=object())
    assert hsfs.connection(host="x", api_key_value="y").get_feature_store().name == "football_featurestore"
