"""Maggy's `tensorboard.logdir()`."""

from __future__ import annotations

from cargobike import trial
from cargobike.compat.noticing import formerly

__all__ = ["logdir"]


@formerly("maggy.tensorboard.logdir")
def logdir() -> str:
    """Return the trial's own folder for TensorBoard files."""
    return str(trial.logdir)
