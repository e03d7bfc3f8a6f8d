"""What every store for look-ups guarantees: SQLite, LMDB, and a real Redis server."""

from __future__ import annotations

import multiprocessing
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cargobike import features, project
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.features.online.packing import Format
from cargobike.features.online.stores.redis import RedisStore
from cargobike.features.online.stores.store import OnlineStore, Overtaken, State
from support import programs
from support.online_stores import KINDS, make_stores
from support.redis_server import RedisServer

NUMBER = ("int64",)


def state(commit: int, key: tuple[str, ...] = NUMBER) -> State:
    return State(commit, 1, Format((("budget", "double"),)), key, 0)


def row(value: float, at: int = 0) -> bytes:
    return struct.pack("<HqQd", 1, at, 0, value)


def write(
    store: OnlineStore, rows: dict[Any, bytes], commit: int = 0, key: tuple[str, ...] = NUMBER, **how: bool
) -> None:
    with store.writing(key) as writer:
        if how.pop("whole", False):
            writer.clear()
        writer.put(
            list(rows), [int.from_bytes(each[2:10], "little") for each in rows.values()], [*rows.values()], **how
        )
        writer.finish(state(commit, key))


def everything(store: OnlineStore, keys: Any) -> dict[Any, bytes]:
    with closing(store.reader()) as reader:
        found = reader.get_all(list(keys))
        assert {key: each for key in keys if (each := reader.get(key)) is not None} == found
        return found


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnlineStore:
    return make_stores(request.param, tmp_path, request)("teams")


def test_rows_are_written_changed_and_removed(store: OnlineStore) -> None:
    rows = {key: row(key) for key in range(-5, 5000)}
    write(store, rows, whole=True)
    assert everything(store, [-5, 0, 4999, 5000, -6]) == {-5: row(-5), 0: row(0), 4999: row(4999)}

    with store.writing(NUMBER) as writer:
        assert writer.state() == state(0)
        writer.put(range(4000, 8000), [0] * 4000, [row(-key) for key in range(4000, 8000)])
        writer.remove([*range(3000), 123456])
        writer.finish(state(1))
    with closing(store.reader()) as reader:
        assert reader.state() == state(1)
        assert reader.count() == 5 + 1000 + 4000
        assert len(reader.get_all([*range(-5, 8000)])) == 5005
        assert (reader.get(-5), reader.get(2999), reader.get(4500)) == (row(-5), None, row(-4500))

    write(store, {7: row(7)}, commit=2, whole=True)
    assert everything(store, range(-5, 8000)) == {7: row(7)}
    write(store, {}, commit=3, whole=True)
    assert everything(store, [7]) == {}


def test_a_row_that_is_older_can_be_left_out(store: OnlineStore) -> None:
    write(store, {1: row(1, at=5), 2: row(2, at=5), 3: row(3, at=5)})
    write(store, {1: row(10, at=4), 2: row(20, at=5), 3: row(30, at=6), 4: row(40, at=1)}, if_newer=True)
    found = everything(store, [1, 2, 3, 4])
    assert found == {1: row(1, at=5), 2: row(20, at=5), 3: row(30, at=6), 4: row(40, at=1)}


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        (("string",), ["", "state", "a", "Zürich", "x" * 400, "x" * 5000, "x" * 4999 + "y", "\0"]),
        (("string", "int64"), [b"\x92\xa1a\x01", b"\x92\xa1a\x02", b"\x92" + b"z" * 900, b"\x92" + b"z" * 901]),
    ],
)
def test_keys_of_every_kind_are_told_apart(store: OnlineStore, key: tuple[str, ...], keys: list[Any]) -> None:
    rows = {each: row(number) for number, each in enumerate(keys)}
    write(store, rows, key=key)
    assert everything(store, keys) == rows
    with closing(store.reader()) as reader:
        assert reader.count() == len(keys)
        assert reader.state() == state(0, key)


def test_a_change_that_breaks_off_leaves_what_was_there(store: OnlineStore) -> None:
    write(store, {1: row(1), 2: row(2)})

    def break_off() -> None:
        with store.writing(NUMBER) as writer:
            writer.clear()
            writer.put([1, 3], [0, 0], [row(10), row(30)])
            writer.remove([2])
            writer.finish(state(1))
            assert everything(store, [1, 2, 3]) == {1: row(1), 2: row(2)}  # not yet
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert everything(store, [1, 2, 3]) == {1: row(1), 2: row(2)}
    write(store, {3: row(3)}, commit=1)
    assert everything(store, [1, 2, 3]) == {1: row(1), 2: row(2), 3: row(3)}


def test_readers_see_whole_changes_only_while_others_write(store: OnlineStore) -> None:
    keys = list(range(300))
    write(store, {key: row(0) for key in keys})
    is_over = threading.Event()
    seen: list[set[bytes]] = []

    def look() -> None:
        with closing(store.reader()) as reader:
            while not is_over.is_set():
                seen.append(set(reader.get_all(keys).values()))

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for commit in range(1, 40):
        write(store, {key: row(commit) for key in keys}, commit, whole=commit % 2 == 0)
    is_over.set()
    for thread in threads:
        thread.join(60)
    assert len(seen) > 10
    assert all(len(values) == 1 for values in seen)


def test_of_two_writers_one_comes_after_the_other(store: OnlineStore) -> None:
    write(store, {0: row(0)})
    counts: list[int] = []

    def count_up(times: int) -> None:
        while times:
            try:
                with store.writing(NUMBER) as writer:
                    before = writer.state()
                    assert before is not None
                    writer.put([before.commit + 1], [0], [row(before.commit + 1)])
                    writer.finish(state(before.commit + 1))
            except Overtaken:
                continue
            times -= 1
            counts.append(before.commit + 1)

    threads = [threading.Thread(target=count_up, args=(15,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(counts) == list(range(1, 46))  # no process wrote over another
    assert len(everything(store, range(100))) == 46


def test_a_forked_process_reads_and_writes_and_the_original_goes_on(store: OnlineStore) -> None:
    write(store, {1: row(1)})
    with closing(store.reader()) as reader:
        assert reader.get(1) == row(1)
        context = multiprocessing.get_context("fork")
        child = context.Process(target=_in_copy, args=(store,))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert reader.get_all([1, 2]) == {1: row(1), 2: row(2)}
    write(store, {3: row(3)}, commit=2)
    assert everything(store, [1, 2, 3]) == {1: row(1), 2: row(2), 3: row(3)}


def _in_copy(store: OnlineStore) -> None:
    assert everything(store, [1, 2]) == {1: row(1)}
    write(store, {2: row(2)}, commit=1)
    assert everything(store, [1, 2]) == {1: row(1), 2: row(2)}


# -- through the door -------------------------------------------------------------------------------------------------


@pytest.fixture(params=KINDS)
def online(request: pytest.FixtureRequest, redis_server: RedisServer, tmp_path: Path) -> Iterator[bool | str]:
    project.use(tmp_path / "project")
    yield redis_server.url if request.param == "redis" else request.param
    project.use(None)


_KILLED = """
import os, signal, sys
from cargobike import features, project
from cargobike.features.online.stores import lmdb, redis, sqlite

def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)

project.use(sys.argv[1])
redis.RedisWriter.commit = die
for module in (lmdb, sqlite):
    module.encode_state = die
features.group("teams").insert({"team_id": [1, 3], "at": ["2026-02-01"] * 2, "budget": [10.0, 30.0]})
"""


def teams_of(online: bool | str) -> features.Group:
    teams = features.create_group("teams", key="team_id", event_time="at", ttl="3650d", online=online)
    teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [1.0, None]})
    return teams


def test_a_group_is_looked_up_verified_and_deleted_from(online: bool | str) -> None:
    teams = teams_of(online)
    view = features.create_view("team_value", features=["budget"])
    assert view.vector(team_id=1) == {"budget": 1.0}
    assert view.vector(team_id=2).states == {"budget": "null"}
    assert view.vector(team_id=3).states == {"budget": "missing"}

    teams.insert({"team_id": [3, 1], "at": ["2026-02-01", "2025-01-01"], "budget": [3.0, 9.0]})
    teams.insert({"team_id": [4], "at": ["2000-01-01"], "budget": [4.0]})
    assert [vector["budget"] for vector in view.vectors([1, 2, 3])] == [1.0, None, 3.0]
    assert view.vector(team_id=4).states == {"budget": "expired"}
    assert teams.materialize() == (2, 0, 0, False)  # each insert has brought its own
    teams.delete(1)
    assert [vector.states["budget"] for vector in view.vectors([1, 3])] == ["missing", "present"]
    checked = teams.verify()
    assert (checked.is_equal, checked.checked) == (True, 3)
    view.close()


def test_a_materialization_that_is_killed_leaves_what_was_there(online: bool | str) -> None:
    teams = teams_of(online)
    view = features.create_view("team_value", features=["budget"])
    done = subprocess.run([sys.executable, "-c", _KILLED, str(project.current().root)], timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL

    assert (teams.commit, teams.num_rows) == (1, 4)  # the rows are there, and not yet looked up
    assert [vector["budget"] for vector in view.vectors([1, 2, 3])] == [1.0, None, None]
    checked = teams.verify()
    assert (checked.is_equal, checked.commit, checked.newest) == (True, 0, 1)
    assert teams.materialize() == (1, 2, 0, False)
    assert [vector["budget"] for vector in view.vectors([1, 2, 3])] == [10.0, None, 30.0]
    view.close()


def test_a_group_that_moves_leaves_nothing_where_it_was(online: bool | str) -> None:
    teams = teams_of(online)
    view = features.create_view("team_value", features=["budget"])
    assert view.vector(team_id=1) == {"budget": 1.0}

    teams.update(online="lmdb" if online != "lmdb" else True)
    assert (teams.verify().checked, features.view("team_value").vector(team_id=1)) == (2, {"budget": 1.0})
    for call in (lambda: view.vector(team_id=1), lambda: view.vectors([1, 2])):
        with pytest.raises(StoreError, match=r"not looked up here any more|has no rows of this group \(any more\)"):
            call()
    view.close()
    assert view.vector(team_id=3).states == {"budget": "missing"}
    view.close()
    teams.update(online=online)
    assert (teams.materialize(), view.vector(team_id=1)) == ((0, 0, 0, False), {"budget": 1.0})
    teams.update(online=False)
    with pytest.raises(StoreError, match=r"never materialized|not looked up here|has no rows"):
        features.view("team_value").vector(team_id=1)
    view.close()


def test_deleting_reaches_look_ups_of_groups_that_are_materialized_by_hand() -> None:
    teams = features.create_group("teams", key="name")
    teams.insert({"name": ["Zanzibar United", "Rome"], "budget": [1.0, 2.0]})
    assert teams.materialize().rows == 2
    teams.delete("Zanzibar United")
    view = features.create_view("team_value", features=["budget"])
    assert view.vector(name="Zanzibar United").states == {"budget": "missing"}
    view.close()
    files = [path for path in (project.current().root / "features/teams/v1/online").iterdir() if path.is_file()]
    assert files
    assert not any(b"Zanzibar" in path.read_bytes() for path in files), "also between the lines"


def test_processes_that_insert_at_once_lose_nothing(online: bool | str) -> None:
    teams_of(online)
    program = (
        "import sys; from cargobike import features, project; project.use(sys.argv[1])\n"
        "for number in range(4):\n"
        "    row = {'team_id': [int(sys.argv[2]) + number], 'at': ['2026-03-01'], 'budget': [1.0]}\n"
        "    features.group('teams').insert(row)"
    )
    root = str(project.current().root)
    running = [subprocess.Popen([sys.executable, "-c", program, root, str(100 * number)]) for number in (1, 2, 3)]
    assert [each.wait(120) for each in running] == [0, 0, 0]
    teams = features.group("teams")
    checked = teams.verify()
    assert (checked.is_equal, checked.checked, checked.commit) == (True, 14, teams.commit)


# -- servers ----------------------------------------------------------------------------------------------------------


def test_groups_projects_and_versions_do_not_meet_on_a_server(redis_server: RedisServer, tmp_path: Path) -> None:
    for number, folder in enumerate(("a", "b"), start=1):
        project.use(tmp_path / folder)
        teams = features.create_group("teams", key="team_id", online=redis_server.url)
        teams.insert({"team_id": [1], "budget": [float(number)]})
        newer = features.create_group("teams", key="team_id", online=redis_server.url, ttl="3d", version=2)
        newer.insert({"team_id": [1], "budget": [10.0 * number]})
    for number, folder in enumerate(("a", "b"), start=1):
        project.use(tmp_path / folder)
        view = features.create_view("newest", features=["budget"])
        assert view.vector(team_id=1) == {"budget": 10.0 * number}
        assert features.group("teams", 1).verify().is_equal
        view.close()
    project.use(None)


def test_a_server_that_was_away_or_lost_its_data_is_told_from_missing_keys(tmp_path: Path) -> None:
    server = RedisServer(programs.require("redis-server"))
    try:
        project.use(tmp_path / "project")
        teams = teams_of(server.url)
        view = features.create_view("team_value", features=["budget"])
        assert view.vector(team_id=1) == {"budget": 1.0}

        server.stop()
        with pytest.raises(StoreError, match=f"The Redis server at {server.url} does not answer"):
            view.vector(team_id=1)
        with pytest.raises(
            StoreError, match=r"Commit 1 .* was made, but look-ups do not see it yet: .*does not answer"
        ):
            teams.insert({"team_id": [5], "at": ["2026-02-01"], "budget": [5.0]})
        server.start()  # empty
        for call in (lambda: view.vector(team_id=1), lambda: view.vectors([1, 2])):
            with pytest.raises(StoreError, match=r"has lost or evicted them\. Call group\.materialize"):
                call()
        assert teams.materialize() == (1, 3, 0, True)
        assert [vector["budget"] for vector in view.vectors([1, 5])] == [1.0, 5.0]
        view.close()
    finally:
        project.use(None)
        server.close()


def test_passwords_come_from_the_environment_and_are_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = RedisServer(programs.require("redis-server"), password="s3cret")
    try:
        project.use(tmp_path / "project")
        teams = features.create_group("teams", key="team_id", online=server.url)
        for password in ("", "wr0ng"):
            monkeypatch.setenv("CARGOBIKE_REDIS_PASSWORD", password)
            with pytest.raises(StoreError, match=r"refused.*") as caught:
                teams.insert({"team_id": [1], "budget": [1.0]})
            assert "wr0ng" not in f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r}"
        monkeypatch.setenv("CARGOBIKE_REDIS_PASSWORD", "s3cret")
        teams.materialize()
        view = features.create_view("team_value", features=["budget"])
        assert view.vector(team_id=1) == {"budget": 1.0}
        view.close()
        files = [path for path in (tmp_path / "project").rglob("*") if path.is_file()]
        assert files
        assert not any(b"s3cret" in path.read_bytes() for path in files)
        assert "s3cret" not in caplog.text
    finally:
        project.use(None)
        server.close()


def test_a_large_change_is_completed_little_by_little_and_renamed(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RedisStore(redis_server.url, "large")
    write(store, {key: row(key) for key in range(5000)})
    monkeypatch.setattr("cargobike.features.online.stores.redis._MERGED", 100)

    def change(commit: int, *, is_overtaken: bool = False) -> None:
        with store.writing(NUMBER) as writer:
            writer.put(range(4900, 5300), [0] * 400, [row(-key) for key in range(4900, 5300)])
            writer.remove(range(50))
            writer.finish(state(commit))
            if is_overtaken:
                write(store, {9999: row(1)}, commit=7)

    change(1)
    with closing(store.reader()) as reader:
        assert (reader.state(), reader.count()) == (state(1), 5300 - 50)
        assert (reader.get(49), reader.get(50), reader.get(4899), reader.get(5299)) == (
            None,
            row(50),
            row(4899),
            row(-5299),
        )
        with pytest.raises(Overtaken):
            change(2, is_overtaken=True)
        assert (reader.state(), reader.get(9999)) == (state(7), row(1))


def test_what_a_killed_writer_collected_expires(redis_server: RedisServer) -> None:
    import redis

    store = RedisStore(redis_server.url, "swept")
    client = redis.Redis.from_url(redis_server.url)
    with store.writing(NUMBER) as writer:
        writer.put([1], [0], [row(1)])
        writer.remove([2])
        collected = client.keys("cargobike:{swept}:*")
        assert len(collected) == 2
        assert all(0 < client.ttl(name) <= 3600 for name in collected)
        writer.finish(state(0))
    assert client.keys("cargobike:{swept}:*") == [b"cargobike:{swept}:rows"]
    assert client.ttl("cargobike:{swept}:rows") == -1  # for ever

    def lose() -> None:
        with store.writing(NUMBER) as writer:
            writer.put([3], [0], [row(3)])
            client.delete(*client.keys("cargobike:{swept}:*staged*"))
            writer.finish(state(1))

    with pytest.raises(StoreError, match="is gone"):
        lose()
    assert everything(store, [1, 3]) == {1: row(1)}
    client.close()


@pytest.mark.parametrize(("library", "given"), [("lmdb", "lmdb"), ("redis", "redis://host")])
def test_a_library_that_is_missing_is_named_before_anything_is_made(
    library: str, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"cargobike.features.online.stores.{library}")
    with pytest.raises(ImportError, match=rf"needs {library}.*pip install 'cargobike\[{library}\]'"):
        features.create_group("teams", key="team_id", online=given)
    assert features.list_groups() == []


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ("redis://user:s3cret@host/0", "has credentials.*CARGOBIKE_REDIS_PASSWORD"),
        ("redis://host?password=s3cret", "has credentials"),
        ("redis://host/first", "'first' is no number of a database"),
        ("redis://", "names no host"),
        ("unix://socket", "write unix:///path/to/socket"),
        ("redis://host:70000", "cannot be read as an address"),
        ("http://host", "begins with http://; there are redis://, rediss://, unix://"),
        ("redis://host?ssl=1", "settings that are not known: ssl"),
        ("redsi", "'redsi' was given. Did you mean 'redis'"),
        (7, r"online must be True .* int \(7\) was given"),
    ],
)
def test_what_cannot_be_a_store_is_refused_without_repeating_secrets(given: Any, match: str) -> None:
    with pytest.raises(InvalidInputError, match=match) as caught:
        features.create_group("teams", key="team_id", online=given)
    assert "s3cret" not in str(caught.value)
