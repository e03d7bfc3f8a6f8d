"""Storage that goes away in the middle: servers are killed, stopped and cut off, writers are killed."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cargobike import experiment
from cargobike.core.errors import StoreError
from cargobike.store.files.access import hdfs_client, s3, s3_clients
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import open_storage
from support.hdfs_server import HdfsServer
from support.kept import free_ports
from support.proxied import Proxy
from support.seaweed_server import SeaweedServer
from support.storage_servers import KILLED_WRITER, S3Endpoint

PATIENCE_S = 120.0


class Writing:
    """A thread that creates and replaces files, one after the other, and knows which it was told of."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.acknowledged = 0
        self.error: Exception | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                number = self.acknowledged
                assert self.storage.create(f"created/{number}", b"%d" % number)
                self.storage.write("head", b"%d" % number * 10_000)
                self.acknowledged += 1
        except Exception as error:
            self.error = error

    def wait_for(self, number: int) -> None:
        give_up_at = time.monotonic() + PATIENCE_S
        while self.acknowledged < number:
            assert self.error is None, self.error
            assert time.monotonic() < give_up_at
            time.sleep(0.02)

    def end(self) -> int:
        """Stop; returns how many files there must be, after a look at all of them."""
        self._over.set()
        self._thread.join(PATIENCE_S)
        assert self.error is None, self.error
        created = {entry.path: self.storage.read(entry.path) for entry in self.storage.list("created")}
        assert created == {f"created/{number}": b"%d" % number for number in range(self.acknowledged)}
        assert self.storage.read("head") == b"%d" % (self.acknowledged - 1) * 10_000
        return self.acknowledged


@pytest.mark.slow
def test_an_s3_server_is_killed_and_comes_back(storage_url: Callable[[str], str], seaweed: SeaweedServer) -> None:
    writing = Writing(open_storage(storage_url("seaweed"), timeout_s=PATIENCE_S))
    writing.wait_for(5)
    seaweed.stop()
    try:
        before = writing.acknowledged
    finally:
        seaweed.start()
    writing.wait_for(before + 5)
    assert writing.end() >= 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["seaweed", "hdfs"])
def test_what_is_read_in_place_waits_for_the_storage(
    name: str, request: pytest.FixtureRequest, storage_url: Callable[[str], str]
) -> None:
    storage = open_storage(storage_url(name), timeout_s=PATIENCE_S)
    storage.write("folder/file", b"0123456789" * 100)
    fs, root = storage.arrow()
    path = "/".join(filter(None, [root, "folder/file"]))
    with fs.open_input_file(path) as file:
        assert file.read(10) == b"0123456789"
        server = request.getfixturevalue(name)
        stop = server.kill_name_node if name == "hdfs" else server.stop
        start = server.start_name_node if name == "hdfs" else server.start
        stop()
        rest: list[bytes] = []
        reading = threading.Thread(target=lambda: rest.append(fs.open_input_file(path).read()))
        reading.start()
        start()
        reading.join(PATIENCE_S)
    assert rest == [b"0123456789" * 100]


@pytest.mark.slow
@pytest.mark.parametrize("node", ["name", "data"])
def test_a_node_of_hdfs_is_killed_and_comes_back(
    storage_url: Callable[[str], str], hdfs: HdfsServer, node: str
) -> None:
    writing = Writing(open_storage(storage_url("hdfs"), timeout_s=PATIENCE_S))
    writing.wait_for(3)
    kill, start = {
        "name": (hdfs.kill_name_node, hdfs.start_name_node),
        "data": (hdfs.kill_data_node, hdfs.start_data_node),
    }[node]
    kill()
    try:
        before = writing.acknowledged
    finally:
        start()
    writing.wait_for(before + 3)
    assert writing.end() >= 6


def test_a_server_that_stays_away_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    S3Endpoint(f"http://127.0.0.1:{port}", "some-key", "some-secret").use(monkeypatch)
    with pytest.raises(StoreError, match=r"s3://bucket/x cannot be read \(a/b\).*tried for .*Check the network"):
        open_storage("s3://bucket/x", timeout_s=0.5).read("a/b")
    with pytest.raises(StoreError, match=rf"hdfs://127.0.0.1:{port}/x cannot be written to \(a\).*refused.*NameNode"):
        open_storage(f"hdfs://127.0.0.1:{port}/x", timeout_s=0.5).write("a", b"x")


def test_wrong_credentials_are_said_at_once_and_not_shown(
    storage_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = storage_url("seaweed")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-wrong-secret-123")
    with pytest.raises(StoreError, match=r"cannot be written to \(a\).*Check the credentials") as caught:
        open_storage(url, timeout_s=PATIENCE_S).write("a", b"x")
    assert "tried for" not in str(caught.value)
    assert "a-wrong-secret-123" not in str(caught.value)


@pytest.mark.slow
def test_a_user_of_hdfs_without_rights_is_told_so_at_once(
    storage_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = storage_url("hdfs")
    open_storage(url).write("a", b"x")
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    other = open_storage(url, timeout_s=PATIENCE_S)
    assert other.read("a") == b"x"
    with pytest.raises(StoreError, match=r"cannot be written to \(b\).*HADOOP_USER_NAME") as caught:
        other.write("b", b"x")
    assert "tried for" not in str(caught.value)


@pytest.fixture
def stopped() -> Iterator[Callable[[int], None]]:
    """Return what stops a process, which goes on after the test."""
    pids: list[int] = []

    def stop(pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        pids.append(pid)
        # Each thread of a server stops when it next meets the kernel; until then one may still answer.
        give_up_at = time.monotonic() + 30
        while not all(_is_stopped(state) for state in Path(f"/proc/{pid}/task").glob("*/stat")):
            assert time.monotonic() < give_up_at, f"process {pid} does not stop"
            time.sleep(0.01)

    yield stop
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def _is_stopped(state: Path) -> bool:
    return state.read_text().rpartition(")")[2].split()[0] in "TZX"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["seaweed", "hdfs"])
def test_a_server_that_falls_silent_is_not_waited_for_without_end(
    name: str,
    request: pytest.FixtureRequest,
    storage_url: Callable[[str], str],
    stopped: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(s3_clients, "READ_S", 1)
    monkeypatch.setattr(s3, "CLIENTS", s3_clients.Clients())  # one that knows this, and that no other test gets
    monkeypatch.setattr(hdfs_client, "CALL_S", 1.0)
    storage = open_storage(storage_url(name), timeout_s=2.0)
    storage.write("a", b"x")
    server = request.getfixturevalue(name)
    stopped(server.name_node.pid if name == "hdfs" else server.pid)
    with pytest.raises(StoreError, match=r"cannot be read \(a\)"):
        storage.read("a")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["seaweed", "hdfs"])
def test_connections_are_cut_while_several_create_the_same_files(
    name: str, request: pytest.FixtureRequest, storage_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = storage_url(name)
    server = request.getfixturevalue(name)
    proxy = Proxy("127.0.0.1", server.port)
    through = url.replace(str(server.port), str(proxy.port))
    if name == "seaweed":
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
    files, told = 40, {0: set[int](), 1: set[int]()}
    errors: list[Exception] = []

    def create(writer: int) -> None:
        storage = open_storage(through, timeout_s=PATIENCE_S)
        try:
            for number in range(files):
                if storage.create(f"race/{number}", b"writer %d" % writer):
                    told[writer].add(number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=create, args=(writer,)) for writer in told]
    for thread in threads:
        thread.start()
    cuts = 0
    while any(thread.is_alive() for thread in threads):
        proxy.cut()
        cuts += 1
        threads[0].join(0.15)
        threads[1].join(0.15)
    proxy.close()
    assert not errors
    assert cuts > 1, "all files were there before the second cut"
    assert told[0] | told[1] == set(range(files))
    assert not told[0] & told[1]
    direct = open_storage(url)
    if name == "seaweed":
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    for writer, numbers in told.items():
        for number in numbers:
            assert direct.read(f"race/{number}") == b"writer %d" % writer


@pytest.mark.slow
@pytest.mark.parametrize("name", ["seaweed", "hdfs"])
def test_a_writer_that_is_killed_leaves_whole_files(name: str, storage_url: Callable[[str], str]) -> None:
    for turn in range(2):
        url = f"{storage_url(name)}/{turn}"
        with subprocess.Popen([sys.executable, "-c", KILLED_WRITER, url], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(turn + 2)]
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.readlines()
        storage = open_storage(url)
        replaced = storage.read("replaced")
        assert replaced is not None
        assert (len(replaced), len(set(replaced))) == (3_000_000, 1)
        created = {entry.path: storage.read(entry.path) for entry in storage.list("created")}
        assert created == {f"created/{number}": b"%d" % number * 1000 for number in range(len(created))}
        assert len(lines) <= len(created) <= len(lines) + 1
        assert {entry.path for entry in storage.list("", deep=True)} == {"replaced", *created}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["seaweed", "hdfs"])
def test_processes_that_were_forked_use_it_too(
    name: str, storage_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(storage_url(name))
    storage.write("a", b"parent")
    children = []
    for number in range(2):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                faulthandler.dump_traceback_later(60, exit=True)  # a handler of signals would go on with the tests
                is_fine = storage.read("a") == b"parent" and storage.create(f"child/{number}", b"x")
                status = 0 if is_fine and storage.arrow()[0] is not None else 1
            finally:
                os._exit(status)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]
    # Not tried again: nothing that they did has disturbed the connections of this process.
    monkeypatch.setenv("CARGOBIKE_STORAGE_TIMEOUT_S", "0")
    assert len(list(storage.list("child"))) == 2


def train(x: int) -> int:
    return x


@pytest.mark.slow
def test_a_search_goes_on_while_the_storage_is_away(
    storage_url: Callable[[str], str],
    seaweed: SeaweedServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", storage_url("seaweed"))
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path_factory.mktemp("here")))

    def restart() -> None:
        seaweed.stop()
        seaweed.start()

    first = experiment.launch(train, {"x": [1]}, workers=1, quiet=True)
    away = threading.Thread(target=restart)
    away.start()
    second = experiment.launch(train, {"x": [1, 2, 3]}, workers=1, quiet=True)
    away.join(PATIENCE_S)
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path_factory.mktemp("elsewhere")))
    assert set(experiment.list()) == {first.id, second.id}
    assert experiment.load(second.id).counts == {"completed": 3}
