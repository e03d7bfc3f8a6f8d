"""What does not fit a group is refused as a whole, with everything that is wrong, or put aside if that was asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cargobike import features
from cargobike.core.errors import InvalidInputError

DAY = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def teams() -> features.Group:
    group = features.create_group("teams", key="team_id", event_time="at")
    group.insert({"team_id": [1], "at": [DAY], "budget": [10.0], "city": ["Graz"], "size": [3]})
    return group


def row(**changes: Any) -> dict[str, list[Any]]:
    given = {"team_id": 2, "at": DAY, "budget": 1.0, "city": "Bern", "size": 4, **changes}
    return {name: [value] for name, value in given.items() if value is not ...}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"team_id": ...}, r"the column 'team_id' \(of the key\) is missing"),
        ({"at": ...}, r"the column 'at' \(the event time\) is missing"),
        ({"at": ..., "att": DAY}, r"missing. Did you mean 'att'\?"),
        ({"team_id": None}, r"the key 'team_id' is null: row 0"),
        ({"at": None}, r"the event time 'at' is null: row 0 \(team_id=2, at=None\)"),
        ({"at": 17}, r"'at' is int64, and must be a time or a date; say what the numbers count"),
        ({"at": "yesterday"}, r"'at' is timestamp.* in the group and string here: not all texts are times like"),
        ({"at": datetime.now(UTC) + timedelta(days=2)}, r"the event time 'at' lies in the future \(the clock says"),
        ({"budget": "ten"}, r"'budget' is double in the group and string here.*version=2"),
        ({"size": 1.5}, r"'size' is int64 in the group and double here: Float value 1.5\d* was truncated"),
        ({"size": True}, r"'size' is int64 in the group and bool here"),
        ({"city": 7}, r"'city' is string in the group and int64 here"),
        ({"budget": ...}, r"the features 'budget' are missing.*missing_columns=\"null\""),
        ({"coach": "Ann"}, r"the columns 'coach' \(string\) are new.*new_columns=\"add\""),
        ({"budget": ..., "bugdet": 1.0}, r"'bugdet' \(double\) are new.*Did you mean 'budget'\?"),
        ({"_written_at": DAY}, r"the column '_written_at' is set by the group"),
    ],
)
def test_rows_that_do_not_fit_are_refused(teams: features.Group, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=f"(?s){words}"):
        teams.insert(row(**changes))
    assert (teams.commit, teams.num_rows) == (0, 1)
    assert teams.definition.features == features.group("teams").definition.features


def test_all_mistakes_are_told_at_once(teams: features.Group) -> None:
    with pytest.raises(InvalidInputError) as caught:
        teams.insert(row(at=..., budget=..., coach="Ann"))
    assert len(caught.value.mistakes) == 3


def test_values_that_lose_nothing_are_taken(teams: features.Group) -> None:
    ints = pd.DataFrame(
        {"team_id": np.array([7], np.int32), "at": [DAY], "budget": [5], "city": [None], "size": [np.nan]}
    )
    teams.insert(ints)
    teams.insert(row(team_id=8, city=pd.Categorical(["Wien"])[0], size=2.0))
    assert teams.read().filter(pc.field("team_id") > 5).sort_by("budget").select(
        ["budget", "city", "size"]
    ).to_pylist() == [
        {"budget": 1.0, "city": "Wien", "size": 2},
        {"budget": 5.0, "city": None, "size": None},
    ]


def test_frames_of_pandas_in_all_their_types(teams: features.Group) -> None:
    frame = pd.DataFrame(
        {
            "team_id": pd.array([11, 12], dtype="Int32"),
            "at": pd.Series([DAY, pd.NaT], dtype=object),
            "budget": pd.array([1, None], dtype="Float64"),
            "city": pd.Categorical(["Graz", "Bern"]),
            "size": pd.Series([1, None], dtype="int16[pyarrow]"),
        }
    )
    assert teams.insert(frame, bad_rows="quarantine").quarantined == 1
    assert teams.insert(frame.iloc[:1].set_index(["team_id", "at"])).unchanged == 1
    assert teams.quarantined().select(["team_id", "city", "size"]).to_pylist() == [
        {"team_id": 12, "city": "Bern", "size": None}
    ]
    with pytest.raises(InvalidInputError, match="The values of the column 'city' are of several kinds"):
        teams.insert(frame.assign(city=pd.Series([1, "x"], dtype=object)))


def test_a_new_column_is_added_if_asked(teams: features.Group) -> None:
    teams.insert(row(coach="Ann"), new_columns="add")
    teams.insert(row(team_id=3, budget=...), missing_columns="null")  # names neither of the two
    assert {one["team_id"]: (one["budget"], one["coach"]) for one in teams.read().to_pylist()} == {
        1: (10.0, None),
        2: (1.0, "Ann"),
        3: (None, None),
    }
    assert teams.read(as_of=0).column("coach").null_count == 1
    assert features.group("teams").definition.features["coach"] == "string"


def test_a_frame_without_rows_changes_nothing(teams: features.Group) -> None:
    assert teams.insert(teams.read().slice(0, 0)).number == 0
    assert teams.insert(pd.DataFrame()).rows == 0
    other = features.create_group("other", key="id")
    assert other.insert({"id": []}).number == -1
    assert other.read().num_rows == 0
    assert (teams.commit, other.commit) == (0, -1)


def test_duplicates_in_one_insert(teams: features.Group) -> None:
    twice: dict[str, list[Any]] = {
        "team_id": [5, 6, 5, 5],
        "at": [DAY] * 4,
        "budget": [1.0, 2.0, 3.0, 3.0],
        "city": ["a"] * 4,
        "size": [1] * 4,
    }
    with pytest.raises(
        InvalidInputError, match=r'(?s)same team_id and at differ.*duplicates="last".*team_id=5, at=2026'
    ):
        teams.insert(twice)
    assert teams.insert(twice, duplicates="last").inserted == 2
    assert {one["team_id"]: one["budget"] for one in teams.read().to_pylist()} == {1: 10.0, 5: 3.0, 6: 2.0}
    assert teams.insert(twice, duplicates="first").updated == 1
    assert {one["team_id"]: one["budget"] for one in teams.read().to_pylist()} == {1: 10.0, 5: 1.0, 6: 2.0}
    same = {name: [values[1]] * 2 for name, values in twice.items()}
    assert (teams.insert(same).unchanged, teams.num_rows) == (1, 3)


def test_types_that_groups_cannot_hold_are_refused() -> None:
    group = features.create_group("odd", key="id")
    table = pa.table({"id": [1.5], "wait": pa.array([1], pa.duration("s")), "deep": [[[1]]], "void": pa.nulls(1)})
    with pytest.raises(InvalidInputError) as caught:
        group.insert(table)
    told = "\n".join(caught.value.mistakes)
    assert "'id' is double; a key has whole numbers" in told
    assert "'wait' is duration[s]; groups hold" in told
    assert "'deep' is list<" in told
    assert "'void' has nothing but nulls" in told


def test_every_type_comes_back_as_it_was_kept() -> None:
    group = features.create_group("kinds", key=["id", "day"])
    table = pa.table(
        {
            "id": ["a"],
            "day": pa.array([DAY.date()]),
            "u8": pa.array([255], pa.uint8()),
            "half": pa.array([0.5], pa.float32()),
            "flag": [True],
            "blob": [b"\x00\xff"],
            "money": pa.array([123], pa.decimal128(10, 2)),
            "when": pa.array([DAY], pa.timestamp("ns", "Europe/Berlin")),
            "embedding": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)),
            "category": pa.array(["x"]).dictionary_encode(),
        }
    )
    group.insert(table)
    assert group.read().schema.types == [
        pa.string(), pa.date32(), pa.int16(), pa.float32(), pa.bool_(), pa.binary(), pa.decimal128(10, 2),
        pa.timestamp("us", "UTC"), pa.list_(pa.float32()), pa.string(),
    ]  # fmt: skip
    assert group.insert(table).unchanged == 1
    assert group.read().to_pylist()[0]["embedding"] == [1.0, 2.0]


def test_definitions_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInputError) as caught:
        features.create_group("Teams!", key=["a", "a"], event_time="", schema={"x": "complex"}, version=0)
    told = "\n".join(caught.value.mistakes)
    assert all(
        words in told
        for words in ("'Teams!' is no name", "a column twice", "event_time must", "'x' is complex", "version must")
    )
    with pytest.raises(InvalidInputError, match="both a key and the event time"):
        features.create_group("teams", key="at", event_time="at")
    with pytest.raises(
        InvalidInputError, match=r"(?s)cannot be used.*there is no column 'budgte'. Did you mean 'budget'"
    ):
        features.create_group(
            "teams", key="id", schema={"budget": "double"}, expectations=[features.not_null("budgte")]
        )


# -- expectations ----------------------------------------------------------------------------------------------------

EXPECTED = [
    features.not_null("budget"),
    features.between("budget", 0, 100),
    features.one_of("city", ["Bern", "Graz"]),
    features.unique("size"),
]


def checked(**more: Any) -> features.Group:
    return features.create_group("checked", key="team_id", event_time="at", expectations=EXPECTED, **more)


def some() -> dict[str, list[Any]]:
    return {
        "team_id": [1, 2, 3, 4, 5, None],
        "at": [DAY] * 6,
        "budget": [1.0, None, -5.0, 7.0, 100.0, 2.0],
        "city": ["Bern", "Graz", "Bern", "Rome", None, "Bern"],
        "size": [1, 2, 3, 4, 1, 6],
    }


def test_what_breaks_an_expectation_is_refused_as_a_whole() -> None:
    group = checked()
    with pytest.raises(InvalidInputError, match=r'none was inserted.*bad_rows="quarantine"') as caught:
        group.insert(some())
    assert list(caught.value.mistakes) == [
        "the key 'team_id' is null: row 5 (team_id=None, at=2026-05-01 00:00:00+00:00)",
        "not_null('budget'): row 1 (team_id=2, at=2026-05-01 00:00:00+00:00)",
        "between('budget', 0, 100): row 2 (team_id=3, at=2026-05-01 00:00:00+00:00)",
        "one_of('city', ['Bern', 'Graz']): row 3 (team_id=4, at=2026-05-01 00:00:00+00:00)",
        "unique('size'): row 4 (team_id=5, at=2026-05-01 00:00:00+00:00)",
    ]
    assert group.commit == -1


def test_bad_rows_are_put_aside_if_asked() -> None:
    group = checked()
    commit = group.insert(some(), bad_rows="quarantine")
    assert (commit.inserted, commit.quarantined) == (1, 5)
    assert group.read().column("team_id").to_pylist() == [1]
    aside = group.quarantined()
    assert aside.column("team_id").to_pylist() == [2, 3, 4, 5, None]
    assert aside.column("_reason").to_pylist()[2] == "one_of('city', ['Bern', 'Graz'])"
    assert features.group("checked").history()[0].quarantined == 5


def test_functions_and_freshness_are_expected_too() -> None:
    group = features.create_group("own", key="id", event_time="at", expectations=[features.fresh("30d")])
    with pytest.raises(InvalidInputError, match=r"fresh\(2.592e\+06 s\): the newest event time is 2020-01-01"):
        group.insert({"id": [1], "at": [datetime(2020, 1, 1, tzinfo=UTC)], "x": [1]})
    now = datetime.now(UTC)

    def is_even(rows: pa.Table) -> Any:
        return np.array([value % 2 == 0 for value in rows.column("x").to_pylist()])

    good = group.insert({"id": [1, 2], "at": [now] * 2, "x": [1, 2]}, expectations=[is_even], bad_rows="quarantine")
    assert (good.inserted, good.quarantined) == (1, 1)
    with pytest.raises(InvalidInputError, match="<lambda> says no"):
        group.insert({"id": [3], "at": [now], "x": [1]}, expectations=[lambda rows: False], bad_rows="quarantine")
    with pytest.raises(InvalidInputError, match=r"is_odd returned list.*one of them for each of the 1 rows"):
        group.insert({"id": [3], "at": [now], "x": [1]}, expectations=[is_odd])


def is_odd(rows: pa.Table) -> list[int]:
    return [1, 2]


def test_forecasts_may_lie_in_the_future() -> None:
    group = features.create_group("weather", key="place", event_time="at", allow_future=True)
    assert group.insert({"place": ["Bern"], "at": [datetime.now(UTC) + timedelta(days=9)], "rain": [0.5]}).inserted == 1
