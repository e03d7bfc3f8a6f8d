"""Workers without the project's disk: links lead nowhere, keys decide, and no request stops the file server."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from cargobike import experiment, tensorboard, trial
from cargobike.core.layout import ProjectFolder
from cargobike.core.running.hosting import Listening
from cargobike.experiments.driving.file_server import FileServer
from cargobike.experiments.trial.context import TrialContext
from cargobike.workers.wire.messages import WorkerMessage, decode_worker_message
from cargobike.workers.wire.server import WireServer
from support.far_engine import FarEngine


def train(secret: str) -> float:
    me = trial.current()
    assert isinstance(me, TrialContext)
    Path("model.bin").write_bytes(b"m" * 3_000_000)
    Path("best.bin").symlink_to("model.bin")
    Path("latest.bin").symlink_to(Path.cwd() / "model.bin")
    Path("leak").symlink_to(secret)
    Path("folder").mkdir()
    Path("folder", "up").symlink_to("..")
    Path("folder", "out").symlink_to("../../..")
    os.mkfifo("pipe")
    Path(os.fsdecode(b"odd\xff")).write_text("odd")
    logs = Path(tensorboard.logdir())
    (logs / "events").write_text("one\n")
    saved = Path("to-save")
    (saved / "inner").mkdir(parents=True)
    (saved / "inner" / "weights").write_text("weights")
    (saved / "short").symlink_to("inner")
    trial.checkpoint.save(saved, step=1)
    mine = Path.cwd().relative_to(Path.cwd().parents[3])
    refusals = 0
    for path in (f"{mine}/leak", f"{mine}/../../journal.jsonl", secret, f"{mine.parent.parent}/journal.jsonl"):
        if not path.startswith("/"):
            (Path.cwd().parents[3] / path).unlink(missing_ok=True)
        try:
            me.bring(path)
        except OSError:
            refusals += 1
    Path("leak").symlink_to(secret)
    return refusals


def test_links_of_a_train_function_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("of the driver's machine")
    result = experiment.launch(train, params={"secret": str(secret)}, engine=FarEngine(), quiet=True)
    assert result.trials[0].value == 4
    files = result.folder / "files" / "0000"
    assert (files / "model.bin").read_bytes() == b"m" * 3_000_000
    assert {path.name: os.readlink(path) for path in files.rglob("*") if path.is_symlink()} == {
        "best.bin": "model.bin",
        "latest.bin": "model.bin",
        "up": "..",
        "short": "inner",
    }
    assert (result.folder / "trials/0000/logs/events").read_text() == "one\n"
    (kept,) = (result.folder / "trials/0000/checkpoints").iterdir()
    assert os.readlink(kept / "files/to-save/short") == "inner"
    assert (kept / "files/to-save/short/weights").read_text() == "weights"
    complaint = (result.folder / "trials/0000/stderr.log").read_text()
    for name in ("'leak'", "'folder/out'", "'pipe'", "'odd"):
        assert name in complaint
    assert not list(tmp_path.glob("cargobike-*")), "nothing is left behind"


class Port:
    """A file server as a driver has one, and connections to it with workers' keys, made by hand."""

    def __init__(self, root: Path) -> None:
        (root / "experiments/one/trials").mkdir(parents=True)
        project = ProjectFolder(root)
        self.root = root
        self._wire: WireServer[WorkerMessage] = WireServer(decode_worker_message)
        self._keys = {name: self._wire.admit(name) for name in ("w0", "w1")}
        router, self._address = self._wire.open_router(Listening(), most_bytes=1 << 22)
        self.server = FileServer(router, project, project.experiment("one"))
        self._context = zmq.Context()
        self._sockets: list[Any] = []
        self._done = threading.Event()
        self._loop = threading.Thread(target=self._authenticate)
        self._loop.start()

    def _authenticate(self) -> None:
        while not self._done.is_set():
            self._wire.poll(20)
            self._wire.receive()

    def connect(self, key_of: str, identity: bytes | None = None) -> Any:
        socket = self._context.socket(zmq.DEALER)
        socket.linger = 0
        socket.curve_publickey, socket.curve_secretkey = self._keys[key_of]
        socket.curve_serverkey = self._wire.server_key
        if identity is not None:
            socket.identity = identity
        socket.connect(self._address)
        self._sockets.append(socket)
        return socket

    def close(self) -> None:
        for socket in self._sockets:
            socket.close()
        self._context.term()
        self.server.close()
        self._done.set()
        self._loop.join()
        self._wire.close()


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    port = Port(tmp_path / "project")
    yield port
    port.close()


def ask(socket: Any, **request: object) -> dict[str, Any]:
    """Send a request as plain msgpack, and return the answer to it."""
    number = time.monotonic_ns()
    socket.send(msgspec.msgpack.encode({"number": number, **request}))
    for _ in range(1000):
        assert socket.poll(30_000), "no answer"
        reply: dict[str, Any] = msgspec.msgpack.decode(socket.recv())
        if reply["number"] == number:
            return reply
    raise AssertionError("too many other answers")


TRIAL = "experiments/one/trials/0000"


def test_a_key_decides_whose_files_are_used(port: Port) -> None:
    port.server.allow("w0", 0)
    port.server.allow("w1", 1)
    own, forged = port.connect("w0"), port.connect("w1", b"w0")
    assert "error" not in ask(own, r="put", path=f"{TRIAL}/x", data=b"mine")
    for request in ({"r": "get", "path": f"{TRIAL}/x"}, {"r": "put", "path": f"{TRIAL}/x", "data": b"theirs"}):
        assert "not among the files" in ask(forged, **request)["error"]
    assert ask(own, r="get", path=f"{TRIAL}/x")["data"] == b"mine"
    port.server.disallow("w0")
    assert "not among the files" in ask(own, r="get", path=f"{TRIAL}/x")["error"]


def test_what_the_last_worker_of_a_trial_sent_in_part_is_removed(port: Port) -> None:
    first, second = port.connect("w0"), port.connect("w1")
    parts = [f"{TRIAL}/checkpoints/.saving.0.{name}.wire" for name in ("w0", "w1")]
    for worker, socket, part in zip(("w0", "w1"), (first, second), parts, strict=True):
        port.server.allow(worker, 0)
        assert "error" not in ask(socket, r="put", path=f"{part}/state.bin", data=b"the beginning")
    port.server.disallow("w0")
    assert "error" not in ask(second, r="put", path=f"{parts[1]}/state.bin", offset=13, data=b"the end")
    assert all((port.root / part).exists() for part in parts), "one of its workers is still sending"
    port.server.disallow("w1")
    port.server.allow("w0", 0)
    part = f"{TRIAL}/checkpoints/.saving.0.again.wire"
    assert "error" not in ask(first, r="put", path=f"{part}/state.bin", data=b"the next attempt")
    assert [path.name for path in (port.root / part).parent.iterdir()] == [".saving.0.again.wire"]


def test_no_message_stops_the_server(port: Port) -> None:
    port.server.allow("w0", 0)
    port.server.allow("w1", 1)
    bad, good = port.connect("w0"), port.connect("w1")
    put = {"r": "put", "number": 1, "path": f"{TRIAL}/x", "data": b"x"}
    get = {"r": "get", "number": 1, "path": f"{TRIAL}/x"}
    settle = {"r": "settle", "number": 1, "path": f"{TRIAL}/.saving.0.a", "name": "x"}
    requests: list[dict[str, object]] = [
        *({**kind, "offset": offset} for kind in (put, get) for offset in (-1, 1 << 61, 1 << 63, 0.5, "x")),
        *(
            {**kind, "path": path}
            for kind in (put, get, settle)
            for path in ("\0", "a\0b", "/" * 9, "..", "x" * 100_000, 5)
        ),
        *({**kind, "path": f"{TRIAL}/a\0b"} for kind in (put, get, settle)),
        *({**put, "path": f"{TRIAL}/{'d/' * depth}x"} for depth in (99, 1000)),
        *({**settle, "name": name} for name in ("", "..", "a/b", "\0", "n" * 1000)),
        *({**settle, "replaces": names} for names in (["..", "a/b"], ["\0"], "x", [["x"]])),
        *({**kind, "number": number} for kind in (put, get) for number in (-1, 1 << 63, None, "1")),
        {**put, "link": "/etc/passwd"},
        {**put, "link": "\0"},
        {"r": "nothing", "number": 1},
    ]
    bodies = [
        b"",
        b"\xc1",
        b"\x91" * 100_000,
        b"\x81\xa6number" * 5000,
        os.urandom(1000),
        *map(msgspec.msgpack.encode, requests),
        msgspec.msgpack.encode({**get, "path": "@@@"}).replace(b"@@@", b"\xed\xa0\x80"),
        msgspec.msgpack.encode({**put, "data": b"x" * (1 << 21)}),
    ]
    bad.send(b"alone")
    bad.send_multipart([b"", b"", b""])
    bad.send_multipart([b"", *bodies[:5]])
    for body in bodies:
        bad.send(body)
        if bad.poll(0):
            bad.recv()
    assert "error" not in ask(good, r="put", path="experiments/one/trials/0001/x", data=b"good")
    bad.close()
    again = port.connect("w0")
    assert "error" not in ask(again, r="put", path=f"{TRIAL}/y", data=b"still served")
    written = {path.name for path in (port.root / "experiments/one/trials").iterdir()}
    assert written == {"0000", "0001"}
    assert sorted(path.name for path in port.root.iterdir()) == ["experiments"]
