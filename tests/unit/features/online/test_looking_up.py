"""Look-ups give the newest row of each key, and say why a value is absent."""

from __future__ import annotations

import datetime
import os
import threading
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.features.definition import WRITTEN_AT, Definition
from cargobike.features.online.lookup import GroupLookup
from cargobike.features.online.materializing import materialize
from cargobike.features.online.vectors import Vectors
from cargobike.features.online.verifying import verify
from support.histories import moments
from support.memory_groups import MemoryGroup
from support.online_stores import KINDS, MakeStore, make_stores


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    return make_stores(request.param, tmp_path, request)


class FileGroup:
    """A group whose commits are sets of Parquet files."""

    table_id = "t"

    def __init__(self, folder: Path, definition: Definition) -> None:
        self.definition = definition
        self.name = definition.name
        self.folder = folder
        self.commits: list[list[str]] = []

    @property
    def commit(self) -> int:
        return len(self.commits) - 1

    def dataset(self, commit: int | None = None) -> ds.Dataset:
        return ds.dataset(self.commits[-1 if commit is None else commit], format="parquet")

    def add(self, table: pa.Table, *, without: tuple[str, ...] = ()) -> str:
        path = str(self.folder / f"{len(self.commits)}.parquet")
        pq.write_table(table, path)
        before = self.commits[-1] if self.commits else []
        self.commits.append([each for each in before if each not in without] + [path])
        return path


def teams(keys: list[Any], at: list[int | None], budget: list[float | None]) -> pa.Table:
    return pa.table(
        {
            "team_id": pa.array(keys),
            "at": moments(at),
            "budget": pa.array(budget, pa.float32()),
            WRITTEN_AT: moments(at),
        }
    )


DEFINITION = Definition(name="teams", key=("team_id",), event_time="at", features={"budget": "float"})


def find(lookup: GroupLookup, *key: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
    values: dict[str, Any] = {}
    return values, lookup.find(key, values)


def find_all(lookup: GroupLookup, *keys: Any) -> Vectors:
    columns: dict[str, Any] = {}
    absent: dict[str, Any] = {}
    lookup.find_all([(key,) for key in keys], columns, absent)
    return Vectors(columns, absent, len(keys))


def test_the_newest_row_of_a_key_is_found(store: MakeStore) -> None:
    group = MemoryGroup(DEFINITION, teams([1, 2, 1, 3], [5, 5, 9, 7], [1.0, None, 3.0, 4.0]))

    assert materialize(group, store("teams"))[:3] == (0, 3, 0)
    lookup = GroupLookup(DEFINITION, store("teams"), {"money": "budget"})
    assert find(lookup, 1) == ({"money": 3.0}, None)
    assert find(lookup, np.int64(1)) == ({"money": 3.0}, None)
    assert find(lookup, 2) == ({"money": None}, {"money": "null"})
    assert find(lookup, 9) == ({"money": None}, {"money": "missing"})
    found = find_all(lookup, 1, 2, 9, 3, 1)
    assert [vector["money"] for vector in found] == [3.0, None, None, 4.0, 3.0]
    assert [vector.states["money"] for vector in found] == ["present", "null", "missing", "present", "present"]
    assert np.array_equal(found.to_numpy()[:, 0], [3.0, np.nan, np.nan, 4.0, 3.0], equal_nan=True)
    assert found.columns["money"].mask.tolist() == [False, True, True, False, False]
    lookup.close()


def test_a_row_is_expired_when_it_is_older_than_its_time_to_live(store: MakeStore) -> None:
    definition = msgspec.structs.replace(DEFINITION, ttl_s=10.0)
    materialize(MemoryGroup(definition, teams([1, 2], [100, 105], [1.0, 2.0])), store("teams"))

    lookup = GroupLookup(definition, store("teams"), {"budget": "budget"}, now_s=lambda: 112.0)
    assert find(lookup, 1) == ({"budget": None}, {"budget": "expired"})
    assert find(lookup, 2) == ({"budget": 2.0}, None)
    assert [vector.states["budget"] for vector in find_all(lookup, 1, 2, 3)] == ["expired", "present", "missing"]
    at_the_end = GroupLookup(definition, store("teams"), {"budget": "budget"}, now_s=lambda: 110.0)
    assert find(at_the_end, 1) == ({"budget": 1.0}, None)


def test_every_type_comes_back(store: MakeStore) -> None:
    day = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)
    columns: dict[str, Any] = {
        "whole": pa.array([7, None], pa.int16()),
        "yes": pa.array([True, None]),
        "word": pa.array(["Zürich", None]),
        "moment": pa.array([day, None], pa.timestamp("ms", tz="UTC")),
        "list": pa.array([[1.0, 2.0], None]),
        "raw": pa.array([b"\0\0", None]),
    }
    table = pa.table({"name": ["a", "b"], "league": [1, 1], **columns, WRITTEN_AT: moments([1, 1])})
    features = {name: str(values.type) for name, values in columns.items()}
    definition = Definition(name="mixed", key=("name", "league"), features=features)
    group = MemoryGroup(definition, table)

    materialize(group, store("teams"))
    lookup = GroupLookup(definition, store("teams"), {name: name for name in columns})
    expected = {"whole": 7, "yes": True, "word": "Zürich", "moment": day, "list": [1.0, 2.0], "raw": b"\0\0"}
    assert find(lookup, "a", 1) == (expected, None)
    assert find(lookup, "b", 1) == (dict.fromkeys(columns), dict.fromkeys(columns, "null"))
    assert find(lookup, "b", 2)[1] == dict.fromkeys(columns, "missing")
    many: dict[str, Any] = {}
    absent: dict[str, Any] = {}
    lookup.find_all([("a", 1), ("c", 1)], many, absent)
    assert dict(Vectors(many, absent, 2)[0]) == expected
    assert verify(group, store("teams")).is_equal


def test_more_than_64_features(store: MakeStore) -> None:
    names = [f"f{number}" for number in range(130)]
    values = {name: pa.array([float(number), None], pa.float64()) for number, name in enumerate(names)}
    table = pa.table({"key": ["a", "b"], **values, WRITTEN_AT: moments([1, 1])})
    definition = Definition(name="wide", key=("key",), features=dict.fromkeys(names, "double"))

    materialize(MemoryGroup(definition, table), store("teams"))
    lookup = GroupLookup(definition, store("teams"), {name: name for name in ("f0", "f64", "f129")})
    assert find(lookup, "a") == ({"f0": 0.0, "f64": 64.0, "f129": 129.0}, None)
    assert find(lookup, "b")[1] == {"f0": "null", "f64": "null", "f129": "null"}
    assert find_all(lookup, "b", "a")[1] == {"f0": 0.0, "f64": 64.0, "f129": 129.0}


def test_only_what_changed_is_materialized(store: MakeStore, tmp_path: Path) -> None:
    group = FileGroup(tmp_path, DEFINITION)
    first = group.add(teams([1, 2, 3], [5, 5, 5], [1.0, 2.0, 3.0]))
    assert materialize(group, store("teams")) == (0, 3, 0, True)
    lookup = GroupLookup(DEFINITION, store("teams"), {"budget": "budget"})

    group.add(teams([1, 2, 4], [9, 1, 1], [10.0, 20.0, 40.0]))  # a later row, one that came late, a new key
    assert materialize(group, store("teams")) == (1, 3, 0, False)
    assert [vector["budget"] for vector in find_all(lookup, 1, 2, 3, 4)] == [10.0, 2.0, 3.0, 40.0]
    assert materialize(group, store("teams")) == (1, 0, 0, False)

    group.add(teams([1, 2], [5, 5], [1.0, 2.5]), without=(first,))  # a changed row, a deleted key
    assert materialize(group, store("teams"))[1:] == (2, 1, False)
    assert [vector["budget"] for vector in find_all(lookup, 1, 2, 3, 4)] == [10.0, 2.5, None, 40.0]
    assert verify(group, store("teams")).is_equal


def test_all_is_materialized_when_earlier_files_are_gone(store: MakeStore, tmp_path: Path) -> None:
    group = FileGroup(tmp_path, DEFINITION)
    first = group.add(teams([1, 2], [5, 5], [1.0, 2.0]))
    materialize(group, store("teams"))
    group.add(teams([2], [6], [3.0]), without=(first,))
    Path(first).unlink()
    group.commits[0] = []

    materialize(group, store("teams"))
    lookup = GroupLookup(DEFINITION, store("teams"), {"budget": "budget"})
    assert find(lookup, 2) == ({"budget": 3.0}, None)


def test_rows_that_become_true_later_are_found_then(store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    group = MemoryGroup(DEFINITION, teams([1, 1], [100, 200], [1.0, 2.0]))
    clock = 150
    monkeypatch.setattr("cargobike.features.online.materializing.time.time_ns", lambda: clock * 10**9)
    materialize(group, store("teams"))
    lookup = GroupLookup(DEFINITION, store("teams"), {"budget": "budget"})

    assert find(lookup, 1) == ({"budget": 1.0}, None)
    assert verify(group, store("teams")).is_equal
    clock = 250
    materialize(group, store("teams"))
    assert find(lookup, 1) == ({"budget": 2.0}, None)


def test_look_ups_go_on_when_a_group_gets_a_new_feature(store: MakeStore) -> None:
    group = MemoryGroup(DEFINITION, teams([1], [5], [1.0]))
    materialize(group, store("teams"))
    lookup = GroupLookup(DEFINITION, store("teams"), {"budget": "budget"})
    assert find(lookup, 1) == ({"budget": 1.0}, None)

    wider = msgspec.structs.replace(DEFINITION, features={"city": "string", "budget": "float"})
    group.definition = wider
    group.commits.append(teams([1], [6], [2.0]).add_column(2, "city", [["Rome"]]))
    with pytest.raises(StoreError, match="city of the group teams cannot be looked up yet"):
        GroupLookup(wider, store("teams"), {"city": "city"})
    materialize(group, store("teams"))

    assert find(lookup, 1) == ({"budget": 2.0}, None)
    assert find_all(lookup, 1)[0] == {"budget": 2.0}
    assert find(GroupLookup(wider, store("teams"), {"city": "city"}), 1) == ({"city": "Rome"}, None)


def test_look_ups_work_while_a_change_is_written_and_after_one_that_failed(store: MakeStore) -> None:
    group = MemoryGroup(DEFINITION, teams([1], [5], [1.0]))
    materialize(group, store("teams"))
    lookup = GroupLookup(DEFINITION, store("teams"), {"budget": "budget"})

    def break_off() -> None:
        with store("teams").writing(("int64",)) as writer:
            writer.clear()
            writer.put([2], [5], [b"x"])
            assert find(lookup, 1) == ({"budget": 1.0}, None)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert find(lookup, 1) == ({"budget": 1.0}, None)


def test_several_threads_look_up(store: MakeStore) -> None:
    keys = list(range(50))
    materialize(MemoryGroup(DEFINITION, teams(keys, [5] * 50, [float(key) for key in keys])), store("teams"))
    lookup = GroupLookup(DEFINITION, store("teams"), {"budget": "budget"})
    found: list[list[float]] = []

    def look() -> None:
        found.append([find(lookup, key)[0]["budget"] for key in keys])
        lookup.close()

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [[float(key) for key in keys]] * 4


def test_a_forked_process_opens_the_file_anew(store: MakeStore) -> None:
    materialize(MemoryGroup(DEFINITION, teams([1], [5], [1.0])), store("teams"))
    lookup = GroupLookup(DEFINITION, store("teams"), {"budget": "budget"})
    mine = lookup._reader()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if not child:
        is_right = find(lookup, 1) == ({"budget": 1.0}, None) and lookup._reader() is not mine
        os._exit(0 if is_right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lookup._reader() is mine


def test_verifying_finds_what_differs(store: MakeStore) -> None:
    group = MemoryGroup(DEFINITION, teams([1, 2, 3], [5, 5, 5], [1.0, 2.0, 3.0]))
    materialize(group, store("teams"))
    reader = store("teams").reader()
    state, row = reader.state(), reader.get(2)
    reader.close()
    assert state is not None
    assert row is not None
    with store("teams").writing(("int64",)) as writer:
        writer.put([1, 99], [5, 5], [row, row])
        writer.remove([3])
        writer.finish(state)

    found = verify(group, store("teams"))
    assert (found.checked, found.missing, found.extra, found.differing) == (3, 1, 1, 1)
    assert found.examples == ("3 is not found", "1 differs in budget")
    assert not found.is_equal
    assert verify(group, store("teams"), sample=2).checked == 2


def test_mistakes_are_explained(store: MakeStore) -> None:
    with pytest.raises(StoreError, match="was never materialized"):
        GroupLookup(DEFINITION, store("teams"), {"budget": "budget"})
    materialize(MemoryGroup(DEFINITION, teams([1], [5], [1.0])), store("teams"))
    lookup = GroupLookup(DEFINITION, store("teams"), {"budget": "budget"})
    assert find(lookup, 2**70)[1] == {"budget": "missing"}
    assert [vector.states["budget"] for vector in find_all(lookup, 2**70, 1)] == ["missing", "present"]
    with pytest.raises(InvalidInputError, match="team_id='one' was given; it is a whole number"):
        find(lookup, "one")
    words = msgspec.structs.replace(DEFINITION, name="words")
    materialize(MemoryGroup(words, teams(["a", ""], [5, 5], [1.0, 2.0])), store("words"))
    by_word = GroupLookup(words, store("words"), {"budget": "budget"})
    with pytest.raises(InvalidInputError, match="team_id=1 was given; it is text"):
        find(by_word, 1)
    half = "\ud800"  # of a character, as JSON can bring it
    assert [vector.states["budget"] for vector in find_all(by_word, half, "", "a")] == ["missing", "present", "present"]
    assert find(by_word, half)[1] == {"budget": "missing"}


def test_rows_of_a_group_that_had_the_same_name_before_are_none_of_it(store: MakeStore, tmp_path: Path) -> None:
    group = FileGroup(tmp_path, DEFINITION)
    group.add(teams([1, 2], [5, 5], [1.0, 2.0]))
    group.add(teams([3], [5], [3.0]))
    materialize(group, store("teams"))
    lookup = GroupLookup(DEFINITION, store("teams"), {"budget": "budget"}, table_id="t")

    anew = FileGroup(tmp_path / "anew", DEFINITION)
    anew.folder.mkdir()
    anew.table_id = "another"
    with pytest.raises(StoreError, match="never materialized"):
        GroupLookup(DEFINITION, store("teams"), {"budget": "budget"}, table_id="another")
    anew.add(teams([1], [5], [7.0]))
    assert materialize(anew, store("teams")) == (0, 1, 0, True)
    assert [
        vector["budget"] for vector in find_all(GroupLookup(DEFINITION, store("teams"), {"budget": "budget"}), 1, 2)
    ] == [7.0, None]
    with pytest.raises(StoreError, match="never materialized"):
        find(lookup, 1)
