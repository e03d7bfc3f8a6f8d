"""Names that belong to TensorFlow 1: each says what its line is in TensorFlow 2."""

from __future__ import annotations

from typing import Any, NoReturn

from cargobike.core.errors import InvalidInputError


class SessionError(InvalidInputError, RuntimeError):
    """A call that needs a session of TensorFlow 1."""


def broadcast_global_variables(root_rank: int) -> NoReturn:
    """Say what to call in TensorFlow 2, which has no global variables."""
    raise SessionError(
        "hvd.broadcast_global_variables is for TensorFlow 1: TensorFlow 2 has no collection of global variables.",
        [
            "in a loop of your own, after the first step: "
            f"hvd.broadcast_variables(model.variables + optimizer.variables, root_rank={root_rank!r})",
            f"with model.fit: callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback({root_rank!r})]",
        ],
    )


class BroadcastGlobalVariablesHook:
    """Says what to write in TensorFlow 2, which has no `MonitoredTrainingSession`."""

    def __init__(self, root_rank: int, device: str = "") -> None:
        raise SessionError(
            "hvd.BroadcastGlobalVariablesHook is for MonitoredTrainingSession and Estimator of TensorFlow 1.",
            [
                "in a loop of your own, after the first step: "
                f"hvd.broadcast_variables(model.variables + optimizer.variables, root_rank={root_rank!r})",
                "with model.fit: callbacks=[cargobike.compat.horovod.tensorflow.keras.callbacks."
                f"BroadcastGlobalVariablesCallback({root_rank!r})]",
            ],
        )


def refuse_session(session: Any, call: str) -> None:
    """Raise an error if a session was given.

    Raises:
        RuntimeError: If so; says what to do.
    """
    if session is not None:
        raise SessionError(f"{call} was given a session of TensorFlow 1; leave session= out: values are at hand.")
