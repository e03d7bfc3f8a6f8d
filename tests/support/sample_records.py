"""Experiments made of facts, as a driver would have written them: quick, and always the same."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from cargobike.core.facts import (
    AnyFact,
    AttemptLost,
    AttemptStarted,
    ExperimentEnded,
    Reported,
    TrialEnded,
    TrialSuggested,
    WorkerJoined,
    pack_number,
    pack_numbers,
)
from cargobike.core.record import ExperimentRecord, fold
from cargobike.core.records import Direction
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.journals import first_fact

START_S = 1_800_000_000.0
HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>&amp;\x1b[31m\x00\u2028'\""

SPACE = Searchspace(
    lr=("DOUBLE", [1e-4, 1e-1], "log"),
    layers=("INTEGER", [1, 5]),
    act=["relu", "gelu", "silu"],
    batch=("DISCRETE", [128, 32, 64]),
    optimizer=["sgd", "adam"],
    momentum=("DOUBLE", [0.5, 0.99], "reverse-log", {"when": {"optimizer": "sgd"}}),
)


class Story:
    """Collects facts; one second passes with each."""

    def __init__(self, space: Searchspace | None = None, *, direction: Direction = "max", **header: Any) -> None:
        told = {"name": "digits", "function": "train.py:train", "optimizer": "random", "direction": direction, **header}
        described = None if space is None else space.describe()
        self.now_s = START_S
        self.facts: list[AnyFact] = [first_fact(at=START_S, id="20270115-080000-abcd", space=described, **told)]
        self.trials = 0

    def tick(self, seconds: float = 1.0) -> float:
        self.now_s += seconds
        return self.now_s

    def add(self, *facts: AnyFact) -> None:
        self.facts += facts

    def join(self, worker: str) -> None:
        self.add(WorkerJoined(at=self.tick(), worker=worker, host="tower", pid=1))

    def start(self, params: dict[str, Any], worker: str = "w0", info: dict[str, Any] | None = None) -> int:
        number, self.trials = self.trials, self.trials + 1
        self.add(TrialSuggested(at=self.now_s, trial=number, params=params, seed=number, info=info or {}))
        self.add(AttemptStarted(at=self.tick(), trial=number, attempt=1, workers=(worker,)))
        return number

    def report(self, number: int, values: Sequence[float], name: str = "accuracy", first: int = 0) -> None:
        for step, value in enumerate(values, first):
            self.add(Reported(at=self.tick(), trial=number, step=step, metrics={name: pack_number(value)}))

    def complete(self, number: int, value: float, **metrics: float) -> None:
        self.add(
            TrialEnded(
                at=self.tick(),
                trial=number,
                state="completed",
                value=pack_number(value),
                metrics=pack_numbers(metrics),
            )
        )

    def stop(self, number: int) -> None:
        self.add(TrialEnded(at=self.tick(), trial=number, state="stopped"))

    def fail(self, number: int, error: str = "Traceback\nValueError: no") -> None:
        self.add(TrialEnded(at=self.tick(), trial=number, state="failed", error=error))

    def lose(self, number: int, reason: str = "worker w0 was killed") -> None:
        self.add(AttemptLost(at=self.tick(), trial=number, attempt=1, reason=reason))
        self.add(AttemptStarted(at=self.tick(), trial=number, attempt=2, workers=("w0",)))

    def end(self) -> ExperimentRecord:
        return fold([*self.facts, ExperimentEnded(at=self.tick(), state="completed")])

    def so_far(self) -> ExperimentRecord:
        return fold(self.facts)


def sampled(
    space: Searchspace,
    function: Callable[[dict[str, Any], random.Random], float],
    count: int,
    *,
    seed: int = 0,
    direction: Direction = "max",
) -> ExperimentRecord:
    """Return an experiment whose completed trials were drawn from a space."""
    rng = random.Random(seed)
    story = Story(space, direction=direction)
    story.join("w0")
    for _ in range(count):
        params = space.sample(rng)
        story.complete(story.start(params), function(params, rng))
    return story.end()


def lively(count: int = 40, *, direction: Direction = "max", space: Searchspace = SPACE) -> ExperimentRecord:
    """Return a search with everything in it: curves, stopped, failed, lost and retried trials, several metrics."""
    return lively_story(count, direction=direction, space=space).end()


def lively_story(count: int = 40, *, direction: Direction = "max", space: Searchspace = SPACE) -> Story:
    """Return the facts of a search with everything in it, without its end."""
    rng = random.Random(3)
    sign = 1 if direction == "max" else -1
    story = Story(space, direction=direction, metric="accuracy", num_trials=count, workers=2)
    story.join("w0")
    story.join("w1")
    for index in range(count):
        params = space.sample(rng)
        number = story.start(params, worker=f"w{index % 2}")
        score = 0.9 - 0.1 * (math.log10(params["lr"]) + 2) ** 2 - 0.02 * params["layers"]
        if index % 7 == 3:
            story.lose(number)
        if index % 9 == 5:
            story.report(number, [sign * 0.1])
            story.fail(number)
        elif index % 4 == 3:
            story.report(number, [sign * score * 0.3, sign * score * 0.5])
            story.stop(number)
        else:
            story.report(number, [sign * score * (1 - 0.5**step) for step in range(1, 9)])
            story.complete(number, sign * score, accuracy=sign * score, latency_ms=5.0 + params["layers"])
    return story


def compromising(count: int = 30) -> ExperimentRecord:
    """Return a search after two objectives, with a limit that some trials break."""
    rng = random.Random(5)
    space = Searchspace(layers=("INTEGER", [1, 8]), lr=("DOUBLE", [0.0, 1.0]))
    goals: Any = {"objectives": {"accuracy": "max", "latency_ms": "min"}, "constraints": ("latency_ms <= 7",)}
    story = Story(space, **goals)
    story.join("w0")
    for _ in range(count):
        params = space.sample(rng)
        number = story.start(params)
        metrics = {"accuracy": params["layers"] / 10 + 0.1 * params["lr"], "latency_ms": float(params["layers"])}
        story.add(TrialEnded(at=story.tick(), trial=number, state="completed", metrics=pack_numbers(metrics)))
    return story.end()


def hostile() -> ExperimentRecord:
    """Return a search in which every text was written by somebody who means harm."""
    return hostile_story().end()


def hostile_story() -> Story:
    """Return the facts of a search in which every text means harm, without its end."""
    story = Story(
        Searchspace({HOSTILE: [HOSTILE, "calm"], "lr": ("DOUBLE", [0.0, 1.0])}),
        name=HOSTILE,
        description=HOSTILE,
        function=HOSTILE,
        user=HOSTILE,
        host=HOSTILE,
    )
    story.join("w0")
    rng = random.Random(1)
    for index in range(14):
        number = story.start({HOSTILE: [HOSTILE, "calm"][index % 2], "lr": rng.random()})
        story.report(number, [rng.random(), rng.random()], name=HOSTILE)
        if index % 5 == 4:
            story.lose(number, HOSTILE)
            story.fail(number, f"Traceback\n  {HOSTILE}\nValueError: {HOSTILE}")
        else:
            story.complete(number, rng.random(), **{HOSTILE: rng.random(), "other": 1.0})
    return story


ABLATION_SCORES: dict[str, list[float | None]] = {
    "baseline": [0.90, 0.80, 0.85],
    "dropout": [0.80, 0.71, 0.74],
    "augment": [0.91, 0.80, 0.86],
    "warmup": [0.95, None, 0.89],
}


def ablated(scores: dict[str, list[float | None]] = ABLATION_SCORES, direction: Direction = "max") -> ExperimentRecord:
    story = Story(direction=direction, metric="accuracy", optimizer="ablation")
    for repeat in range(3):
        for component, values in scores.items():
            changed: dict[str, Any] = {} if component == "baseline" else {component: 0}
            info = {"ablation": component, "repeat": repeat, "changed": changed}
            number = story.start({"lr": 0.1, **changed}, info=info)
            value = values[repeat]
            if value is None:
                story.fail(number)
            else:
                story.complete(number, value if direction == "max" else -value)
    return story.end()
