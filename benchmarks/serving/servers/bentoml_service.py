"""BentoML with its adaptive batching."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import bentoml
from mlp import Mlp


@bentoml.service(workers=1)
class Service:
    """Answers rows in batches."""

    def __init__(self) -> None:
        self.model = Mlp()

    @bentoml.api(batchable=True, max_batch_size=64, max_latency_ms=100)
    def predict(self, x: list[list[float]]) -> list[float]:
        """Answer rows."""
        answers: list[float] = self.model.predict(x).tolist()
        return answers
