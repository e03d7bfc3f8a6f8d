"""The network between driver and workers is cut again and again: nothing is lost, nothing arrives twice."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cargobike import experiment, trial
from cargobike.core.records import Decision
from cargobike.engines.engine import WorkerSpec
from cargobike.engines.local import LocalEngine, LocalHandle
from cargobike.worker.connection import AgentConfig


class Proxy:
    """Passes bytes on between two sides, and cuts all connections when told."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._pairs.append((near, far))
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(4096):
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self) -> None:
        """Close every connection, in the middle of whatever it carries."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                end.close()

    def close(self) -> None:
        self._listener.close()
        self.cut()


class ProxiedEngine(LocalEngine):
    """A local engine whose workers reach the driver only through a proxy."""

    def __init__(self) -> None:
        super().__init__(cores=2, gpus=())
        self.proxy: Proxy | None = None

    def start_worker(self, spec: WorkerSpec) -> LocalHandle:
        config = AgentConfig.decode(spec.config)
        host, _, port = config.address.removeprefix("tcp://").partition(":")
        if self.proxy is None:
            self.proxy = Proxy(host, int(port))
        moved = msgspec.structs.replace(config, address=f"tcp://{host}:{self.proxy.port}")
        return super().start_worker(msgspec.structs.replace(spec, config=moved.encode()))


@pytest.fixture
def engine() -> Iterator[ProxiedEngine]:
    engine = ProxiedEngine()
    yield engine
    if engine.proxy is not None:
        engine.proxy.close()


class _Cuts:
    """Cuts the network after every so many facts."""

    def __init__(self, engine: ProxiedEngine, every: int, times: int) -> None:
        self.engine, self.every, self.times = engine, every, times
        self.seen = 0

    def on_facts(self, facts: Any) -> None:
        self.seen += len(facts)
        if self.engine.proxy is not None and self.times and self.seen >= self.every:
            self.seen = 0
            self.times -= 1
            self.engine.proxy.cut()


@pytest.mark.parametrize("isolation", ["fresh", "reuse"])
def test_every_point_arrives_once_and_in_order(engine: ProxiedEngine, isolation: Any) -> None:
    def train(x: int) -> float:
        for step in range(400):
            trial.report(score=float(step), step=step)
            if step % 20 == 0:
                time.sleep(0.005)
        print("done", x)
        return x

    cuts = _Cuts(engine, every=200, times=6)
    result = experiment.launch(
        train, {"x": list(range(6))}, workers=2, engine=engine, callbacks=[cuts], isolation=isolation, quiet=True
    )
    assert [ended.value for ended in result.trials] == [float(x) for x in range(6)]
    assert {ended.attempts for ended in result.trials} == {1}
    assert [list(ended.curve.steps) for ended in result.trials] == [list(range(400))] * 6
    assert [result.logs(ended) for ended in result.trials] == [f"done {x}\n" for x in range(6)]
    assert engine.proxy is not None
    assert engine.proxy.connections > 4


def test_decisions_arrive_too(engine: ProxiedEngine) -> None:
    class AtThirty:
        def judge(self, trial: Any, step: int, trials: Any, direction: str) -> Decision:
            return Decision.STOP if step == 30 and trial.params["x"] % 2 else Decision.CONTINUE

    def train(x: int) -> float:
        for step in range(40):
            trial.report(score=float(step), step=step)
        return x

    cuts = _Cuts(engine, every=20, times=8)
    result = experiment.launch(
        train, {"x": list(range(4))}, workers=2, engine=engine, callbacks=[cuts], early_stop=AtThirty(), quiet=True
    )
    assert [ended.state.value for ended in result.trials] == ["completed", "stopped"] * 2
    assert [len(ended.curve) for ended in result.trials] == [40, 31, 40, 31]


def test_ends_that_happen_while_the_network_is_down_are_heard_later(engine: ProxiedEngine, tmp_path: Path) -> None:
    class CutAtTheEnd:
        def on_facts(self, facts: Any) -> None:
            if engine.proxy is not None and any(type(fact).__name__ == "Reported" for fact in facts):
                engine.proxy.cut()

    def train(x: int) -> float:
        trial.report(score=1.0)
        return x

    result = experiment.launch(
        train, {"x": list(range(5))}, workers=1, engine=engine, callbacks=[CutAtTheEnd()], quiet=True
    )
    assert [ended.value for ended in result.trials] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert {ended.attempts for ended in result.trials} == {1}
