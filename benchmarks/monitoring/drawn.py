"""Rows to judge: 28 columns of normal numbers, without a shift and with two that are hard to see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

COLUMNS = 28
MOVE = 0.1
"""By how many standard deviations the mean of three columns moves."""
CORRELATION = 0.6
"""What the correlation of one pair of columns becomes; each column alone stays as it was."""

Draw = Callable[[int, Any], Any]


def usual(rows: int, random: Any) -> Any:
    """Return rows without a shift."""
    return random.standard_normal((rows, COLUMNS))


def moved(rows: int, random: Any) -> Any:
    """Return rows in which the means of three columns moved."""
    values = usual(rows, random)
    values[:, :3] += MOVE
    return values


def bound(rows: int, random: Any) -> Any:
    """Return rows in which two columns depend on each other."""
    values = usual(rows, random)
    values[:, 1] = CORRELATION * values[:, 0] + np.sqrt(1 - CORRELATION**2) * values[:, 1]
    return values


KINDS: dict[str, Draw] = {"usual": usual, "moved": moved, "bound": bound}


def errors(length: int, random: Any) -> Any:
    """Return a stream of errors whose rate doubles in the middle."""
    return (random.random(length) < np.where(np.arange(length) < length // 2, 0.1, 0.2)).astype(float)
