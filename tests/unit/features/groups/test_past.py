"""The past of a group: reading it, what changed, forgetting, and files that are put together or deleted."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike import features, project
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.features.delta.log import Log

DAY = datetime(2026, 5, 1, tzinfo=UTC)


def rows(*given: tuple[int, float | None], day: datetime = DAY) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([one for one, _ in given], pa.int64()),
            "at": pa.array([day] * len(given), pa.timestamp("us", "UTC")),
            "x": pa.array([x for _, x in given], pa.float64()),
        }
    )


def content(table: pa.Table) -> dict[int, Any]:
    return {row["id"]: row["x"] for row in table.to_pylist()}


@pytest.fixture
def group() -> features.Group:
    made = features.create_group("things", key="id", event_time="at")
    made.insert(rows((1, 1.0), (2, 2.0)), message="first")
    made.insert(rows((2, 2.5), (3, 3.0)))
    return made


def files_of(group: features.Group) -> set[str]:
    return {path.name for path in Path(group.url).glob("*.parquet")}


def test_the_past_is_read_by_commit_and_by_time(group: features.Group) -> None:
    first, second = reversed(group.history())
    assert content(group.read(as_of=0)) == {1: 1.0, 2: 2.0}
    assert content(group.read(as_of=first.time)) == {1: 1.0, 2: 2.0}
    assert content(group.read(as_of=(second.time - timedelta(milliseconds=1)).isoformat())) == {1: 1.0, 2: 2.0}
    assert content(group.read(as_of=second.time)) == {1: 1.0, 2: 2.5, 3: 3.0}
    assert content(group.read(as_of=datetime.now(UTC).date() + timedelta(days=1))) == {1: 1.0, 2: 2.5, 3: 3.0}
    with pytest.raises(NotFoundError, match="has no commit 2; it has 0 to 1"):
        group.read(as_of=2)
    with pytest.raises(NotFoundError, match=r"had no rows at 2020-01-01.*its first commit was at"):
        group.read(as_of="2020-01-01")
    with pytest.raises(InvalidInputError, match="as_of must be the number of a commit or a time"):
        group.read(as_of="yesterday")
    with pytest.raises(InvalidInputError, match="there is no column 'y'"):
        group.read(columns=["y"])


def test_commits_say_who_when_and_what(group: features.Group) -> None:
    newest, oldest = group.history()
    assert (oldest.number, oldest.operation, oldest.message, oldest.inserted, oldest.source) == (
        0,
        "insert",
        "first",
        2,
        "arrow",
    )
    assert (newest.inserted, newest.updated) == (1, 1)
    assert newest.user
    assert newest.host
    assert abs(newest.at - time.time()) < 600
    assert newest.at > oldest.at
    assert set(newest.as_json()) >= {"number", "operation", "at", "user", "inserted", "updated", "deleted", "rows"}


def test_what_changed_is_told(group: features.Group) -> None:
    group.delete(1)
    group.insert(rows((4, 4.0)))
    group.compact()
    changed = group.changes(0)
    assert sorted((row["id"], row["x"], row["_change"]) for row in changed.to_pylist()) == [
        (1, 1.0, "delete"),
        (2, 2.5, "update"),
        (3, 3.0, "insert"),
        (4, 4.0, "insert"),
    ]
    assert sorted(row["_change"] for row in group.changes(0, 1).to_pylist()) == ["insert", "update"]
    assert (group.history()[0].operation, group.commit) == ("compact", 4)
    assert group.changes(3).num_rows == 0, "putting files together changes no row"
    assert group.changes(4).num_rows == 0
    with pytest.raises(InvalidInputError, match=r"since \(1\) must not be later than until \(0\)"):
        group.changes(1, 0)


def test_a_row_that_says_nothing_new_keeps_the_time_it_was_written(group: features.Group) -> None:
    before = {row["id"]: row["_written_at"] for row in group.dataset().to_table().to_pylist()}
    again = group.insert(rows((1, 1.0), (3, 4.0)))
    after = {row["id"]: row["_written_at"] for row in group.dataset().to_table().to_pylist()}
    assert (again.unchanged, again.updated) == (1, 1)
    assert after[1] == before[1]
    assert after[3] > before[3]


def test_what_was_deleted_is_really_gone_after_vacuum(group: features.Group) -> None:
    names = features.create_group("people", key="name", event_time="at", expectations=[features.between("age", 0, 99)])
    people = {"name": ["anna", "berta"], "at": [DAY] * 2, "age": [7, 8]}
    names.insert(people)
    names.insert({"name": ["anna"], "at": [DAY + timedelta(days=1)], "age": [500]}, bad_rows="quarantine")
    commit = names.delete(["anna"], message="asked to be forgotten")
    assert (commit.deleted, names.read().column("name").to_pylist()) == (1, ["berta"])
    assert names.quarantined().num_rows == 0
    assert names.read(as_of=0).num_rows == 2, "the past is still there"
    assert names.vacuum() == 0, "and stays for a week"
    assert names.read(as_of=0).num_rows == 2
    assert names.vacuum(older_than=0) == 1
    folder = project.current().root / "features"
    left = [path for path in folder.rglob("*") if path.is_file() and b"anna" in path.read_bytes()]
    assert left == []
    assert names.statistics()["name"].common == {"berta": 1}
    with pytest.raises(NotFoundError, match=r"Commit 0 .* vacuum has deleted its files. The oldest that can is"):
        names.read(as_of=0)
    assert [one.operation for one in names.history()] == ["vacuum", "vacuum", "delete", "insert", "insert"]
    assert names.insert(people).inserted == 1


def test_keys_that_are_not_there_delete_nothing(group: features.Group) -> None:
    assert (group.delete([7, 8]).deleted, group.commit) == (0, 1)
    with pytest.raises(InvalidInputError, match="The key 'id' is int64, and string was given"):
        group.delete("anna")
    with pytest.raises(InvalidInputError, match="lack 'id'"):
        group.delete({"name": ["anna"]})
    pairs = features.create_group("pairs", key=["a", "b"])
    pairs.insert({"a": [1, 1], "b": ["x", "y"], "v": [1, 2]})
    with pytest.raises(InvalidInputError, match="has the columns a, b; give dicts"):
        pairs.delete([1])
    assert pairs.delete({"a": 1, "b": "x"}).deleted == 1
    assert pairs.read().column("b").to_pylist() == ["y"]


def test_files_are_put_together_and_leftovers_deleted(group: features.Group) -> None:
    for number in range(10, 30):
        group.insert(rows((number, 1.0)))
    before = content(group.read())
    group.compact()
    assert content(group.read()) == content(features.group("things").read()) == before
    assert len(group.dataset().files) == 1
    assert group.read().column("id").to_pylist() == sorted(before)
    group.compact()
    assert group.history()[0].operation == "compact"
    assert len(group.history()) == 23, "one file needs no commit"
    fresh, stale = Path(group.url) / f"part-{int(time.time() * 1000):012x}-{'0' * 16}.parquet", Path(group.url)
    stale = stale / f"part-{int((time.time() - 7200) * 1000):012x}-{'0' * 16}.parquet"
    fresh.write_bytes(b"being written")
    stale.write_bytes(b"left by a process that was killed")
    group.vacuum(older_than=0)
    assert files_of(group) == {Path(group.dataset().files[0]).name, fresh.name}
    assert deltalake.DeltaTable(group.url).to_pyarrow_table().num_rows == len(before)


def test_a_file_that_is_missing_is_named(group: features.Group) -> None:
    missing = sorted(files_of(group))[0]
    (Path(group.url) / missing).unlink()
    with pytest.raises(FileNotFoundError, match=missing):
        features.group("things").read(as_of=0)


def test_logs_of_strangers_lead_nowhere_else(group: features.Group, tmp_path: Path) -> None:
    log = Path(group.url) / "_delta_log" / f"{2:020d}.json"
    for line, words in (
        (
            '{"add":{"path":"../../secret.parquet","size":1,"modificationTime":1,"dataChange":true}}',
            "does not lie in the table",
        ),
        ('{"add":{"path":"%2e%2e/secret.parquet","size":1,"modificationTime":1}}', "does not lie in the table"),
        ('{"protocol":{"minReaderVersion":3,"minWriterVersion":7}}', "needs version 3 of Delta's reading protocol"),
        ('{"add":{"path":7}}', "is no commit of a Delta table"),
        ("no json", "is no commit of a Delta table"),
    ):
        log.write_text(line)
        with pytest.raises(OSError, match=words):
            features.group("things").read()


def test_rows_that_another_program_adds_are_read(group: features.Group) -> None:
    table = rows((9, 9.0)).append_column("_written_at", pa.array([DAY], pa.timestamp("us", "UTC")))
    deltalake.write_deltalake(group.url, table, mode="append")
    assert content(group.read())[9] == 9.0
    assert group.history()[0].operation == "write"
    assert group.statistics()["x"].count == 4
    assert group.insert(rows((9, 10.0))).updated == 1


_VALUES = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, 2)),
    st.one_of(st.none(), st.sampled_from([0.0, 1.0, float("inf")])),
    max_size=5,
)
_STEPS = st.lists(st.one_of(_VALUES, st.sets(st.integers(0, 6), max_size=3), st.just("compact")), max_size=8)


@settings(max_examples=25)
@given(_STEPS)
def test_any_history_is_as_a_plain_dict_would_be(steps: list[Any]) -> None:
    group = features.create_group(
        f"random_{time.time_ns()}", key="id", event_time="at", schema={"id": "int64", "x": "double"}
    )
    truth: dict[tuple[int, datetime], float | None] = {}
    past: list[dict[tuple[int, datetime], float | None]] = []
    for step in steps:
        before = group.commit
        if step == "compact":
            group.compact()
        elif isinstance(step, set):
            group.delete(sorted(step)) if step else None
            truth = {key: value for key, value in truth.items() if key[0] not in step}
        elif step:
            keys = [(one, DAY + timedelta(hours=hour)) for one, hour in step]
            group.insert(
                {
                    "id": [key[0] for key in keys],
                    "at": [key[1] for key in keys],
                    "x": pa.array(list(step.values()), pa.float64()),
                }
            )
            truth = {**truth, **dict(zip(keys, step.values(), strict=True))}
        if group.commit > before:
            past.append(truth)
    for number, expected in enumerate(past):
        found = group.read(as_of=number).to_pylist()
        assert {(row["id"], row["at"]): row["x"] for row in found} == expected
        assert len(found) == len(expected)
        assert group.statistics(as_of=number).rows == len(expected)
    if past:
        first = past[0]
        kinds = {(row["id"], row["at"]): row["_change"] for row in group.changes(0).to_pylist()}
        assert {key for key, kind in kinds.items() if kind == "delete"} == first.keys() - truth.keys()
        assert {key for key, kind in kinds.items() if kind == "insert"} == truth.keys() - first.keys()
        assert {key for key in truth.keys() & first.keys() if truth[key] != first[key]} <= kinds.keys()


def test_a_log_without_its_checkpoint_hint_is_read_just_the_same(group: features.Group) -> None:
    for number in range(30):
        group.insert(rows((number + 10, 0.0)))
    hint = Path(group.url) / "_delta_log" / "_last_checkpoint"
    for damage in (b"nonsense", b'{"version":99}', b'{"version":25,"parts":3}'):
        hint.write_bytes(damage)
        assert features.group("things").num_rows == 33
    hint.unlink()
    assert Log(group.log.storage, "features/things/v1").newest().rows == 33
