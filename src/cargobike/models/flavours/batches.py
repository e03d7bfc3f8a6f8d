"""Batches of a size that a compiled model can take: filled up with copies of the last row, whose answers are cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cargobike.models.flavours.answers import answers_of
from cargobike.models.flavours.rows import Stacked


def predict_in_pieces(predict: Callable[[Stacked], Any], stacked: Stacked, rows: int, size: int) -> list[Any]:
    """Predict with a model that takes one number of rows only.

    Args:
        predict: The model.
        stacked: The rows.
        rows: How many there are.
        size: How many rows the model takes; 0 if it takes any number.
    """
    if not size:
        return answers_of(predict(stacked), rows)
    answers: list[Any] = []
    for first in range(0, rows, size):
        piece = _cut(stacked, first, size)
        kept = min(size, rows - first)
        answers.extend(answers_of(predict(piece), size)[:kept])
    return answers


def next_size(rows: int) -> int:
    """Return the next power of two: models that are compiled for each number of rows are compiled a few times only.

    Example:
        >>> next_size(5)
        8
    """
    return 1 << max(rows - 1, 0).bit_length()


def _cut(stacked: Stacked, first: int, size: int) -> Stacked:
    if isinstance(stacked, dict):
        return {name: _filled(column[first : first + size], size) for name, column in stacked.items()}
    return _filled(stacked[first : first + size], size)


def _filled(array: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    lacking = size - len(array)
    return array if not lacking else np.concatenate([array, np.repeat(array[-1:], lacking, axis=0)])
