"""The model that every server serves: a 28-64-64-1 MLP with fixed weights, in torch or NumPy, with one thread."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np

WIDTHS = (28, 64, 64, 1)


class Mlp:
    """Three layers; `BENCHMARK_MODEL` says in what."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        self._layers: list[tuple[Any, Any]] = [
            (rng.normal(0, 0.2, (wide, next_wide)).astype(np.float32), np.zeros(next_wide, np.float32))
            for wide, next_wide in itertools.pairwise(WIDTHS)
        ]
        self._network: Any = None
        if os.environ.get("BENCHMARK_MODEL") == "torch":
            self._network = self._in_torch()

    def _in_torch(self) -> Any:
        import torch

        torch.set_num_threads(1)
        parts: list[Any] = []
        for weights, bias in self._layers:
            linear = torch.nn.Linear(*weights.shape)
            linear.load_state_dict({"weight": torch.from_numpy(weights.T.copy()), "bias": torch.from_numpy(bias)})
            parts += [linear, torch.nn.ReLU()]
        self._torch = torch
        return torch.nn.Sequential(*parts[:-1]).eval()

    def predict(self, rows: Any) -> Any:
        """Return one number for each row, as an array."""
        if self._network is not None:
            with self._torch.inference_mode():
                return self._network(self._torch.tensor(rows, dtype=self._torch.float32))[:, 0].numpy()
        values = np.asarray(rows, dtype=np.float32)
        for weights, bias in self._layers[:-1]:
            values = np.maximum(values @ weights + bias, 0)
        weights, bias = self._layers[-1]
        return (values @ weights + bias)[:, 0]


def example_row() -> list[float]:
    """Return a row with numbers of ordinary length."""
    return [round(float(value), 6) for value in np.random.default_rng(3).normal(size=WIDTHS[0])]
