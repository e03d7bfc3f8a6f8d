"""Real deployments for tests: models that break in every way, requests that never stop, processes to kill."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil

from cargobike.core.errors import CargobikeError
from cargobike.core.registering.modelling import KeptModel, model_keeper
from cargobike.serving.deploying import _paths, deploy, launch_deployment
from cargobike.serving.handle import Deployment
from cargobike.serving.predicting import Client
from cargobike.serving.specification import Specification
from cargobike.serving.supervising.config import Local
from cargobike.store.files import project


class Times:
    """Multiplies; `[factor, row]` says which version answered what."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Answer rows, or break as the row says."""
        for row in rows:
            if row == "segfault":
                ctypes.string_at(0)
            if row == "hang":
                time.sleep(600)
            if row == "leak":
                self.hoard = bytearray(200 << 20)
            if row == "print":
                print("a word of the model")
        return [os.getpid() if row == "pid" else [self.factor, row] for row in rows]


class Unloadable(Times):
    """Cannot be unpickled, and so not be loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Raise an error when it is loaded."""
        return (_refuse_to_load, ())


def _refuse_to_load() -> None:
    raise OSError("the weights are not there")


def register(name: str, model: Any) -> KeptModel:
    """Keep a model as the next version."""
    return model_keeper().register(name, model)


def short_lived(name: str, model: Any, grace_s: float, **settings: Any) -> Deployment:
    """Deploy with another grace time than users get, in the background."""
    kept = register(name, model)
    specification = Specification(name=name, model=name, version=kept.version, **settings)
    return launch_deployment(project.prepare(), specification, Local(paths=_paths()), detach=True, grace_s=grace_s)


@contextlib.contextmanager
def served(name: str = "times", model: Any = None, **settings: Any) -> Iterator[Deployment]:
    """Serve a model for the length of a `with` block, whatever becomes of its processes."""
    deployment = deploy(name, model or Times(1), **settings)
    try:
        yield deployment
    finally:
        deployment.stop()


class Requests:
    """Sends requests in threads, without a pause, and checks every answer.

    Attributes:
        failures: What was not answered as it should be: status and words, or the error of a connection.
        answered: How many requests were.
        slowest_s: How long the slowest took.
    """

    def __init__(self, url: str, threads: int = 4, *, retries: bool = False) -> None:
        self.failures: list[str] = []
        self.answered = 0
        self.slowest_s = 0.0
        self.versions: set[int] = set()
        self._url = url
        self._retries = retries
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._rounds = [0] * threads
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(threads)]

    def __enter__(self) -> Requests:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int, timeout_s: float = 30.0) -> None:
        """Wait until so many more were answered."""
        goal = self.answered + more
        wait_until(lambda: self.answered >= goal, timeout_s)

    def wait_for_all(self, timeout_s: float = 30.0) -> None:
        """Wait until every request that is under way now has ended, and another one of its thread."""
        goals = [count + 2 for count in self._rounds]
        wait_until(lambda: all(count >= goal for count, goal in zip(self._rounds, goals, strict=True)), timeout_s)

    def _ask(self, number: int) -> None:
        client, count = Client(self._url), number * 1_000_000
        while not self._stop.is_set():
            count += 1
            began = time.monotonic()
            try:
                factor, row = self._answer(client, count)
                problem = "" if row == count else f"{row} for {count}"
            except (OSError, CargobikeError, ValueError, TypeError) as error:
                problem, factor = repr(error), 0
                client.close()
            with self._lock:
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                self._rounds[number] += 1
                if problem:
                    self.failures.append(problem)
                else:
                    self.answered += 1
                    self.versions.add(factor)
        client.close()

    def _answer(self, client: Client, row: int) -> Any:
        if self._retries:
            return client.predict(row, 30.0)
        status, _, data = client._post(str(row).encode(), 30.0)
        if status != 200:
            raise ValueError(f"{status}: {data.decode()}")
        factor, answer = data.decode().strip("[]").split(",")
        return int(factor), int(answer)


def wait_until(is_so: Callable[[], Any], timeout_s: float = 30.0) -> None:
    """Wait until something is so, and fail if it does not become so."""
    give_up_at = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < give_up_at, "it did not become so"
        time.sleep(0.01)


def replica_processes(deployment: Deployment) -> list[psutil.Process]:
    """Return the processes of all replicas."""
    found = []
    for pid in deployment.status().host_pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            found += psutil.Process(pid).children()
    return found


def all_processes(deployment: Deployment) -> list[int]:
    """Return supervisor, front, hosts and replicas."""
    status = deployment.status()
    return [status.pid, status.front_pid, *status.host_pids, *(each.pid for each in replica_processes(deployment))]


def kill(*pids: int) -> None:
    """End processes as `kill -9` does."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def lives(pid: int) -> bool:
    """Tell whether a process runs, and is not just waiting to be reaped."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
