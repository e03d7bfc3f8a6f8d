"""A contract suite for engines.

Write your own `Engine`, then:

```python
class TestMyEngine(ProcessEngineContract):
    made_by = "my_package.my_engine:MyEngine"

    def make_engine(self, gpus: tuple[str, ...]) -> Engine:
        return MyEngine(gpus=gpus)
```
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Protocol

import pytest

from cargobike.core.errors import EngineError
from cargobike.core.records import Resources
from cargobike.core.running.ending import Ending, EndKind
from cargobike.engines.engine import Engine, WorkerHandle, WorkerSpec
from cargobike.testing.reception import (
    PATIENCE_S,
    CalculatorReception,
    Reception,
    descendants,
    is_running,
    wait_until,
)
from cargobike.workers.wire.messages import Died, Ended

__all__ = ["Desk", "EngineContract", "ProcessEngineContract"]

ONE_GPU = Resources(gpus=1)
_SOURCE = str(Path(__file__).resolve().parents[2])


class Desk(Protocol):
    """What the suite needs of a reception; `Reception` is one."""

    def spec(self, worker: str, resources: Resources | None = None) -> WorkerSpec:
        """Make what the engine needs to start a worker."""

    def has_come(self, worker: str) -> bool:
        """Tell whether a worker has connected back."""

    def let_time_pass(self) -> None:
        """Wait until something may have happened."""

    def close(self) -> None:
        """Stop receiving workers."""


class EngineContract(ABC):
    """What holds for every engine, wherever its workers live."""

    @abstractmethod
    def make_engine(self, gpus: tuple[str, ...]) -> Engine:
        """Make the engine under test, with these devices to hand out."""

    @abstractmethod
    def make_desk(self, engine: Engine, folder: Path) -> Desk:
        """Make what its workers connect to."""

    @pytest.fixture
    def engine(self) -> Iterator[Engine]:
        """An engine with two devices."""
        engine = self.make_engine(("left", "right"))
        yield engine
        engine.shutdown()

    @pytest.fixture
    def desk(self, engine: Engine, tmp_path: Path) -> Iterator[Desk]:
        """Where its workers are received; closed after the engine has been shut down."""
        desk = self.make_desk(engine, tmp_path)
        yield desk
        engine.shutdown()
        desk.close()

    def _start(self, engine: Engine, desk: Desk, worker: str, resources: Resources | None = None) -> WorkerHandle:
        """Start a worker and wait until it has come."""
        handle = engine.start_worker(desk.spec(worker, resources))
        wait_until(lambda: desk.has_come(worker), desk.let_time_pass, f"{worker} has come")
        return handle

    def _await_end(self, handle: WorkerHandle, desk: Desk) -> Ending:
        wait_until(lambda: handle.poll() is not None, desk.let_time_pass, f"{handle.name} is gone")
        ending = handle.poll()
        assert ending is not None
        assert str(ending), "it says in words how it ended"
        return ending

    def test_it_has_a_name(self, engine: Engine) -> None:
        """The name that `engine="…"` finds it by."""
        assert engine.name

    def test_a_worker_is_started_without_waiting_for_it(self, engine: Engine, desk: Desk) -> None:
        """It comes by connecting back, later."""
        handle = engine.start_worker(desk.spec("w0"))
        assert not desk.has_come("w0")
        assert handle.name == "w0"
        assert handle.poll() is None
        wait_until(lambda: desk.has_come("w0"), desk.let_time_pass, "w0 has come")
        assert handle.poll() is None

    def test_a_killed_worker_ends_alone_and_says_how(self, engine: Engine, desk: Desk) -> None:
        """The others live on, and a new one can be started."""
        first, second = self._start(engine, desk, "w0"), self._start(engine, desk, "w1")
        first.kill()
        self._await_end(first, desk)
        assert second.poll() is None
        third = self._start(engine, desk, "w2")
        assert [handle.poll() for handle in (second, third)] == [None, None]

    def test_a_worker_can_be_killed_before_it_has_come(self, engine: Engine, desk: Desk) -> None:
        """It may just be on its way."""
        handle = engine.start_worker(desk.spec("w0"))
        handle.kill()
        self._await_end(handle, desk)

    def test_a_handle_can_be_used_after_the_worker_has_ended(self, engine: Engine, desk: Desk) -> None:
        """Its methods may be called at any time, and say the same every time."""
        handle = self._start(engine, desk, "w0")
        handle.kill()
        how = self._await_end(handle, desk)
        handle.kill()
        assert handle.poll() == how
        engine.shutdown()
        handle.kill()
        assert handle.poll() == how

    def test_shutdown_ends_all_workers_and_may_be_repeated(self, engine: Engine, desk: Desk) -> None:
        """Also those that have not come yet."""
        handles = [self._start(engine, desk, "w0"), engine.start_worker(desk.spec("w1"))]
        engine.shutdown()
        assert all(handle.poll() for handle in handles)
        engine.shutdown()

    def test_shutdown_without_workers(self, engine: Engine) -> None:
        """Nothing was started, so there is nothing to end."""
        engine.shutdown()

    def test_capacity_counts_what_fits_at_once(self, engine: Engine) -> None:
        """By devices where a worker wants some."""
        assert engine.capacity(Resources(gpus=0)) >= 1
        assert engine.capacity(ONE_GPU) == 2
        assert engine.capacity(Resources(gpus=0.5)) == 4
        assert engine.capacity(Resources(gpus=2)) == 1

    def test_devices_are_lent_to_one_worker_at_a_time(self, engine: Engine, desk: Desk) -> None:
        """They are free again once the worker is known to be gone."""
        first, second = self._start(engine, desk, "w0", ONE_GPU), self._start(engine, desk, "w1", ONE_GPU)
        assert {*first.gpus, *second.gpus} == {"left", "right"}
        with pytest.raises(EngineError, match="not free"):
            engine.start_worker(desk.spec("w2", ONE_GPU))
        first.kill()
        self._await_end(first, desk)
        assert self._start(engine, desk, "w3", ONE_GPU).gpus == first.gpus

    def test_devices_are_free_after_shutdown(self, engine: Engine, desk: Desk) -> None:
        """An engine object may be used for one experiment after the other."""
        self._start(engine, desk, "w0", ONE_GPU)
        engine.shutdown()
        assert len(self._start(engine, desk, "w1", Resources(gpus=2)).gpus) == 2


class ProcessEngineContract(EngineContract):
    """What holds for engines whose workers are processes on this machine."""

    made_by: ClassVar[str]
    """`module:callable` that makes the engine without arguments, in a process that is going to be killed."""

    inherits: ClassVar[bool] = False
    """Whether its workers inherit their connections (`HandsDown`); else they come over the network."""

    def make_desk(self, engine: Engine, folder: Path) -> Reception:
        """Receive real workers."""
        return Reception(folder, inherits=self.inherits)

    def test_a_worker_says_who_it_is(self, engine: Engine, desk: Reception) -> None:
        """Its name, the version it was started with, its devices."""
        handle = self._start(engine, desk, "w0", ONE_GPU)
        greeting = desk.greetings["w0"]
        assert (greeting.worker, greeting.cargobike, greeting.gpus) == ("w0", "1", handle.gpus)
        assert is_running(greeting.pid)

    def test_workers_run_trials(self, engine: Engine, desk: Reception) -> None:
        """All of them, at once."""
        for trial, worker in enumerate(("w0", "w1")):
            self._start(engine, desk, worker)
            desk.assign(worker, trial)
        wait_until(lambda: len(desk.results) == 2, desk.let_time_pass, "both trials have ended")
        assert {result.outcome for result in desk.results.values()} == {"completed"}

    def test_a_killed_worker_takes_everything_below_along(self, engine: Engine, desk: Reception) -> None:
        """User code, and what that has started; what belongs to others is left alone."""
        handles = {worker: self._start(engine, desk, worker) for worker in ("w0", "w1")}
        for trial, worker in enumerate(handles):
            desk.assign(worker, trial, waits=True)
        doomed, spared = desk.processes_of("w0"), desk.processes_of("w1")
        handles["w0"].kill()
        self._await_end(handles["w0"], desk)
        wait_until(lambda: not any(map(is_running, doomed)), desk.let_time_pass, "everything below w0 has ended")
        assert all(map(is_running, spared))
        assert handles["w1"].poll() is None

    def test_a_released_worker_ends_by_itself(self, engine: Engine, desk: Reception) -> None:
        """It leaves when it is released."""
        handle = self._start(engine, desk, "w0")
        desk.release("w0")
        self._await_end(handle, desk)

    def test_a_worker_that_dies_by_itself_is_noticed_and_not_restarted(self, engine: Engine, desk: Reception) -> None:
        """The driver decides about replacements."""
        handle = self._start(engine, desk, "w0")
        os.kill(desk.greetings["w0"].pid, signal.SIGKILL)
        ending = self._await_end(handle, desk)
        assert ending.kind is EndKind.KILLED
        assert "SIGKILL" in str(ending)
        assert not is_running(desk.greetings["w0"].pid)

    def test_nothing_is_left_after_shutdown(self, engine: Engine, desk: Reception) -> None:
        """Not even a process that user code has started."""
        before = set(descendants(os.getpid()))
        for trial, worker in enumerate(("w0", "w1")):
            self._start(engine, desk, worker)
            desk.assign(worker, trial, waits=True)
        ours = {*desk.processes_of("w0"), *desk.processes_of("w1"), *descendants(os.getpid())} - before
        engine.shutdown()
        wait_until(lambda: not any(map(is_running, ours)), desk.let_time_pass, "everything has ended")

    @pytest.mark.parametrize("owner", ["own", "own_calculators"])
    def test_workers_end_when_their_owner_is_killed(self, desk: Reception, tmp_path: Path, owner: str) -> None:
        """Even if it had no time to say so."""
        program = f"from cargobike.testing.engines import {owner}; {owner}({self.made_by!r}, {str(tmp_path)!r})"
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([_SOURCE, os.environ.get("PYTHONPATH", "")]))
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment, text=True)
        assert process.stdout is not None
        with process:
            try:
                theirs = [int(word) for word in process.stdout.readline().split()]
                assert sum(map(is_running, theirs)) >= 4, "a worker, its runner and what that has started, at least"
            finally:
                process.kill()
        wait_until(lambda: not any(map(is_running, theirs)), desk.let_time_pass, "the orphans have ended")

    @pytest.fixture
    def calculators(self, engine: Engine, tmp_path: Path) -> Iterator[CalculatorReception]:
        """Where workers are received that run a program without trials."""
        reception = CalculatorReception(tmp_path, inherits=self.inherits)
        yield reception
        engine.shutdown()
        reception.close()

    def test_workers_run_any_program(self, engine: Engine, calculators: CalculatorReception) -> None:
        """It gets assignments, is told things, answers, and what it prints is captured."""
        handle = self._start(engine, calculators, "w0")
        pids = set()
        for task in (0, 1):
            calculators.begin("w0", task)
            assert calculators.ask("w0", task, "square", 7).number == 49
            pids.add(calculators.ask("w0", task, "print", task).pid)
            calculators.tell("w0", task, "finish")
            end = calculators.await_end()
            assert isinstance(end, Ended)
            assert (end.task, end.body.number, end.failed) == (task, 49 + task**2, False)
        assert len(pids) == 2, "each assignment has a process of its own"
        calculators.release("w0")
        self._await_end(handle, calculators)
        assert calculators.output == {0: b"hello\n0\n", 1: b"hello\n1\n"}

    def test_a_crash_of_any_program_is_reported_with_its_cause(
        self, engine: Engine, calculators: CalculatorReception
    ) -> None:
        """The next assignment gets a new process; what the dead one has started is gone."""
        self._start(engine, calculators, "w0")
        calculators.begin("w0", 0)
        started = calculators.ask("w0", 0, "start").number
        calculators.ask("w0", 0, "print", 5)
        calculators.tell("w0", 0, "crash", signal.SIGKILL)
        end = calculators.await_end()
        assert isinstance(end, Died)
        assert (end.task, end.code, end.halted, end.killed) == (0, -signal.SIGKILL, False, False)
        assert end.last_output == "hello\n5\n"
        assert not is_running(started)
        calculators.begin("w0", 1)
        calculators.tell("w0", 1, "raise", 13)
        end = calculators.await_end()
        assert isinstance(end, Died)
        assert (end.task, end.code > 0, end.halted) == (1, True, False)
        assert "ValueError: 13 is not a number" in end.last_output
        calculators.begin("w0", 2)
        assert calculators.ask("w0", 2, "square", 3).number == 9

    def test_a_reused_process_takes_one_assignment_after_the_other(self, engine: Engine, tmp_path: Path) -> None:
        """One that has died while it waited is replaced, which costs nothing."""
        calculators = CalculatorReception(tmp_path, reuse=True, inherits=self.inherits)
        try:
            handle = self._start(engine, calculators, "w0")
            pids: list[int] = []
            for task in range(3):
                if task == 2:
                    os.kill(pids[-1], signal.SIGKILL)
                calculators.begin("w0", task)
                pids.append(calculators.ask("w0", task, "square", task).pid)
                calculators.tell("w0", task, "finish")
                assert isinstance(calculators.await_end(), Ended)
            assert pids[0] == pids[1] != pids[2]
            calculators.release("w0")
            self._await_end(handle, calculators)
        finally:
            engine.shutdown()
            calculators.close()

    def test_any_program_is_asked_to_end_and_then_made_to(
        self, engine: Engine, calculators: CalculatorReception
    ) -> None:
        """One that listens says how it ended; one that hangs is killed after its grace."""
        self._start(engine, calculators, "w0")
        calculators.begin("w0", 0)
        calculators.ask("w0", 0, "square", 2)
        calculators.halt("w0", 0, grace_s=PATIENCE_S)
        assert isinstance(calculators.await_end(), Ended)
        calculators.begin("w0", 1)
        calculators.ask("w0", 1, "square", 2)
        calculators.ask("w0", 1, "hang")
        calculators.halt("w0", 1, grace_s=0.2)
        end = calculators.await_end()
        assert isinstance(end, Died)
        assert (end.code, end.halted, end.killed) == (-signal.SIGKILL, True, True)


def own(made_by: str, folder: str) -> None:
    """Own an engine with two busy workers, print the ids of everything below, and wait to be killed."""
    module, _, name = made_by.partition(":")
    engine: Engine = getattr(importlib.import_module(module), name)()
    desk = Reception(Path(folder))
    for trial, worker in enumerate(("w0", "w1")):
        engine.start_worker(desk.spec(worker))
        wait_until(lambda worker=worker: desk.has_come(worker), desk.let_time_pass, "it has come")  # type: ignore[misc]
        desk.assign(worker, trial, waits=True)
    pids = {*desk.processes_of("w0"), *desk.processes_of("w1"), *descendants(os.getpid())}
    sys.stdout.write(" ".join(map(str, sorted(pids))) + "\n")
    sys.stdout.flush()
    signal.pause()


def own_calculators(made_by: str, folder: str) -> None:
    """Own an engine with two busy workers that run no trials, as `own` does."""
    module, _, name = made_by.partition(":")
    engine: Engine = getattr(importlib.import_module(module), name)()
    desk = CalculatorReception(Path(folder))
    pids: set[int] = set()
    for task, worker in enumerate(("w0", "w1")):
        engine.start_worker(desk.spec(worker))
        wait_until(lambda worker=worker: desk.has_come(worker), desk.let_time_pass, "it has come")  # type: ignore[misc]
        desk.begin(worker, task)
        started = desk.ask(worker, task, "start")
        pids |= {started.number, started.pid}
    sys.stdout.write(" ".join(map(str, sorted({*pids, *descendants(os.getpid())}))) + "\n")
    sys.stdout.flush()
    signal.pause()
