"""The network between driver and workers is cut again and again: nothing is lost, nothing arrives twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cargobike import experiment, trial
from cargobike.core.records import Decision
from support.proxied import ProxiedEngine


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
