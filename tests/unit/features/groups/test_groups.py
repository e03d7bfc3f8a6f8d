"""Groups are defined once, written by key and event time, and read as they are or were."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import deltalake
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cargobike import features
from cargobike.core.errors import InvalidInputError, NotFoundError

DAY = datetime(2026, 5, 1, tzinfo=UTC)


def teams(**changes: Any) -> features.Group:
    return features.create_group("teams", **{"key": "team_id", "event_time": "at", **changes})


def rows(*given: tuple[Any, ...]) -> pa.Table:
    ids, times, budgets = zip(*given, strict=True)
    return pa.table({"team_id": list(ids), "at": pa.array(times, pa.timestamp("us", "UTC")), "budget": list(budgets)})


def content(group: features.Group, **how: Any) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in group.read(**how).to_pylist()}


def test_rows_are_inserted_and_replaced_by_key_and_time() -> None:
    group = teams()
    first = group.insert(rows((1, DAY, 10.0), (2, DAY, 20.0)))
    second = group.insert(rows((2, DAY, 21.0), (2, DAY + timedelta(days=1), 22.0), (1, DAY, 10.0)))
    assert (first.number, first.inserted, first.updated) == (0, 2, 0)
    assert (second.number, second.inserted, second.updated, second.unchanged) == (1, 1, 1, 1)
    assert content(group) == {(1, DAY, 10.0), (2, DAY, 21.0), (2, DAY + timedelta(days=1), 22.0)}
    assert content(features.group("teams"), as_of=0) == {(1, DAY, 10.0), (2, DAY, 20.0)}
    assert group.num_rows == 3


def test_other_programs_read_the_same_rows() -> None:
    group = teams()
    for day in range(60):  # beyond two checkpoints
        group.insert(rows((day % 7, DAY + timedelta(days=day // 7), float(day))))
    theirs = deltalake.DeltaTable(group.url)
    assert theirs.version() == group.commit == 59
    table = pa.table(theirs.to_pyarrow_table()).select(["team_id", "at", "budget"])
    assert {tuple(row.values()) for row in table.to_pylist()} == content(group)
    assert len(content(group)) == 60
    assert content(features.group("teams"), as_of=30) == {
        tuple(row.values())
        for row in deltalake.DeltaTable(group.url, version=30).to_pyarrow_table().drop(["_written_at"]).to_pylist()
    }


@pytest.mark.parametrize(
    "form", ["pandas", "polars", "lazy", "arrow", "batch", "dict", "list", "parquet", "csv", "jsonl", "glob", "query"]
)
def test_rows_come_from_everywhere(form: str, tmp_path: Path) -> None:
    table = rows((1, DAY, 10.0), (2, DAY, 20.0))
    frame = table.to_pandas()
    pq.write_table(table, tmp_path / "some.parquet")
    frame.to_csv(tmp_path / "some.csv", index=False)
    frame.to_json(tmp_path / "some.jsonl", orient="records", lines=True, date_format="iso")
    sources: dict[str, Any] = {
        "pandas": frame.set_index("team_id"),
        "polars": pl.from_arrow(table),
        "lazy": pl.from_arrow(table).lazy(),
        "arrow": table,
        "batch": table.to_batches()[0],
        "dict": table.to_pydict(),
        "list": table.to_pylist(),
        "parquet": tmp_path / "some.parquet",
        "csv": str(tmp_path / "some.csv"),
        "jsonl": tmp_path / "some.jsonl",
        "glob": str(tmp_path / "*.parquet"),
        "query": f"SELECT * FROM '{tmp_path}/some.parquet'",
    }
    group = teams()
    assert group.insert(sources[form]).inserted == 2
    assert content(group) == {(1, DAY, 10.0), (2, DAY, 20.0)}


def test_a_query_may_name_other_groups() -> None:
    teams().insert(rows((1, DAY, 10.0), (2, DAY, 20.0)))
    rich = features.create_group("rich", key="team_id")
    rich.insert("SELECT team_id, max(budget) AS budget FROM teams WHERE budget > 15 GROUP BY team_id")
    assert content(rich) == {(2, 20.0)}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("SELECT * FROM nowhere", "cannot be answered.*nowhere"),
        ("nowhere.parquet", "There is no file at 'nowhere.parquet'"),
        (7, r"int \(7\) was given as rows; give a pandas"),
        ({"team_id": [1, 2], "at": [DAY]}, "cannot be read"),
    ],
)
def test_what_holds_no_rows_is_refused(source: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        teams().insert(source)
    assert teams().commit == -1


def test_times_of_all_zones_become_utc() -> None:
    group = teams()
    east = timezone(timedelta(hours=2))
    mixed = [datetime(2026, 5, 1, 2, tzinfo=east), datetime(2026, 5, 1, 0, tzinfo=UTC)]
    group.insert(pd.DataFrame({"team_id": [1, 2], "at": pd.Series(mixed, dtype=object), "budget": [1.0, 2.0]}))
    group.insert({"team_id": [3], "at": [date(2026, 5, 1)], "budget": [3.0]})
    naive = pd.DataFrame({"team_id": [4], "at": pd.to_datetime(["2026-05-01"]), "budget": [4.0]})
    group.insert(naive)
    tokyo = pd.DataFrame(
        {"team_id": [5], "at": pd.to_datetime(["2026-05-01 09:00"]).tz_localize("Asia/Tokyo"), "budget": [5.0]}
    )
    group.insert(tokyo)
    assert content(group) == {(number, DAY, float(number)) for number in range(1, 6)}
    half = [datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 1)]
    with pytest.raises(InvalidInputError, match=r"Some times have a time zone and others have none"):
        group.insert({"team_id": [1, 2], "at": half, "budget": [1.0, 2.0]})


def test_definitions_are_found_and_not_made_twice() -> None:
    made = teams(description="Clubs", tags=["football"])
    assert teams().definition == made.definition
    with pytest.raises(
        InvalidInputError, match=r"(?s)defined differently. Make a new one \(version=2\).*event_time is 'at'"
    ):
        teams(event_time=None)
    second = teams(event_time=None, version=2)
    assert [group.version for group in features.list_groups()] == [2]
    assert (features.group("teams").version, features.group("teams", 1).version) == (2, 1)
    second.insert({"team_id": [1]})
    assert features.group("teams", 1).commit == -1
    with pytest.raises(NotFoundError, match="Did you mean 'teams'"):
        features.group("team")
    with pytest.raises(NotFoundError, match="has no version 3; it has 1, 2"):
        features.group("teams", 3)


def test_one_bad_definition_hides_no_other_group(caplog: pytest.LogCaptureFixture) -> None:
    teams().insert(rows((1, DAY, 10.0)))
    folder = Path(teams().url).parents[1]
    good = (folder / "teams.v1.1.json").read_bytes()
    (folder / "broken.v1.1.json").write_bytes(b"{")
    (folder / "liar.v1.1.json").write_bytes(good)
    (folder / "teams.v2.1.json").write_bytes(b'{"name": "teams", "key": 7}')
    (folder / "odd.v1.1.json").write_bytes(b'{"name": "odd", "key": ["id"], "features": {"x": "complex"}}')
    (folder / "README.md").write_bytes(b"not ours")
    assert [group.name for group in features.list_groups()] == ["teams"]
    assert features.group("teams").version == 1
    told = "broken.v1.1.json", "describes another group: teams", "teams.v2.1.json", "complex"
    assert all(words in caplog.text for words in told)


def test_a_hundred_groups_are_listed_without_opening_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(100):
        features.create_group(f"group_{number}", key="id", schema={"id": "int64", f"x{number}": "double"})
    monkeypatch.setattr("cargobike.features.delta.log.Log.newest", None)
    assert len(features.list_groups()) == 100
    assert [one.name for one, places in features.search("x77") if places == ["feature x77"]] == ["group_77"]


def test_words_about_a_group_change_and_its_meaning_does_not() -> None:
    group = teams()
    group.update(description="Clubs", tags=["football"], owner="anna")
    other = features.group("teams")
    assert (other.definition.description, other.definition.tags, other.definition.owner) == (
        "Clubs",
        ("football",),
        "anna",
    )
    assert teams().definition.owner == "anna", "defining it again changes nothing"
    group.insert(rows((1, DAY, 10.0)))
    assert group.definition.description == "Clubs"


def test_first_inserts_at_once_agree_on_the_columns() -> None:
    first, second = teams(), teams()
    first.insert(rows((1, DAY, 10.0)))
    with pytest.raises(InvalidInputError, match="'budget' is double in the group and string here"):
        second.insert({"team_id": [2], "at": [DAY], "budget": ["much"]})
    second.insert({"team_id": [2], "at": [DAY], "budget": [3], "city": ["Graz"]}, new_columns="add")
    first.insert({"team_id": [3], "at": [DAY], "budget": [3]}, missing_columns="null")
    assert sorted(first.read().column("city").to_pylist(), key=str) == ["Graz", None, None]
