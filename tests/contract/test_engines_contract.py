from __future__ import annotations

from pathlib import Path

from cargobike.core.records import Params, Resources
from cargobike.engines.engine import Engine, WorkerSpec
from cargobike.engines.local.engine import LocalEngine
from cargobike.engines.simulated.engine import SimulatedEngine
from cargobike.engines.simulated.world import Cluster, Joined, SimulatedRun
from cargobike.testing.engines import Desk, EngineContract, ProcessEngineContract


class TestLocalEngine(ProcessEngineContract):
    made_by = "cargobike.engines.local.engine:LocalEngine"
    inherits = True

    def make_engine(self, gpus: tuple[str, ...]) -> Engine:
        return LocalEngine(gpus=gpus)


class TestLocalEngineOverTheNetwork(TestLocalEngine):
    """As Spark's tasks use it: its workers have keys, and a template of their own."""

    inherits = False


def no_training(params: Params, seed: int) -> SimulatedRun:
    return SimulatedRun(steps=[], value=0.0)


class TestSimulatedEngine(EngineContract):
    def make_engine(self, gpus: tuple[str, ...]) -> Engine:
        return SimulatedEngine(no_training, Cluster(startup_s=10.0), gpus=gpus)

    def make_desk(self, engine: Engine, folder: Path) -> Desk:
        assert isinstance(engine, SimulatedEngine)
        return PaperDesk(engine)


class PaperDesk:
    """Receives workers in virtual time."""

    def __init__(self, engine: SimulatedEngine) -> None:
        self._engine = engine
        self._come: set[str] = set()

    def spec(self, worker: str, resources: Resources | None = None) -> WorkerSpec:
        given = resources or Resources(gpus=0)
        return WorkerSpec(name=worker, module="", config=b"", payload=b"", resources=given)

    def has_come(self, worker: str) -> bool:
        return worker in self._come

    def let_time_pass(self) -> None:
        assert self._engine.next_at is not None, "nothing will ever happen"
        self._come |= {what.worker for what in self._engine.advance() if isinstance(what, Joined)}

    def close(self) -> None:
        pass
