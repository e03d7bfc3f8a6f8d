"""The smallest useful search: standard library only, runs in a few seconds.

python examples/quickstart.py
"""

from __future__ import annotations

import math

from cargobike import Searchspace, experiment


def train(x: float, y: float, shape: str) -> float:
    """Stand for a training run: the best score is 1, at x = 0.3, y = 10 and a round shape."""
    distance = (x - 0.3) ** 2 + (math.log10(y) - 1) ** 2
    return 1 - distance - (0.5 if shape == "square" else 0.0)


if __name__ == "__main__":
    space = Searchspace(
        x=("DOUBLE", [0.0, 1.0]),
        y=("DOUBLE", [0.1, 1000.0], "log"),
        shape=("CATEGORICAL", ["round", "square"]),
    )
    result = experiment.launch(train, space, optimizer="random", num_trials=50, direction="max", seed=1)
    print(result)
