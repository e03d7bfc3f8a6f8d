"""What holds for every test: a project of its own, and nothing left running afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import psutil
import pytest

if TYPE_CHECKING:
    from pyspark import SparkContext

    from cargobike.engines.spark.session import OwnContext
    from cargobike.testing.spark_cluster import SparkCluster

PROJECT_VARIABLE = "CARGOBIKE_PROJECT"
GRACE_S = 5.0
ROOT = Path(__file__).resolve().parents[1]
MAY_APPEAR = {".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "__pycache__"}
"""What tools keep in the folder of the repository, and git ignores."""

# No deadlines anywhere: how long an example takes says more about the machine than about the code. `ci` tries
# the same examples each time, so that a red run is about the change; `dev` tries new ones and prints how to
# repeat a failure.
hypothesis.settings.register_profile("dev", deadline=None, print_blob=True)
hypothesis.settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True, database=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


_shared: set[int] = set()
"""Processes that were started during a test, for all that follow."""

SPARK_GPUS = ("left", "right")


@pytest.fixture(scope="session")
def spark_cluster(_no_test_writes_beside_the_code: None) -> Iterator[SparkCluster]:
    """A master and two workers, with four cores and two made-up GPUs each: one for all tests, as it takes time."""
    from cargobike.testing.spark_cluster import SparkCluster

    with SparkCluster(cores=4, gpus=SPARK_GPUS) as cluster:
        yield cluster


class SparkApplications:
    """Gives tests an application on the cluster: the same one, as long as they ask for the same settings."""

    def __init__(self, cluster: SparkCluster) -> None:
        self.cluster = cluster
        self._now: OwnContext | None = None
        self._settings: dict[str, str] = {}

    def context(self, **settings: str) -> SparkContext:
        """Return a context with these settings, dots as double underscores; by default an executor on each worker."""
        from cargobike.engines.spark.session import OwnContext

        chosen = self.cluster.settings(
            **{
                "spark__executor__cores": "2",
                "spark__executor__resource__gpu__amount": "2",
                "spark__task__resource__gpu__amount": "0.5",
                **settings,
            }
        )
        if self._now is None or chosen != self._settings or self._now.context._jsc is None:
            self.close()
            self._now, self._settings = OwnContext(self.cluster.master, chosen), chosen
            if self._now.java_pid is not None:
                _shared.add(self._now.java_pid)
            self._await_executors(int(chosen.get("spark.cores.max", "4")), chosen)
        return self._now.context

    def _await_executors(self, cores: int, settings: dict[str, str]) -> None:
        """Wait until the executors are there, except those that come when they are needed."""
        if settings.get("spark.dynamicAllocation.enabled") == "true" or self._now is None:
            return
        deadline = time.monotonic() + 60.0
        while self._now.context.defaultParallelism < cores:
            assert time.monotonic() < deadline, f"the executors did not come\n{self.cluster.words()}"
            time.sleep(0.05)

    def close(self) -> None:
        """Stop the application that runs."""
        if self._now is not None:
            self._now.stop()
            self._now = None


@pytest.fixture(scope="session")
def spark_applications(spark_cluster: SparkCluster) -> Iterator[SparkApplications]:
    """Applications on the cluster, one at a time."""
    applications = SparkApplications(spark_cluster)
    yield applications
    applications.close()


@pytest.fixture
def spark_application(spark_applications: SparkApplications) -> SparkContext:
    """The application for tests that leave it as it was."""
    return spark_applications.context()


class _Births:
    """Counts the processes that this one starts, through the interpreter's own announcements."""

    EVENTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})

    def __init__(self) -> None:
        self.count = 0
        sys.addaudithook(self._notice)

    def _notice(self, event: str, _: tuple[object, ...]) -> None:
        if event in self.EVENTS:
            self.count += 1


_births = _Births()


@pytest.fixture(scope="session", autouse=True)
def _signals_of_a_terminal() -> Iterator[None]:
    """Let scripts that tests start hear what `nohup` would keep from them."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="session", autouse=True)
def _no_test_writes_beside_the_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give fixtures that live longer than a test a project too, and see that no test writes into the repository."""
    before = set(os.listdir(ROOT))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PROJECT_VARIABLE, str(tmp_path_factory.mktemp("session-project")))
        yield
    if strays := set(os.listdir(ROOT)) - before - MAY_APPEAR:
        pytest.fail(f"the tests wrote beside the code: {', '.join(sorted(strays))}")


@pytest.fixture(autouse=True)
def _own_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test a project folder of its own, and fail it if it leaves a process behind."""
    monkeypatch.setenv(PROJECT_VARIABLE, str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])  # a file whose function is launched leaves its folder there
    births, before = _births.count, _children()
    yield
    if door := sys.modules.get("cargobike.store.files.project"):
        door.use(None)  # what a test chose must not reach the next one
    if _births.count == births and _children() <= before:
        return
    left = _wait_for_end(before | _shared, tmp_path)
    descriptions = [_describe(process) for process in left]
    for process in left:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    if left:
        pytest.fail("left running after the test:\n  " + "\n  ".join(descriptions))


def _children() -> set[int]:
    """Return the ids of our direct children; psutil would read every process there is for that."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found.update(int(word) for word in (task / "children").read_text().split())
        except OSError:  # the thread ended, or this kernel keeps no such list
            continue
    return found


def _wait_for_end(before: set[int], project: Path) -> list[psutil.Process]:
    """Return those processes of the test that do not end by themselves within the grace period."""
    deadline = time.monotonic() + GRACE_S
    while True:
        left = [process for process in _ours(project, before) if _runs(process)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def _ours(project: Path, before: set[int]) -> list[psutil.Process]:
    """Return our descendants, and orphans that carry the test's project in their environment.

    What is below a process that was there before the test (a cluster that many tests share) is not the test's.
    """
    found: dict[int, psutil.Process] = {}
    for child in psutil.Process().children():
        if child.pid in before:
            continue
        found[child.pid] = child
        with contextlib.suppress(psutil.NoSuchProcess):
            found.update((process.pid, process) for process in child.children(recursive=True))
    for process in psutil.process_iter():
        if process.pid in found or process.pid in before or process.pid == os.getpid():
            continue
        try:
            if process.environ().get(PROJECT_VARIABLE) == str(project):
                found[process.pid] = process
        except (psutil.Error, OSError):
            continue
    return list(found.values())


def _runs(process: psutil.Process) -> bool:
    """Tell whether a process is alive and not one that Python keeps for itself until it exits."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return "multiprocessing.resource_tracker" not in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {process.status()} {' '.join(process.cmdline()) or process.name()}"
    except psutil.Error:
        return f"{process.pid} (gone meanwhile)"
