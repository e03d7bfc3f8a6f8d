"""The search that every dashboard is shown: the same parameters, values and curves for all of them.

Standard library only: it is imported in the peers' own environments.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

START_S = 1_700_000_000.0
PARAMETERS = ("lr", "layers", "act", "batch", "dropout")
METRIC = "accuracy"


@dataclass(frozen=True)
class Run:
    """One trial: its parameters, how it ended and its curve; `value` is `None` unless it completed."""

    number: int
    params: dict[str, Any]
    state: str
    value: float | None
    curve: list[float]


def runs(trials: int, points: int) -> Iterator[Run]:
    """Yield the trials of a search, always the same ones."""
    rng = random.Random(1)
    for number in range(trials):
        params: dict[str, Any] = {
            "lr": 10 ** rng.uniform(-4, -1),
            "layers": rng.randint(1, 5),
            "act": rng.choice(["relu", "gelu", "silu"]),
            "batch": rng.choice([32, 64, 128]),
            "dropout": rng.uniform(0, 0.5),
        }
        score = 0.9 - 0.1 * (math.log10(params["lr"]) + 2) ** 2 - 0.02 * params["layers"] + rng.gauss(0, 0.01)
        state = "failed" if number % 50 == 7 else "stopped" if number % 4 == 3 else "completed"
        curve = [score * (1 - 0.97 ** (step + 1)) for step in range(points)]
        yield Run(number, params, state, score if state == "completed" else None, curve)
