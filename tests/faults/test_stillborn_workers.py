"""Workers that die before they say a word: while their host boots, imports, forks or connects."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from cargobike import experiment
from cargobike.core.errors import ExperimentFailedError
from cargobike.engines.engine import WorkerSpec
from cargobike.engines.local.engine import LocalEngine, LocalHandle
from cargobike.workers.wire.connection import AgentConfig
from support.far_engine import KeyedEngine
from support.watching import wait_for


class DeadlyEngine(LocalEngine):
    """Kills something right after it was started, some times."""

    def __init__(self, kill: Callable[[LocalEngine, LocalHandle], None], times: int) -> None:
        super().__init__(cores=2, gpus=("0", "1"))
        self.kill_it = kill
        self.times = times

    def start_worker(self, spec: WorkerSpec) -> LocalHandle:
        handle = super().start_worker(spec)
        if self.times:
            self.times -= 1
            self.kill_it(self, handle)
        return handle


def _the_host(engine: LocalEngine, handle: LocalHandle) -> None:
    assert engine._host is not None
    engine._host.process.kill()


def _the_agent(engine: LocalEngine, handle: LocalHandle) -> None:
    wait_for(lambda: handle.poll() is None and handle.pid is not None, "the agent's birth")
    assert handle.pid is not None
    os.kill(handle.pid, signal.SIGKILL)
    # On a busy machine that takes a while, in which the driver would hear its greeting and give it a trial.
    wait_for(lambda: handle.poll() is not None, "the agent's end")


@pytest.mark.parametrize("kill", [_the_host, _the_agent])
def test_they_are_replaced(kill: Callable[[Any, Any], None]) -> None:
    engine = DeadlyEngine(kill, times=3)
    result = experiment.launch(lambda x: x, {"x": [0, 1, 2, 3]}, workers=2, engine=engine, quiet=True)
    assert [ended.value for ended in result.trials] == [0.0, 1.0, 2.0, 3.0]
    assert {ended.attempts for ended in result.trials} == {1}
    facts = [json.loads(line) for line in (result.folder / "journal.jsonl").read_text().splitlines()]
    assert sum(fact["fact"] == "worker-lost" for fact in facts) >= 1


class StoppingEngine(LocalEngine):
    """Stops its host before it orders the second worker from it."""

    def __init__(self) -> None:
        super().__init__(cores=2, gpus=())
        self.handles: list[LocalHandle] = []

    def start_worker(self, spec: WorkerSpec) -> LocalHandle:
        if len(self.handles) == 1:
            first = self.handles[0]
            wait_for(lambda: first.poll() is None and first.pid is not None, "the first agent's birth")
            assert self._host is not None
            os.kill(self._host.process._pid, signal.SIGSTOP)
        self.handles.append(super().start_worker(spec))
        return self.handles[-1]


def test_a_host_that_stands_still_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cargobike.engines.local.engine._FORK_S", 0.5)
    engine = StoppingEngine()
    result = experiment.launch(lambda x: x, {"x": [0, 1, 2, 3]}, workers=2, gang=2, engine=engine, quiet=True)
    assert result.counts == {"completed": 4}
    assert len(engine.handles) > 2


def test_when_all_die_the_experiment_is_given_up_with_the_last_reason() -> None:
    engine = DeadlyEngine(_the_agent, times=1000)
    # On a busy machine some of them live long enough to be given a trial.
    with pytest.raises(ExperimentFailedError, match=r"(workers were lost in a row|lost attempts)(.|\n)*SIGKILL"):
        experiment.launch(lambda x: x, {"x": [0, 1, 2, 3]}, workers=2, engine=engine, quiet=True)


def test_a_host_that_cannot_import_cargobike_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cargobike.experiments.asking.launching.WORKER_PROGRAM", "cargobike.no_such_program")
    monkeypatch.setattr("cargobike.experiments.driving.conduct.WORKER_PROGRAM", "cargobike.no_such_program")
    with pytest.raises(ExperimentFailedError, match=r"No module named 'cargobike\.no_such_program'"):
        experiment.launch(lambda x: x, {"x": [0]}, engine=LocalEngine(), quiet=True)


class ForgetfulEngine(KeyedEngine):
    """Starts its first worker with keys that the driver does not know."""

    def __init__(self) -> None:
        super().__init__(cores=2, gpus=())
        self.handles: list[LocalHandle] = []

    def start_worker(self, spec: WorkerSpec) -> LocalHandle:
        if not self.handles:
            public, secret = zmq.curve_keypair()
            config = msgspec.structs.replace(AgentConfig.decode(spec.config), public_key=public, secret_key=secret)
            spec = msgspec.structs.replace(spec, config=config.encode())
        self.handles.append(super().start_worker(spec))
        return self.handles[-1]


def test_a_worker_that_the_driver_refuses_ends_by_itself(tmp_path: Path) -> None:
    engine = ForgetfulEngine()

    def train(x: int) -> float:
        wait_for((tmp_path / "lost").exists, "the refused worker to end")
        return x

    class Watch:
        def on_facts(self, facts: Any) -> None:
            if any(type(fact).__name__ == "WorkerLost" for fact in facts):
                (tmp_path / "lost").touch()

    result = experiment.launch(train, {"x": [1, 2]}, workers=2, engine=engine, callbacks=[Watch()], quiet=True)
    assert result.counts == {"completed": 2}
    assert str(engine.handles[0].poll()) == "exited with code 1"
