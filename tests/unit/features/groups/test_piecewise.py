"""Rows that come piece by piece are inserted as if they had come together, and are one commit."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from cargobike import features, project
from cargobike.core.errors import InvalidInputError
from cargobike.features.delta.log import Log

PIECE = 7


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cargobike.features.groups.group.MOST_ROWS", PIECE)


def teams(keys: list[Any], days: list[int], budget: list[Any]) -> pa.Table:
    times = pa.array([day * 86_400_000_000 for day in days], pa.timestamp("us", tz="UTC"))
    return pa.table({"team_id": keys, "at": times, "budget": pa.array(budget, pa.float64())})


def as_path(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "rows.parquet", row_group_size=5)
    return folder / "rows.parquet"


def as_reader(table: pa.Table, folder: Path) -> pa.RecordBatchReader:
    return table.to_reader(max_chunksize=4)


def as_dataset(table: pa.Table, folder: Path) -> ds.Dataset:
    return ds.dataset(table)


def as_query(table: pa.Table, folder: Path) -> str:
    return f"SELECT * FROM '{as_path(table, folder)}'"


def as_csv(table: pa.Table, folder: Path) -> Path:
    pa.csv.write_csv(table, folder / "rows.csv")
    return folder / "rows.csv"


def rows_of(group: features.Group) -> list[tuple[Any, ...]]:
    table = group.read().to_pylist()
    return sorted((row["team_id"], row["at"], -1.0 if row["budget"] is None else row["budget"]) for row in table)


def files_of(group: features.Group) -> set[str]:
    return {path.name for path in Path(group.url).glob("*.parquet")}


@pytest.mark.parametrize("given", [as_path, as_reader, as_dataset, as_query, as_csv])
@pytest.mark.parametrize("seed", range(3))
def test_pieces_do_what_one_table_does(given: Callable[[pa.Table, Path], Any], seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    groups = [features.create_group(name, key="team_id", event_time="at") for name in ("pieces", "together")]
    for _ in range(4):
        places = draw.sample([(key, day) for key in range(8) for day in range(6)], draw.choice([7, 15, 30]))
        budget = [draw.choice([None, 1.0, 2.0]) for _ in places]
        table = teams([key for key, _ in places], [day for _, day in places], budget)
        commits = [groups[0].insert(given(table, tmp_path)), groups[1].insert(table)]
        counts = [(one.number, one.inserted, one.updated, one.unchanged) for one in commits]
        assert counts[0] == counts[1]
        assert rows_of(groups[0]) == rows_of(groups[1])
        mine, theirs = (group.statistics()["budget"] for group in groups)
        assert (mine.count, mine.nulls) == (theirs.count, theirs.nulls)
        assert mine.mean == pytest.approx(theirs.mean)
    named = {name for commit in groups[0].history() for name in commit.files}
    assert {one.path for one in groups[0].log.newest().files.values()} <= files_of(groups[0])
    assert named, "commits name their files"
    groups[0].vacuum(older_than=0)
    assert files_of(groups[0]) == {one.path for one in groups[0].log.newest().files.values()}


def test_keys_that_occur_in_several_pieces_are_found(tmp_path: Path) -> None:
    group = features.create_group("teams", key="team_id", event_time="at")
    keys = [*range(20), 3, 19, 4]
    differing = teams(keys, [1] * 23, [*map(float, range(20)), 30.0, 190.0, 4.0])
    with pytest.raises(
        InvalidInputError, match=r"(?s)differ, and one of each can be kept; nothing was written.*team_id=3"
    ):
        group.insert(as_path(differing, tmp_path))
    assert (group.commit, files_of(group)) == (-1, set())
    assert group.definition.features == {}, "nothing was learned from rows that were refused"

    assert group.insert(as_path(differing, tmp_path), duplicates="first").inserted == 20
    assert {row[0]: row[2] for row in rows_of(group)}[3] == 3.0
    last = group.insert(as_path(differing, tmp_path), duplicates="last")
    assert (last.inserted, last.updated, last.unchanged) == (0, 2, 18)
    assert {row[0]: row[2] for row in rows_of(group)}[3] == 30.0
    same = pa.concat_tables([teams([*range(20)], [2] * 20, [1.0] * 20)] * 2)
    assert group.insert(as_path(same, tmp_path)).inserted == 20, "equal rows count once"


def test_bad_rows_in_a_later_piece_refuse_all_or_are_put_aside(tmp_path: Path) -> None:
    group = features.create_group("teams", key="team_id", event_time="at", expectations=[features.between("budget", 0)])
    rows = teams([*range(18), None, 19], [1] * 20, [1.0] * 9 + [-5.0] + [1.0] * 10)
    with pytest.raises(InvalidInputError, match=r"(?s)none was inserted.*row 9 \(team_id=9"):
        group.insert(as_path(rows, tmp_path))
    assert (group.commit, files_of(group)) == (-1, set())

    commit = group.insert(as_path(rows, tmp_path), bad_rows="quarantine")
    assert (commit.number, commit.inserted, commit.quarantined) == (0, 18, 2)
    aside = group.quarantined().to_pylist()
    assert [(row["team_id"], "null" in row["_reason"]) for row in aside] == [(9, False), (None, True)]


def test_what_is_about_all_rows_is_checked_on_all_of_them(tmp_path: Path) -> None:
    group = features.create_group("teams", key="team_id", event_time="at")
    rows = teams([*range(20)], [1] * 20, [*map(float, range(19)), 3.0])
    with pytest.raises(InvalidInputError, match="unique"):
        group.insert(as_path(rows, tmp_path), expectations=[features.unique("budget")])
    seen: list[int] = []

    def look(table: pa.Table) -> bool:
        seen.append(table.num_rows)
        return True

    group.insert(as_path(rows, tmp_path), expectations=[look])
    assert seen == [20]


def test_what_cannot_be_read_to_its_end_leaves_nothing(tmp_path: Path) -> None:
    group = features.create_group("teams", key="team_id", event_time="at")

    def breaking() -> Any:
        yield from teams([*range(20)], [1] * 20, [1.0] * 20).to_batches(max_chunksize=4)
        raise pa.ArrowInvalid("the line was cut")

    schema = teams([1], [1], [1.0]).schema
    with pytest.raises(InvalidInputError, match="cannot be read: the line was cut"):
        group.insert(pa.RecordBatchReader.from_batches(schema, breaking()))
    assert (group.commit, files_of(group)) == (-1, set())


def test_rows_that_take_too_long_are_refused_before_their_files_look_like_leftovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = features.create_group("teams", key="team_id", event_time="at")
    monkeypatch.setattr("cargobike.features.groups.piecewise.LONGEST_S", -1.0)
    with pytest.raises(InvalidInputError, match="took longer than"):
        group.insert(as_path(teams([*range(20)], [1] * 20, [1.0] * 20), tmp_path))
    assert (group.commit, files_of(group)) == (-1, set())


def test_a_commit_of_another_process_in_between_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = features.create_group("teams", key="team_id", event_time="at")
    group.insert(teams([1, 2], [1, 1], [1.0, 2.0]))
    original = Log.commit
    calls: list[int] = []

    def raced(log: Log, *given: Any) -> Any:
        if not calls:
            calls.append(1)
            features.group("teams").insert(teams([3, 4], [1, 1], [3.0, 40.0]))
        return original(log, *given)

    monkeypatch.setattr(Log, "commit", raced)
    commit = group.insert(as_path(teams([*range(20)], [1] * 20, [*map(float, range(20))]), tmp_path))
    assert (commit.number, commit.inserted, commit.updated, commit.unchanged) == (2, 16, 1, 3)
    assert rows_of(group) == sorted(rows_of(group))
    assert [row[2] for row in rows_of(group)] == [*map(float, range(20))]
    group.vacuum(older_than=0)
    assert files_of(group) == {one.path for one in group.log.newest().files.values()}


_KILLED = """
import os, signal, sys
from cargobike import features, project
from cargobike.features.groups import group, piecewise

group.MOST_ROWS = 7
taken = []
take = piecewise._Incoming.take

def take_two(self, table):
    if len(taken) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    taken.append(table)
    take(self, table)

piecewise._Incoming.take = take_two
project.use(sys.argv[1])
features.group("teams").insert(sys.argv[2])
"""


def test_killed_between_two_pieces_it_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project.use(tmp_path / "project")
    try:
        group = features.create_group("teams", key="team_id", event_time="at")
        group.insert(teams([1], [1], [1.0]))
        path = as_path(teams([*range(30)], [1] * 30, [5.0] * 30), tmp_path)
        command = [sys.executable, "-c", _KILLED, str(tmp_path / "project"), str(path)]
        assert subprocess.run(command, timeout=120, check=False).returncode == -signal.SIGKILL

        assert (group.commit, len(rows_of(group)), len(files_of(group))) == (0, 1, 3)
        assert group.insert(path).rows == 30
        monkeypatch.setattr("cargobike.features.groups.upkeep.UNCOMMITTED_S", -1.0)
        group.vacuum(older_than=0)
        assert files_of(group) == {one.path for one in group.log.newest().files.values()}
    finally:
        project.use(None)
