"""Strangers at a parameter server: they took its name, sit there in silence, or speak another version."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import cargobike.torch
from cargobike.errors import AuthenticationError
from cargobike.training.wire import connection, lobby

SECRET = b"a secret of thirty-two bytes ..."
NOBODY = 65534
GREETING = 81


def model_of() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(3, 2)


def join(address: str, **options: Any) -> cargobike.torch.ParameterClient:
    return cargobike.torch.parameter_client(model_of(), servers=[address], secret=SECRET, timeout_s=60, **options)


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


BECOME_ANOTHER = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
"""

SQUATTER = """
squatter = socket.socket(socket.AF_UNIX)
squatter.bind("\\0cargobike " + sys.argv[1])
squatter.listen()
print("ready", flush=True)
while True:
    connection, _ = squatter.accept()
    print("came", flush=True)
    print("heard", len(connection.recv(1)), flush=True)
"""

VISITOR = """
visitor = socket.socket(socket.AF_UNIX)
visitor.connect("\\0cargobike " + sys.argv[1])
print("greeted with", len(visitor.recv(1)), flush=True)
"""


def as_another_user(program: str, address: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BECOME_ANOTHER + program, address, str(NOBODY)], stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let other processes be another user's; who is not root can only believe to be another one."""
    if os.geteuid() != 0:
        uid = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
        monkeypatch.setattr(sys.modules[__name__], "NOBODY", uid)


def test_another_users_process_that_took_the_name_gets_nothing(another_user: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = "{}:{}".format(*probe.getsockname())
    with as_another_user(SQUATTER, address) as squatter:
        try:
            assert squatter.stdout is not None
            assert squatter.stdout.readline() == "ready\n"
            with (
                cargobike.torch.ParameterServer(SECRET, port=port_of(address)),
                join(address) as client,
            ):
                assert client.counts()[0].version == 0
            assert [squatter.stdout.readline() for _ in range(2)] == ["came\n", "heard 0\n"]
        finally:
            squatter.kill()


def test_another_users_process_is_not_even_greeted_by_the_server(another_user: None) -> None:
    with cargobike.torch.ParameterServer(SECRET) as server, as_another_user(VISITOR, server.address) as visitor:
        assert visitor.communicate(timeout=300)[0] == "greeted with 0\n"


@contextlib.contextmanager
def strangers_at(address: str, count: int) -> Iterator[list[socket.socket]]:
    """Connect and hear the greeting, so that the server has counted us; then say nothing."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(("127.0.0.1", port_of(address)), timeout=60))
            for _ in range(count)
        ]


def hear(stranger: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length and (more := stranger.recv(length - len(data))):
        data += more
    return data


def is_still_connected(stranger: socket.socket) -> bool:
    stranger.setblocking(False)
    try:
        return stranger.recv(1) != b""
    except BlockingIOError:
        return True


def test_silent_strangers_do_not_keep_a_worker_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server lets them sit for an hour; a worker that had to wait for one of them to go would miss its deadline."""
    monkeypatch.setattr(lobby, "HANDSHAKE_S", 3600.0)
    with cargobike.torch.ParameterServer(SECRET) as server, strangers_at(server.address, 200) as strangers:
        assert all(len(hear(stranger, GREETING)) == GREETING for stranger in strangers)
        with join(server.address) as near:
            assert near.counts()[0].version == 0
        monkeypatch.setattr(connection, "_near", lambda address: f"\0nobody listens to {address}")
        with join(server.address, rank=1) as by_network:
            assert by_network.counts()[0].version == 0
        assert all(is_still_connected(stranger) for stranger in strangers)


def test_the_oldest_stranger_makes_room_for_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lobby, "HANDSHAKE_S", 3600.0)
    monkeypatch.setattr(lobby, "MOST_STRANGERS", 20)
    with cargobike.torch.ParameterServer(SECRET) as server, strangers_at(server.address, 30) as strangers:
        assert all(len(hear(stranger, GREETING)) == GREETING for stranger in strangers)
        assert [hear(stranger, 1) for stranger in strangers[:10]] == [b""] * 10
        assert all(is_still_connected(stranger) for stranger in strangers[10:])
        with join(server.address) as client:
            assert client.counts()[0].version == 0


def test_a_stranger_who_says_too_little_is_sent_away_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lobby, "HANDSHAKE_S", 0.2)
    with cargobike.torch.ParameterServer(SECRET) as server, strangers_at(server.address, 1) as (stranger,):
        stranger.sendall(b"cargobike ps  2\n")
        assert len(hear(stranger, GREETING + 1)) == GREETING


@pytest.mark.parametrize(
    ("greeting", "words"),
    [(b"cargobike ps  3\n", "but version 3: it is of an older or newer Cargobike"), (b"\xa5" * 32, "but none that is")],
    ids=["newer", "the first"],
)
def test_a_server_of_another_version_is_told_in_words(greeting: bytes, words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = "{}:{}".format(*listener.getsockname())

        def be_of_another_version() -> None:
            worker, _ = listener.accept()
            with worker:
                worker.sendall(greeting)
                with contextlib.suppress(ConnectionResetError):
                    worker.recv(1)

        thread = threading.Thread(target=be_of_another_version)
        thread.start()
        with pytest.raises(AuthenticationError, match=f"server 0 at {address}: .*version 2 .*{words}.*Install"):
            join(address)
        thread.join(30)


def test_a_worker_of_the_first_version_is_refused_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    with cargobike.torch.ParameterServer(SECRET) as server, strangers_at(server.address, 1) as (worker,):
        hear(worker, GREETING)
        worker.sendall(bytes(64))
        with contextlib.suppress(ConnectionResetError):
            assert hear(worker, 1) == b""
    assert "does not speak version 2 of the parameter server's protocol" in caplog.text
