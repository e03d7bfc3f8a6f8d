"""Who has no keys gets nothing in and nothing out, and disturbs nobody; keys are where they belong and nowhere else."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import zmq
from zmq.utils import z85

from cargobike import experiment, trial
from cargobike.experiments.results.result import Result
from cargobike.experiments.trial.messages import AttemptEnd, FromWorker, Point, decode_from_worker
from cargobike.workers.wire.connection import AgentConfig, Connection, identity_of
from cargobike.workers.wire.link import Link
from cargobike.workers.wire.messages import Ended, Hello, Release, Said, decode_driver_message, encode_message
from cargobike.workers.wire.server import WireServer
from support.far_engine import KeyedEngine
from support.watching import wait_for


class Eavesdropper:
    """Notes the server and the keys that an experiment makes, to try them from outside."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.servers: list[WireServer[FromWorker]] = []
        self.configs: list[AgentConfig] = []
        self.secrets: list[bytes] = []
        make = WireServer.__init__
        admit = WireServer.admit
        encode = AgentConfig.encode

        def noting_init(server: WireServer[FromWorker], *args: Any) -> None:
            make(server, *args)
            self.servers.append(server)

        def noting_admit(server: WireServer[FromWorker], worker: str) -> tuple[bytes, bytes]:
            public, secret = admit(server, worker)
            self.secrets.append(secret)
            return public, secret

        def noting_encode(config: AgentConfig) -> bytes:
            self.configs.append(config)
            return encode(config)

        monkeypatch.setattr(WireServer, "__init__", noting_init)
        monkeypatch.setattr(WireServer, "admit", noting_admit)
        monkeypatch.setattr(AgentConfig, "encode", noting_encode)


def _garbage(address: str, server_key: bytes) -> None:
    host, port = address.removeprefix("tcp://").split(":")
    greeting = b"\xff" + b"\0" * 8 + b"\x7f" + b"\0" * 53
    for attempt in (b"", b"\0", b"GET / HTTP/1.1\r\n\r\n", os.urandom(100_000), greeting):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            try:
                connection.sendall(attempt)
                connection.settimeout(0.05)
                connection.recv(1000)
            except OSError:
                pass


def _dealer(address: str, identity: bytes, prepare: Callable[[Any], None], frames: list[bytes]) -> list[bytes]:
    context = zmq.Context()
    stranger = context.socket(zmq.DEALER)
    stranger.linger = 0
    stranger.identity = identity
    prepare(stranger)
    stranger.connect(address)
    for _ in range(20):
        stranger.send_multipart(frames)
    heard = []
    if stranger.poll(500):
        heard = stranger.recv_multipart()
    stranger.close()
    context.term()
    return heard


def _lie() -> list[bytes]:
    """Frames with which a worker would say that trial 0 has ended wonderfully."""
    link = Link()
    point, end = Point(0, {"score": 1e9}), AttemptEnd("completed", value=1e9)
    said = [encode_message(Said(0, 1, point)), encode_message(Ended(0, 1, end))]
    return [encode_message(Hello("w0", 1, "elsewhere", "3", "0")), link.pack(said)]


def _plain(address: str, server_key: bytes) -> None:
    assert _dealer(address, b"w0", lambda socket: None, _lie()) == []


def _unknown_key(address: str, server_key: bytes) -> None:
    public, secret = zmq.curve_keypair()

    def prepare(stranger: Any) -> None:
        stranger.curve_serverkey = server_key
        stranger.curve_publickey = public
        stranger.curve_secretkey = secret

    assert _dealer(address, b"w0", prepare, _lie()) == []


@pytest.mark.parametrize("intrude", [_garbage, _plain, _unknown_key])
def test_strangers_get_nothing_in_and_nothing_out(
    intrude: Callable[[str, bytes], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ear = Eavesdropper(monkeypatch)
    errors: list[BaseException] = []

    def visit() -> None:
        try:
            while not (tmp_path / "running").exists():
                time.sleep(0.01)
            intrude(ear.servers[0].address, ear.servers[0].server_key)
        except BaseException as error:
            errors.append(error)
        finally:
            (tmp_path / "visited").touch()

    visitor = threading.Thread(target=visit)
    visitor.start()

    def train(x: int) -> float:
        (tmp_path / "running").touch()
        while not (tmp_path / "visited").exists():
            trial.report(score=float(x))
            time.sleep(0.01)
        return x

    result = experiment.launch(train, {"x": [1, 2]}, workers=2, engine=KeyedEngine(), trial_timeout_s=200, quiet=True)
    visitor.join()
    assert errors == []
    assert [ended.value for ended in result.trials] == [1.0, 2.0]
    assert [ended.attempts for ended in result.trials] == [1, 1]
    assert all(value <= 2.0 for ended in result.trials for value in ended.curve.values)


def test_a_worker_cannot_speak_for_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A key admits its owner under its own name only."""
    server = WireServer(decode_from_worker)
    server.admit("w0")
    public, secret = server.admit("w1")
    heard: list[Any] = []
    done = threading.Event()

    def listen() -> None:
        while not done.is_set():
            server.poll(20)
            heard.extend(server.receive()[0])

    listener = threading.Thread(target=listen)
    listener.start()

    def prepare(stranger: Any) -> None:
        stranger.curve_serverkey = server.server_key
        stranger.curve_publickey = public
        stranger.curve_secretkey = secret

    try:
        _dealer(server.address, b"w0", prepare, _lie())
        assert heard == []
        _dealer(server.address, identity_of(secret), prepare, _lie())
        deadline = time.monotonic() + 10
        while not heard and time.monotonic() < deadline:
            time.sleep(0.01)
        assert {name for name, _ in heard} == {"w1"}
    finally:
        done.set()
        listener.join()
        server.close()


def test_a_worker_cannot_listen_for_another() -> None:
    """What is meant for a worker reaches that worker, whatever names other workers come under."""
    server = WireServer(decode_from_worker)
    public, secret = server.admit("w0")
    thief = server.admit("w1")
    config = AgentConfig("w0", server.address, server.server_key, public, secret, "", "", False)
    connection = Connection(config)
    connection.socket.send_multipart([encode_message(Hello("w0", 1, "host", "3", "0")), connection.link.pack([])])
    context = zmq.Context()
    sockets = []
    try:
        heard: list[Any] = []
        until(server, lambda: bool(heard), heard)
        for identity in (b"w0", b"w1", public):
            stranger = context.socket(zmq.DEALER)
            stranger.linger = 0
            stranger.identity = identity
            stranger.curve_publickey, stranger.curve_secretkey = thief
            stranger.curve_serverkey = server.server_key
            monitor = stranger.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
            stranger.connect(server.address)
            stranger.send_multipart(_lie())
            sockets += [stranger, monitor]
            until(server, lambda: bool(monitor.poll(0)), heard)  # noqa: B023 - called before the next one
        server.send("w0", Release())
        server.flush()
        until(server, lambda: bool(connection.socket.poll(0)), heard)
        assert [decode_driver_message(raw) for raw in connection.receive()] == [Release()]
        assert {name for name, message in heard if not isinstance(message, Hello)} <= {"w1"}
    finally:
        connection.close(0)
        for one in sockets:
            one.close(0)
        context.term()
        server.close()


def until(server: WireServer[FromWorker], condition: Callable[[], bool], heard: list[Any]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        server.poll(20)
        heard.extend(server.receive()[0])


def test_keys_are_in_no_command_line_no_environment_and_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ear = Eavesdropper(monkeypatch)
    seen: dict[str, bytes] = {}

    def look() -> None:
        wait_for(lambda: (tmp_path / "running 1").exists() and (tmp_path / "running 2").exists(), "both trials")
        for process in psutil.Process().children(recursive=True):
            for part in ("cmdline", "environ"):
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    seen[f"{part} of {process.pid}"] = Path(f"/proc/{process.pid}/{part}").read_bytes()
        (tmp_path / "looked").touch()

    looker = threading.Thread(target=look)
    looker.start()

    def train(x: int) -> float:
        (tmp_path / f"running {x}").touch()
        while not (tmp_path / "looked").exists():
            time.sleep(0.01)
        return x

    result = experiment.launch(train, {"x": [1, 2]}, workers=2, engine=KeyedEngine(), trial_timeout_s=200, quiet=True)
    looker.join()
    assert len(seen) >= 2 * 7  # a host, two agents, two templates and two runners
    for path in result.folder.rglob("*"):
        if path.is_file():
            seen[str(path)] = path.read_bytes()
    assert any(name.endswith("journal.jsonl") for name in seen)
    assert len(ear.secrets) == 2
    for where, content in seen.items():
        for secret in ear.secrets:
            assert secret not in content, f"a secret key is in {where}"
            assert z85.decode(secret) not in content, f"a secret key is in {where}"


def test_the_process_of_a_train_function_does_not_know_its_workers_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ear = Eavesdropper(monkeypatch)
    found: dict[str, list[bytes]] = {}

    def look() -> None:
        while not (tmp_path / "running").exists():
            time.sleep(0.01)
        runner = psutil.Process(int((tmp_path / "running").read_text()))
        template, agent = runner.parents()[:2]
        for name, process in (("runner", runner), ("template", template), ("agent", agent)):
            found[name] = [
                secret for secret in ear.secrets for form in (secret, z85.decode(secret)) if _holds(process.pid, form)
            ]
        (tmp_path / "looked").touch()

    looker = threading.Thread(target=look)
    looker.start()

    def train(x: int) -> float:
        (tmp_path / "begun").write_text(str(os.getpid()))
        (tmp_path / "begun").rename(tmp_path / "running")
        while not (tmp_path / "looked").exists():
            time.sleep(0.01)
        return x

    result = experiment.launch(train, {"x": [1]}, workers=1, engine=KeyedEngine(), trial_timeout_s=100, quiet=True)
    looker.join()
    assert isinstance(result, Result)
    assert found["agent"], "the search finds keys where they are"
    assert found["runner"] == []
    assert found["template"] == []


def _holds(pid: int, needle: bytes) -> bool:
    """Tell whether the bytes are anywhere in the readable and writable memory of a process."""
    ranges = re.findall(r"^(\w+)-(\w+) rw", Path(f"/proc/{pid}/maps").read_text(), re.MULTILINE)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for start, end in ((int(a, 16), int(b, 16)) for a, b in ranges):
            try:
                memory.seek(start)
                content = memory.read(end - start)
            except OSError:
                continue
            if needle in content:
                return True
    return False
