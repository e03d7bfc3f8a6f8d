"""`cargobike ui` as a process: its address, its port, and that it never outlives its owner."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from cargobike.core.layout import ProjectFolder
from cargobike.testing.stores import JournalBuilder

PATIENCE_S = 60.0
COMMAND = [sys.executable, "-m", "cargobike.cli", "ui"]


def wait_until(is_so: object, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < deadline, f"{what} took longer than {PATIENCE_S} s"
        time.sleep(0.05)


def read_address(process: subprocess.Popen[str]) -> str:
    """Return the address that the server prints; it listens before it prints."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"http://\S+", line):
            return found[0]
    raise AssertionError(f"no address; it said {process.stderr.read() if process.stderr else ''}")


@contextmanager
def running(*options: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    environment = {**os.environ, **variables}
    with subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process, read_address(process)
        finally:
            process.kill()


def test_ctrl_c_ends_it_also_while_somebody_listens() -> None:
    with running("--port", "0") as (process, address):
        assert address.startswith("http://127.0.0.1:")
        with httpx.stream("GET", f"{address}api/v1/events", timeout=PATIENCE_S) as events:
            assert next(events.iter_lines()) == "event: experiments"
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
        with pytest.raises(httpx.ConnectError):
            httpx.get(address)


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    # A shell that does not wait, so that the server has a parent of its own to lose.
    script = f"{' '.join(COMMAND)} --port 0 & echo $! > {tmp_path}/pid; wait"
    with subprocess.Popen(
        ["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as shell:
        address = read_address(shell)
        server = psutil.Process(int((tmp_path / "pid").read_text()))
        assert httpx.get(f"{address}healthz", timeout=PATIENCE_S).status_code == 200
        shell.kill()
        shell.wait(PATIENCE_S)
        wait_until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE, "the server's end")


def test_a_port_that_is_taken_is_an_error_only_if_it_was_asked_for() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*COMMAND, "--port", str(port)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 1
        assert f"The dashboard cannot listen on 127.0.0.1:{port}: Address already in use." in done.stderr
        assert "leave it out to get a free one" in done.stderr
    with running() as (_, one), running() as (_, other):
        assert one != other
        assert httpx.get(f"{other}healthz", timeout=PATIENCE_S).status_code == 200


def test_elsewhere_it_asks_for_a_token_and_keeps_it_out_of_requests() -> None:
    with running("--host", "0.0.0.0", "--port", "0") as (_, address):
        page, _, token = address.partition("#")
        assert page.endswith("/login")
        assert len(token) >= 40
        base = page.removesuffix("/login").replace("0.0.0.0", "127.0.0.1")
        asked = httpx.get(f"{base}/api/v1/experiments", timeout=PATIENCE_S)
        assert asked.status_code == 401
        known = httpx.get(
            f"{base}/api/v1/experiments", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S
        )
        assert known.status_code == 200


def test_a_token_of_your_own_comes_from_the_environment() -> None:
    with running("--port", "0", CARGOBIKE_UI_TOKEN="correct-horse-battery") as (process, address):
        assert address.endswith("#correct-horse-battery")
        assert "correct-horse" not in " ".join(psutil.Process(process.pid).cmdline())
    environment = {**os.environ, "CARGOBIKE_UI_TOKEN": "short"}
    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment)
    assert done.returncode == 1
    assert "too easy to guess" in done.stderr


def test_mistakes_are_told_before_anything_is_started() -> None:
    for options, word in (
        (["no-such-experiment"], "There is no experiment 'no-such-experiment'"),
        (["--host", "203.0.113.9"], "cannot listen on 203.0.113.9"),
    ):
        done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 1
        assert word in done.stderr


def test_it_starts_before_the_first_experiment_and_shows_it_when_it_comes(tmp_path: Path) -> None:
    project = tmp_path / "new" / ".cargobike"
    with running("--port", "0", CARGOBIKE_PROJECT=str(project)) as (_, address):
        assert "No experiments yet" in httpx.get(address, timeout=PATIENCE_S).text
        page = httpx.get(f"{address.rstrip('/')}/experiments", timeout=PATIENCE_S).text
        assert str(project.parent) in page
        assert not project.exists()
        builder = JournalBuilder(ProjectFolder(project), "20270101-000000-aaaa", name="the-first")
        builder.complete(0.5, lr=0.1)
        builder.end()
        wait_until(lambda: "the-first" in httpx.get(address, timeout=PATIENCE_S).text, "the first experiment")


def test_without_the_extra_it_says_how_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "fastapi.py").write_text('raise ImportError("none here", name="fastapi")\n')
    places = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": places}
    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment)
    assert done.returncode == 1
    assert 'needs fastapi, which is not installed; install it with: pip install "cargobike[ui]"' in done.stderr
