"""Rows to judge: 28 columns of normal numbers, without a shift and with several that are hard to see."""

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


def wider(rows: int, random: Any) -> Any:
    """Return rows in which the deviations of three columns grew by a sixth."""
    values = usual(rows, random)
    values[:, :3] *= 7 / 6
    return values


def tailed(rows: int, random: Any) -> Any:
    """Return rows in which three columns have heavy tails (Student's t, 3 degrees), with the same mean and variance."""
    values = usual(rows, random)
    values[:, :3] = random.standard_t(3, (rows, 3)) / np.sqrt(3)
    return values


def little(rows: int, random: Any) -> Any:
    """Return rows in which the means of all columns moved by a twenty-fifth of a deviation."""
    return usual(rows, random) + 0.04


def gaps(rows: int, random: Any) -> Any:
    """Return rows of which one in a hundred lacks a value, in three columns."""
    values = usual(rows, random)
    values[:, :3][random.random((rows, 3)) < 0.01] = np.nan
    return values


KINDS: dict[str, Draw] = {"usual": usual, "moved": moved, "bound": bound}
SHAPES: dict[str, Draw] = {"wider": wider, "tailed": tailed, "little": little, "gaps": gaps}
"""Shifts by which nothing was chosen: the weights of statistics were fixed before these were drawn."""


def kinds(rows: int, random: Any, shares: tuple[float, float, float] = (0.6, 0.3, 0.1)) -> Any:
    """Return one column of three categories."""
    return random.choice(["red", "green", "blue"], rows, p=shares)


MOVED_SHARES = (0.55, 0.35, 0.10)


def errors(length: int, random: Any) -> Any:
    """Return a stream of errors whose rate doubles in the middle."""
    return (random.random(length) < np.where(np.arange(length) < length // 2, 0.1, 0.2)).astype(float)
