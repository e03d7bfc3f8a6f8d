"""Clients that hold connections are not waited for, and keep nobody else out."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Hashable, Iterator
from pathlib import Path

import pytest

from cargobike.ui.web.crowd import CROWD, PATIENCE_IN_A_CROWD_S, PATIENCE_S, Crowd


class Client:
    """A connection that waits for its client, or not."""

    def __init__(self, what: Hashable | None = "a request") -> None:
        self.what = what
        self.is_closed = False

    def waits_for(self) -> Hashable | None:
        return self.what

    def close(self) -> None:
        self.is_closed = True


def test_a_connection_that_waits_too_long_is_closed() -> None:
    crowd, slow, busy = Crowd(), Client(), Client(None)
    assert crowd.thin_out([slow, busy], 0.0) == 0
    assert crowd.thin_out([slow, busy], PATIENCE_S - 0.1) == 0
    assert crowd.thin_out([slow, busy], PATIENCE_S) == 1
    assert slow.is_closed
    assert not busy.is_closed


def test_progress_is_waited_for() -> None:
    crowd, reader = Crowd(), Client(1000)
    for second in range(100):
        reader.what = 1000 - second
        assert crowd.thin_out([reader], float(second)) == 0
    assert crowd.thin_out([reader], 99 + PATIENCE_S) == 1


def test_in_a_crowd_those_that_wait_longest_go_at_once_and_those_that_are_served_stay() -> None:
    crowd = Crowd()
    busy = [Client(None) for _ in range(CROWD // 2)]
    old, new = ([Client() for _ in range(CROWD)] for _ in range(2))
    crowd.thin_out([*busy, *old], 0.0)
    crowd.thin_out([*busy, *old, *new], 0.5)
    closed = crowd.thin_out([*busy, *old, *new], PATIENCE_IN_A_CROWD_S)
    assert closed == CROWD
    assert all(client.is_closed for client in old)
    assert not any(client.is_closed for client in [*busy, *new])


@contextlib.contextmanager
def dashboard(project: Path) -> Iterator[tuple[str, int]]:
    """Run `cargobike ui`, allowed few descriptors."""
    project.mkdir()
    start = "import sys; from cargobike.cli.app import main; main()"
    process = subprocess.Popen(
        ["bash", "-c", 'ulimit -n 1024; exec "$0" "$@"', sys.executable, "-c", start, "ui", "--port", "0"],
        env=os.environ | {"CARGOBIKE_PROJECT": str(project), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://([\d.]+):(\d+)", line):
                yield found[1], int(found[2])
                return
        raise AssertionError("it printed no address")
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.slow
def test_a_request_gets_through_while_hundreds_are_held(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    half = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    held_body = b"POST /api/v1/x HTTP/1.1\r\nHost: localhost\r\nX-Cargobike: 1\r\nContent-Type: application/json\r\n"
    begins = [b"", half, held_body + b"Content-Length: 100\r\n\r\n{"]
    with dashboard(tmp_path / "project") as address, contextlib.ExitStack() as held:
        for index in range(400):
            connection = held.enter_context(socket.create_connection(address, timeout=30))
            connection.sendall(begins[index % len(begins)])
        deadline = time.monotonic() + 60
        answers = 0
        while answers < 3:
            assert time.monotonic() < deadline
            client = http.client.HTTPConnection(*address, timeout=30)
            try:
                client.request("GET", "/healthz")
                answers += client.getresponse().status == 200
            except OSError:
                time.sleep(0.1)
            finally:
                client.close()
