"""What callbacks for boosted trees share: how far a trial has come."""

from __future__ import annotations

from cargobike.experiments.trial import context


def rounds_left(total: int) -> int:
    """Return how many rounds of a total are left after those of the trial's newest checkpoint.

    Example:
        >>> rounds_left(100)
        100
    """
    done = context.current().checkpoint.step
    return total if done is None else max(0, total - done - 1)
