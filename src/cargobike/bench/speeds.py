"""Speeds of a training as its steps go by: their mean, how sure it is, and how much they scatter."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

_NORMAL: Final = 1.4826
"""What makes a median absolute deviation comparable to a standard deviation."""


class Speed(NamedTuple):
    """Rows per second."""

    mean: float
    uncertainty: float
    jitter: float


def speed_of(step_seconds: Sequence[float], rows: int) -> Speed:
    """Return the speed over some steps of so many rows each.

    The mean is that of the whole time; uncertainty is the standard error of the single steps' speeds, jitter their
    median absolute deviation, scaled: single outliers do not move it.

    Example:
        >>> speed_of([0.5, 0.5, 0.5], rows=20)
        Speed(mean=40.0, uncertainty=0.0, jitter=0.0)
    """
    speeds = [rows / seconds for seconds in step_seconds]
    middle = statistics.median(speeds)
    return Speed(
        rows * len(speeds) / math.fsum(step_seconds),
        statistics.pstdev(speeds) / math.sqrt(len(speeds)),
        _NORMAL * statistics.median(abs(speed - middle) for speed in speeds),
    )
