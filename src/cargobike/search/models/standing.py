"""Where a trial stands among others, as numbers that sort: the smaller, the better."""

from __future__ import annotations

import math
from typing import TypeAlias

from cargobike.core.records import Direction, Trial, TrialState

Standing: TypeAlias = tuple[float, float]
"""How much the constraints are broken, then the loss."""

LAST: Standing = (math.inf, math.inf)
"""Where those stand who have no score."""


def standing(trial: Trial, direction: Direction) -> Standing:
    """Return where a trial stands; failed and stopped ones, and scores that are no finite numbers, come last.

    Example:
        >>> standing(Trial({}, state=TrialState.COMPLETED, value=0.9), "max")
        (0.0, -0.9)
    """
    if trial.state is not TrialState.COMPLETED or trial.value is None or not math.isfinite(trial.value):
        return LAST
    return trial.violation, loss_of(trial.value, direction)


def loss_of(value: float, direction: Direction) -> float:
    """Return a score so that the smaller one is the better one."""
    return value if direction == "min" else -value
