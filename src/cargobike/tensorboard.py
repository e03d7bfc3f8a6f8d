"""Where a train function writes its TensorBoard files."""

from __future__ import annotations

from cargobike.experiments.trial.context import current

__all__ = ["logdir"]


def logdir() -> str:
    """Return the directory for TensorBoard files of the running trial; it is made if it does not exist.

    Outside an experiment it is a temporary directory, removed when the process ends.
    """
    return str(current().logdir)
