"""An optimizer of your own: four methods, and `experiment.launch` takes it like a built-in one.

This one climbs: it tries a few random points, then takes ever smaller steps away from the best one so far.

    python examples/own_optimizer.py
"""

from __future__ import annotations

from collections.abc import Sequence

from cargobike import AbstractOptimizer, Searchspace, experiment
from cargobike.core.records import Direction, Params, Trial, best_of


class HillClimber(AbstractOptimizer):
    """Random starts, then shrinking steps around the best trial."""

    def __init__(self, starts: int = 5) -> None:
        self.starts = starts

    def initialize(self) -> None:
        """Forget everything: called once, before the first suggestion."""
        self.asked = 0

    def get_suggestion(self, trial: Trial | None = None) -> Params | None:
        """Return the next point to try, or `None` when there have been enough."""
        if self.num_trials is not None and self.asked >= self.num_trials:
            return None
        self.asked += 1
        best = best_of(self.final_store, self.direction)
        if best is None or self.asked <= self.starts:
            return {name: self.rng.uniform(-2, 2) for name in ("x", "y")}
        width = 2 / (self.asked - self.starts) ** 0.5
        # Steps must not leave the space; a suggestion outside it would be refused.
        return {name: max(-2, min(2, best.params[name] + self.rng.gauss(0, width))) for name in ("x", "y")}

    def early_check(
        self, to_check: Sequence[Trial], trials: Sequence[Trial], direction: Direction
    ) -> list[Trial]:
        """Stop no trial early."""
        return []

    def finalize_experiment(self, trials: Sequence[Trial]) -> None:
        """Look back once, after the last trial."""
        best = best_of(list(trials), self.direction)
        self.summary = f"{len(trials)} trials, best {best.value if best else None}"


def valley(x: float, y: float) -> float:
    """Return the height of a long bent valley; its lowest point is 0, at (1, 1)."""
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


if __name__ == "__main__":
    optimizer = HillClimber()
    space = Searchspace(x=("DOUBLE", [-2.0, 2.0]), y=("DOUBLE", [-2.0, 2.0]))
    result = experiment.launch(valley, space, optimizer=optimizer, num_trials=60, direction="min", seed=3)
    print(optimizer.summary)
    print("lowest", result.best.metric, "at", result.best.params)
