"""Features are asked for by name; owners, keys and times are inferred, and the inference is explained."""

from __future__ import annotations

import re

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.features.definition import WRITTEN_AT
from cargobike.features.queries.asking import ask
from support.histories import moments
from support.memory_groups import MemoryGroup, memory_group


@pytest.fixture
def groups() -> list[MemoryGroup]:
    return [
        memory_group("teams", "team_id", {"team_id": [1, 2], "budget": [10.0, 20.0], "city": ["Rome", None]}),
        memory_group(
            "seasons",
            "team_id",
            {"team_id": [1, 1, 2], "average_attendance": [100, 200, 50], "average_player_age": [24.5, 25.0, 30.0]},
            at=[10, 20, 15],
        ),
        memory_group(
            "games", "game_id", {"game_id": [7, 8, 9], "team_id": [1, 2, 1], "goals": [3, 0, 1]}, at=[12, 14, 25]
        ),
        memory_group("sponsors", "sponsor_id", {"sponsor_id": [5], "budget": [1.0]}),
    ]


def test_features_of_one_group_are_its_columns_in_the_order_asked(groups: list[MemoryGroup]) -> None:
    table = ask(["average_player_age", "average_attendance"], groups).to_arrow()

    assert table.column_names == ["average_player_age", "average_attendance"]
    assert table["average_attendance"].to_pylist() == [100, 200, 50]


def test_groups_are_joined_at_the_time_of_the_rows_of_the_finest(groups: list[MemoryGroup]) -> None:
    query = ask(["game_id", "goals", "teams.budget", "average_attendance"], groups)

    assert query.to_arrow().to_pylist() == [
        {"game_id": 7, "goals": 3, "budget": 10.0, "average_attendance": 100},
        {"game_id": 8, "goals": 0, "budget": 20.0, "average_attendance": None},
        {"game_id": 9, "goals": 1, "budget": 10.0, "average_attendance": 200},
    ]
    text = str(query.explain())
    assert "goals: from the rows of games" in text
    assert "looked up in seasons (version 1) by team_id, the latest row whose 'at' is at or before 'at'" in text
    assert "2 of 3 rows found a row in seasons; 0 of these were written after" in text


def test_rows_without_time_get_what_is_true_now(groups: list[MemoryGroup]) -> None:
    query = ask(["team_id", "city", "average_attendance"], [groups[0], groups[1]])
    rows = query.to_arrow().to_pylist()

    # Both groups can be found from each other; the one with event times says more.
    assert [row["average_attendance"] for row in rows] == [100, 200, 50]
    cities = memory_group("cities", "team_id league", {"team_id": [1, 2], "league": [1, 1], "size": [3, 4]})
    now = ask(["size", "average_attendance"], [cities, groups[1]])
    assert now.to_arrow().to_pylist() == [
        {"size": 3, "average_attendance": 200},
        {"size": 4, "average_attendance": 50},
    ]
    assert "what is joined is what is true now" in str(now.explain())


def test_labels_keep_all_rows_columns_and_types(groups: list[MemoryGroup]) -> None:
    labels = pd.DataFrame(
        {
            "team_id": [1, 2, 99],
            "when": pd.to_datetime([19, 20, 30], unit="s"),
            "budget": [0.5, 0.5, 0.5],
            "value": pd.Categorical(["a", "b", "a"]),
        }
    )
    query = ask(["teams.budget", "average_attendance"], groups, labels)
    table = query.to_arrow()

    assert table.column_names == ["team_id", "when", "budget", "value", "teams_budget", "average_attendance"]
    assert table["teams_budget"].to_pylist() == [10.0, 20.0, None]
    assert table["average_attendance"].to_pylist() == [100, 50, None]
    assert query.to_pandas()["value"].dtype == "category"
    assert query.to_polars()["average_attendance"].to_list() == [100, 50, None]
    assert "its only column with times" in str(query.explain())


def test_what_was_written_late_is_counted_and_can_be_left_out(groups: list[MemoryGroup]) -> None:
    seasons = groups[1]
    seasons.commits[0] = seasons.commits[0].set_column(4, WRITTEN_AT, moments([500, 20, 500]))
    labels = pa.table({"team_id": [1, 1, 2], "at": moments([15, 25, 25])})

    query = ask(["average_attendance"], [seasons], labels)
    assert query.explain().lateness["seasons"] == (3, 2)
    assert "known_at='commit'" in str(query.explain())
    known = query.known_at("commit")
    assert known.to_arrow()["average_attendance"].to_pylist() == [None, 200, None]
    assert "and which was written by then" in str(known.explain())
    with pytest.raises(InvalidInputError, match="known_at='since' was given; seasons has no such column"):
        query.known_at("since")


def test_a_pinned_query_reads_what_was_there(groups: list[MemoryGroup]) -> None:
    teams = groups[0]
    query = ask(["budget"], [teams])
    pinned = query.pinned()
    teams.commits.append(teams.commits[0].slice(0, 1))

    assert len(query.to_arrow()) == 1
    assert len(pinned.to_arrow()) == 2


def test_rows_are_filtered_and_cut(groups: list[MemoryGroup]) -> None:
    query = ask(["goals"], groups)

    assert query.filter("goals > 0").to_arrow()["goals"].to_pylist() == [3, 1]
    assert query.filter("goals > 0", game_id=9).to_arrow()["goals"].to_pylist() == [1]
    assert query.head(2).to_arrow()["goals"].to_pylist() == [3, 0]
    assert query.head(2).filter("goals < 3").to_arrow()["goals"].to_pylist() == [0]
    assert query.filter("goals < 3").head(1).to_arrow()["goals"].to_pylist() == [0]
    with pytest.raises(InvalidInputError, match="'gaols > 1' cannot be used"):
        query.filter("gaols > 1").to_arrow()
    with pytest.raises(InvalidInputError, match=re.escape("filter(gaols=…): the columns are")):
        query.filter(gaols=1).to_arrow()
    with pytest.raises(InvalidInputError, match="without a condition"):
        query.filter()


def test_rows_are_shown(groups: list[MemoryGroup], capsys: pytest.CaptureFixture[str]) -> None:
    ask(["goals"], groups).show(2)

    assert capsys.readouterr().out.split() == ["goals", "3", "0"]


def test_all_mistakes_in_names_are_listed_with_advice(groups: list[MemoryGroup]) -> None:
    with pytest.raises(InvalidInputError) as error:
        ask(["budget", "averge_attendance", "seasns.goals", "teams.bugdet", "teams"], groups)

    assert list(error.value.mistakes) == [
        "'budget' is in several groups; write 'teams.budget' or 'sponsors.budget'.",
        "No group has a feature 'averge_attendance'. Did you mean 'average_attendance'?",
        "There is no group 'seasns' for 'seasns.goals'. Did you mean 'seasons'?",
        "The group teams has no feature 'bugdet'; it has budget, city, team_id. Did you mean 'budget'?",
        "'teams' is a group; write 'teams.*' for all its features.",
    ]
    with pytest.raises(InvalidInputError, match="There are no feature groups in this project yet"):
        ask(["budget"], [])
    with pytest.raises(InvalidInputError, match="give a list of names"):
        ask("budget", groups)


def test_groups_that_share_no_key_are_refused(groups: list[MemoryGroup]) -> None:
    with pytest.raises(InvalidInputError, match="share no key") as error:
        ask(["teams.budget", "sponsors.budget"], groups)

    assert list(error.value.mistakes) == ["teams is found by team_id.", "sponsors is found by sponsor_id."]


def test_labels_that_do_not_fit_are_refused_with_all_mistakes(groups: list[MemoryGroup]) -> None:
    with pytest.raises(InvalidInputError) as error:
        ask(["average_attendance", "sponsors.budget"], groups, {"team_id": [1], "value": [2.0]})

    assert list(error.value.mistakes) == [
        "sponsors is found by sponsor_id, and the rows have no column 'sponsor_id'.",
        "Which column says when a row is? seasons changes with time. Give time='column'.",
    ]
    with pytest.raises(InvalidInputError, match="time='wen' was given"):
        ask(["average_attendance"], groups, {"team_id": [1]}, time="wen")
    with pytest.raises(InvalidInputError, match="int was given as rows"):
        ask(["average_attendance"], groups, 3)


def test_labels_of_many_kinds(groups: list[MemoryGroup]) -> None:
    columns = {"team_id": [2, 1], "at": [21, 21]}
    expected = [50, 200]
    frame = pl.DataFrame(columns).with_columns(pl.from_epoch("at", time_unit="s"))

    assert ask(["average_attendance"], groups, frame).to_arrow()["average_attendance"].to_pylist() == expected
    rows = [{"team_id": 2, "at": "1970-01-01 00:00:21"}, {"team_id": 1, "at": "1970-01-01 00:00:21"}]
    assert ask(["average_attendance"], groups, rows).to_arrow()["average_attendance"].to_pylist() == expected
