"""A reception for workers: what an engine's workers connect to when there is no experiment, only a test."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from cargobike.core.records import Resources
from cargobike.engines.engine import WorkerSpec
from cargobike.experiments.trial import WORKER_PROGRAM
from cargobike.experiments.trial.messages import Assignment, AttemptEnd, FromWorker, decode_from_worker
from cargobike.experiments.trial.payload import Payload
from cargobike.testing import programs
from cargobike.workers.processes import children_of
from cargobike.workers.wire.messages import Assign, Died, Ended, Halt, Hello, Output, Release, Said, Tell
from cargobike.workers.wire.pairs import PairServer
from cargobike.workers.wire.server import WireServer
from cargobike.workers.wire.ways import AgentConfig, DriverEnd

Heard = TypeVar("Heard")

PATIENCE_S = 120.0
"""How long anything may take on a machine that has much else to do."""


def wait_until(condition: Callable[[], bool], let_time_pass: Callable[[], None], what: str) -> None:
    """Wait until something is true; raises `AssertionError` if it does not come true."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:g} s in vain until {what}"
        let_time_pass()


class WorkerReception(Generic[Heard]):
    """Receives workers as a driver does, for any program.

    Args:
        folder: Where the program leaves what it writes.
        module: The program.
        payload: What it is made from.
        decode: Turns bytes into a message from a worker.
        reuse: Whether runners are reused.
        inherits: Whether workers inherit their connections instead of coming over the network.
    """

    def __init__(
        self,
        folder: Path,
        module: str,
        payload: bytes,
        decode: Callable[[bytes | msgspec.Raw], Heard],
        *,
        reuse: bool = False,
        inherits: bool = False,
    ) -> None:
        self._folder = folder
        self._module = module
        self._payload = payload
        self._reuse = reuse
        self._server: DriverEnd[Heard] = PairServer(decode) if inherits else WireServer(decode)
        self.greetings: dict[str, Hello] = {}

    def spec(self, worker: str, resources: Resources | None = None) -> WorkerSpec:
        """Make what an engine needs to start a worker that connects to this reception."""
        ticket = self._server.issue(worker)
        config = AgentConfig(
            worker=worker,
            address=ticket.address,
            server_key=ticket.server_key,
            public_key=ticket.public_key,
            secret_key=ticket.secret_key,
            folder=str(self._folder),
            project=str(self._folder),
            reuse=self._reuse,
        )
        return WorkerSpec(
            name=worker,
            module=self._module,
            config=config.encode(),
            payload=self._payload,
            resources=resources or Resources(gpus=0),
            version="1",
            descriptor=ticket.descriptor,
        )

    def has_come(self, worker: str) -> bool:
        """Tell whether a worker has introduced itself."""
        return worker in self.greetings

    def let_time_pass(self) -> None:
        """Wait a moment for news."""
        self._server.flush()
        self._server.poll(20)
        messages, _ = self._server.receive()
        for worker, message in messages:
            if isinstance(message, Hello):
                self.greetings[worker] = message
            self._hear(worker, message)

    def _hear(self, worker: str, message: Heard) -> None:
        raise NotImplementedError

    def release(self, worker: str) -> None:
        """Send a worker home."""
        self._server.send(worker, Release())

    def close(self) -> None:
        """Receive no more workers."""
        self._server.close()


class Reception(WorkerReception[FromWorker]):
    """Has its workers run trials.

    Args:
        folder: Where trials leave what they write.
        inherits: Whether workers inherit their connections.
    """

    def __init__(self, folder: Path, *, inherits: bool = False) -> None:
        payload = Payload(function=pickle.dumps(_train), sys_path=list(sys.path), launch_dir=str(folder))
        super().__init__(folder, WORKER_PROGRAM, payload.encode(), decode_from_worker, inherits=inherits)
        self.results: dict[str, AttemptEnd] = {}

    def _hear(self, worker: str, message: FromWorker) -> None:
        if isinstance(message, Ended):
            self.results[worker] = message.body

    def assign(self, worker: str, trial: int, *, waits: bool = False) -> None:
        """Have a worker run a trial that returns its number or, with `waits`, never ends and starts a process."""
        params = {"marker": str(self._marker(worker)), "waits": waits}
        self._server.send(worker, Assign(trial, 1, Assignment(params, seed=trial)))

    def processes_of(self, worker: str) -> list[int]:
        """Return the process in which user code runs and the one that this has started, once it has."""
        marker = self._marker(worker)
        wait_until(marker.exists, self.let_time_pass, f"the trial on {worker} has started")
        return [int(word) for word in marker.read_text().split()]

    def _marker(self, worker: str) -> Path:
        return self._folder / f"processes-of-{worker}"


class CalculatorReception(WorkerReception[programs.Heard]):
    """Has its workers run a program that knows no trial.

    Args:
        folder: Where it may write.
        reuse: Whether runners are reused.
        inherits: Whether workers inherit their connections.
    """

    def __init__(self, folder: Path, *, reuse: bool = False, inherits: bool = False) -> None:
        super().__init__(folder, programs.MODULE, b"hello", programs.decode_heard, reuse=reuse, inherits=inherits)
        self.answers: list[programs.Answer] = []
        self.ends: list[Ended[programs.Answer] | Died] = []
        self.output: dict[int, bytes] = {}

    def _hear(self, worker: str, message: programs.Heard) -> None:
        if isinstance(message, Said):
            self.answers.append(message.body)
        elif isinstance(message, Ended | Died):
            self.ends.append(message)
        elif isinstance(message, Output):
            self.output[message.task] = self.output.get(message.task, b"") + message.data

    def begin(self, worker: str, task: int) -> None:
        """Begin a session."""
        self._server.send(worker, Assign(task, 1, programs.Session()))

    def tell(self, worker: str, task: int, kind: programs.Kind, number: int = 0) -> None:
        """Send a question, and do not wait for the answer."""
        self._server.send(worker, Tell(task, 1, programs.Question(kind, number)))

    def ask(self, worker: str, task: int, kind: programs.Kind, number: int = 0) -> programs.Answer:
        """Return the answer to a question."""
        count = len(self.answers)
        self.tell(worker, task, kind, number)
        wait_until(lambda: len(self.answers) > count, self.let_time_pass, f"{worker} has answered")
        return self.answers[-1]

    def halt(self, worker: str, task: int, grace_s: float) -> None:
        """Ask for the end of a session, and force it after some time."""
        self._server.send(worker, Halt(task, 1, grace_s))

    def await_end(self) -> Ended[programs.Answer] | Died:
        """Return how the next session ends."""
        count = len(self.ends)
        wait_until(lambda: len(self.ends) > count, self.let_time_pass, "the session has ended")
        return self.ends[-1]


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
