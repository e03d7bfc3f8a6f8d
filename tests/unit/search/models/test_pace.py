"""Which workers keep up, told from running counts: the same as if every worker were looked at for each decision."""

from __future__ import annotations

import random

import pytest

from cargobike.core.records import Curve, Trial
from cargobike.search.models.rungs import Pace
from cargobike.search.optimizers import asha
from cargobike.simulation import Cluster, SimulatedRun, simulate


class PaceOfAll:
    """What `Pace` promises, said in the plainest way: a maximum over all workers whenever one is needed."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}
        self._seen: dict[int, int] = {}

    def count(self, trial: Trial) -> None:
        if trial.worker is not None:
            before = self._done.get(trial.worker, max(self._done.values(), default=0))
            self._done[trial.worker] = before + max(0, len(trial.curve) - self._seen.get(trial.number, 0))
        self._seen[trial.number] = len(trial.curve)

    def keeps_up(self, worker: str | None) -> bool:
        return worker is None or 2 * self._done.get(worker, 0) >= max(self._done.values(), default=0)


@pytest.mark.parametrize("seed", range(20))
def test_decisions_about_random_reports_are_those_of_a_look_at_all_workers(seed: int) -> None:
    chance = random.Random(seed)
    pace, plain = Pace(), PaceOfAll()
    workers = [None, *(f"w{number}" for number in range(chance.randint(1, 9)))]
    curves = [Curve() for _ in range(12)]
    verdicts = set()
    for _ in range(400):
        number = chance.randrange(len(curves))
        curve = curves[number]
        for _ in range(chance.choice((0, 1, 1, 2, 9))):
            curve.add(len(curve), 0.5)
        if chance.random() < 0.1:  # a later attempt starts over, or goes on from a checkpoint
            curve.rewind(chance.randint(1, len(curve) + 1))
        trial = Trial({}, number=number, worker=chance.choice(workers), curve=curve)
        pace.count(trial)
        plain.count(trial)
        asked = chance.choice([*workers, "never seen"])
        assert pace.keeps_up(asked) == plain.keeps_up(asked)
        verdicts.add(pace.keeps_up(asked))
    assert verdicts == {True, False}


@pytest.mark.parametrize("optimizer", ["asha", "hyperband"])
@pytest.mark.parametrize("seed", range(3))
def test_whole_searches_write_the_same_journal(optimizer: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(params: dict[str, float], seed: int) -> SimulatedRun:
        step_s = random.Random(seed).uniform(5.0, 15.0)
        steps = [(step_s, {"score": params["x"] * (1 - 0.5**step)}) for step in range(1, 10)]
        return SimulatedRun(steps=steps, value=params["x"])

    cluster = Cluster(speeds=(1.0, 1.0, 0.1, 2.0, 0.3), mean_time_to_failure_s=300.0, seed=seed)

    def journal() -> list[object]:
        found = simulate(
            train,
            {"x": ("DOUBLE", [0, 1])},
            optimizer=optimizer,
            num_trials=150,
            workers=10,
            seed=seed,
            cluster=cluster,
            keep_facts=True,
        )
        return list(found.facts)

    ours = journal()
    monkeypatch.setattr(asha, "Pace", PaceOfAll)
    assert len(ours) > 500
    assert ours == journal()
