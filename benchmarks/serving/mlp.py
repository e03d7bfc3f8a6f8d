"""The model that every server serves: a 28-64-64-1 MLP in NumPy, so that no framework's threads are measured."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

WIDTHS = (28, 64, 64, 1)


class Mlp:
    """Three layers with fixed weights."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        self._layers = [
            (rng.normal(0, 0.2, (wide, next_wide)).astype(np.float32), np.zeros(next_wide, np.float32))
            for wide, next_wide in itertools.pairwise(WIDTHS)
        ]

    def predict(self, rows: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return one number for each row."""
        values = np.asarray(rows, dtype=np.float32)
        for weights, bias in self._layers[:-1]:
            values = np.maximum(values @ weights + bias, 0)
        weights, bias = self._layers[-1]
        result: np.ndarray[Any, np.dtype[np.float32]] = (values @ weights + bias)[:, 0]
        return result


def example_row() -> list[float]:
    """Return a row with numbers of ordinary length."""
    return [round(float(value), 6) for value in np.random.default_rng(3).normal(size=WIDTHS[0])]
