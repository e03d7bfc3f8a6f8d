"""A reception for workers: what an engine's workers connect to when there is no experiment, only a test."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cargobike.core.records import Resources
from cargobike.engines.engine import WorkerSpec
from cargobike.engines.local.boot import WORKER_PROGRAM
from cargobike.experiments.driving.server import WireServer
from cargobike.experiments.trial.payload import Payload
from cargobike.workers.connection import AgentConfig
from cargobike.workers.processes import children_of
from cargobike.workers.wire import Assign, Ended, Hello, Release

PATIENCE_S = 30.0
"""How long anything may take on a machine that has much else to do."""


def wait_until(condition: Callable[[], bool], let_time_pass: Callable[[], None], what: str) -> None:
    """Wait until something is true; raises `AssertionError` if it does not come true."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:g} s in vain until {what}"
        let_time_pass()


class Reception:
    """Receives workers as a driver does, and gives them something to do.

    Args:
        folder: Where trials leave what they write.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = WireServer()
        self.greetings: dict[str, Hello] = {}
        self.results: dict[str, Ended] = {}
        self._payload = Payload(function=pickle.dumps(_train), sys_path=list(sys.path), launch_dir=str(folder)).encode()

    def spec(self, worker: str, resources: Resources | None = None) -> WorkerSpec:
        """Make what an engine needs to start a worker that connects to this reception."""
        public, secret = self._server.admit(worker)
        config = AgentConfig(
            worker=worker,
            address=self._server.address,
            server_key=self._server.server_key,
            public_key=public,
            secret_key=secret,
            experiment=str(self._folder),
            project=str(self._folder),
            reuse=False,
        )
        return WorkerSpec(
            name=worker,
            module=WORKER_PROGRAM,
            config=config.encode(),
            payload=self._payload,
            resources=resources or Resources(gpus=0),
            version="1",
        )

    def has_come(self, worker: str) -> bool:
        """Tell whether a worker has introduced itself."""
        return worker in self.greetings

    def let_time_pass(self) -> None:
        """Wait a moment for news, and take them in."""
        self._server.flush()
        self._server.poll(20)
        messages, _ = self._server.receive()
        for worker, message in messages:
            if isinstance(message, Hello):
                self.greetings[worker] = message
            elif isinstance(message, Ended):
                self.results[worker] = message

    def assign(self, worker: str, trial: int, *, waits: bool = False) -> None:
        """Let a worker run a trial that returns its number or, with `waits`, never ends and starts a process."""
        self._server.send(worker, Assign(trial, 1, {"marker": str(self._marker(worker)), "waits": waits}, trial))

    def processes_of(self, worker: str) -> list[int]:
        """Return the process in which user code runs and the one that this has started, once it has."""
        marker = self._marker(worker)
        wait_until(marker.exists, self.let_time_pass, f"the trial on {worker} has started")
        return [int(word) for word in marker.read_text().split()]

    def release(self, worker: str) -> None:
        """Send a worker home."""
        self._server.send(worker, Release())

    def close(self) -> None:
        """Receive nobody any more."""
        self._server.close()

    def _marker(self, worker: str) -> Path:
        return self._folder / f"processes-of-{worker}"


def _train(marker: str, waits: bool) -> float:
    if waits:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        Path(f"{marker}.new").write_text(f"{os.getpid()} {child.pid}")
        os.rename(f"{marker}.new", marker)
        child.wait()
    return 1.0


def is_running(pid: int) -> bool:
    """Tell whether a process exists and is not only a name on its parent's list."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def descendants(pid: int) -> list[int]:
    """Return everything below a process."""
    found = []
    for child in children_of(pid):
        found += [child, *descendants(child)]
    return found
