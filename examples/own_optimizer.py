"""An optimizer of your own: four methods, and `experiment.launch` takes it like a built-in one.

This one climbs: it tries a few random points, then takes ever smaller steps away from the best one so far,
and stops trials that look worse than everything before.

    python examples/own_optimizer.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cargobike import AbstractOptimizer, Searchspace, Trial, experiment, trial


class Climber(AbstractOptimizer):
    """Random starts, then shrinking steps around the best trial."""

    def __init__(self, starts: int = 5) -> None:
        self.starts = starts

    def initialize(self) -> None:
        """Prepare; `self.space`, `self.direction` and `self.rng` are known by now."""
        self.sign = 1 if self.direction == "max" else -1
        self.asked = 0

    def get_suggestion(self, trial: Trial | None = None) -> dict[str, Any]:
        """Return the next point to try; the driver stops asking after `num_trials`."""
        self.asked += 1
        best = max(self.final_store, key=self.score, default=None)
        if best is None or self.asked <= self.starts:
            return {name: self.rng.uniform(-2, 2) for name in self.space.names}
        width = 2 / (self.asked - self.starts) ** 0.5
        point = {name: value + self.rng.gauss(0, width) for name, value in best.params.items()}
        return {name: max(-2.0, min(2.0, value)) for name, value in point.items()}

    def early_check(self, to_check: Sequence[Trial], trials: Sequence[Trial], direction: str) -> list[Trial]:
        """Return those trials whose last report is worse than the result of every completed trial."""
        results = [self.sign * done.value for done in trials if done.value is not None]
        if len(results) < self.starts:
            return []
        return [each for each in to_check if self.sign * each.metric_history[-1] < min(results)]

    def finalize_experiment(self, trials: Sequence[Trial]) -> None:
        """Look back once, after the last trial."""
        self.summary = f"climbed for {len(trials)} trials"

    def score(self, ended: Trial) -> float:
        """Return how good a trial is; failed and stopped ones have no value."""
        return float("-inf") if ended.value is None else self.sign * ended.value


def descend(x: float, y: float) -> float:
    """Walk downhill in a long bent valley and return the height reached; its lowest point is 0, at (1, 1)."""
    for step in range(10):
        height = (1 - x) ** 2 + 100 * (y - x**2) ** 2
        trial.report(height=height, step=step)
        slope_x, slope_y = -2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)
        x, y = x - 1e-4 * slope_x, y - 1e-4 * slope_y
    return height


if __name__ == "__main__":
    optimizer = Climber()
    space = Searchspace(x=("DOUBLE", [-2.0, 2.0]), y=("DOUBLE", [-2.0, 2.0]))
    result = experiment.launch(descend, space, optimizer=optimizer, num_trials=60, direction="min", seed=3)
    print(optimizer.summary)
    print(result)
