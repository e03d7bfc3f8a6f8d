"""Looks at processes from outside: who carries a marker, who is whose parent, and waiting for a condition."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import psutil

SOURCES = str(Path(__file__).resolve().parents[2] / "src")
MARKER = "CARGOBIKE_PROJECT"


def wait_for(condition: Callable[[], object], what: str, timeout_s: float = 120.0) -> None:
    """Wait until a condition holds, and fail with its name if it never does."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


def marked(project: Path) -> list[psutil.Process]:
    """Return all living processes, other than this one, that belong to a project."""
    found = []
    for process in psutil.process_iter():
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and process.pid != os.getpid() and process.environ().get(MARKER) == str(project):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def ancestors(count: int) -> list[int]:
    """Return the pids above a train function: its template, its agent and their host.

    On the driver's own machine an agent is its own template, and comes twice.
    """
    parents = above(psutil.Process())
    return [process.pid for process in parents[:count]]


def above(runner: psutil.Process) -> list[psutil.Process]:
    """Return the template, the agent and the host above a runner; the host has begun the session that all are in."""
    parents = runner.parents()
    host = next(place for place, parent in enumerate(parents) if os.getsid(parent.pid) == parent.pid)
    return [parents[0], parents[host - 1], *parents[host:]]


class Script:
    """A user's script, running in a session of its own as a terminal would start it."""

    def __init__(self, folder: Path, text: str, name: str = "script.py") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))
        path = os.pathsep.join(part for part in (SOURCES, os.environ.get("PYTHONPATH", "")) if part)
        self.folder = folder
        with (folder / "stdout").open("w") as stdout, (folder / "stderr").open("w") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-u", name],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path},
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )

    def wait_for_file(self, name: str) -> None:
        """Wait until the script has made a file in its folder."""
        wait_for(lambda: (self.folder / name).exists() or self.process.poll() is not None, f"{name}\n{self.output}")
        assert (self.folder / name).exists(), self.output

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the whole group, as a terminal does."""
        os.killpg(self.process.pid, number)

    def end(self, timeout_s: float = 120.0) -> int:
        """Wait for the end and return the exit code, negative for a signal."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the script did not end within {timeout_s} s\n{self.output}") from None

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return (self.folder / "stdout").read_text() + (self.folder / "stderr").read_text()
