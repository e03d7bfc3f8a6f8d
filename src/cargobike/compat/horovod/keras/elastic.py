"""Training with Keras that goes on while ranks come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cargobike.compat.horovod._keras.elastic import (
    CommitStateCallback,
    KerasState,
    UpdateBatchStateCallback,
    UpdateEpochStateCallback,
)
from cargobike.compat.horovod.common.basics import init, shutdown
from cargobike.compat.horovod.common.elastic import run_fn

__all__ = ["CommitStateCallback", "KerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run"]

_R = TypeVar("_R")


def run(func: Callable[..., _R]) -> Callable[..., _R]:
    """Make a function of a state one that begins again, with its state, whenever ranks have changed."""
    return run_fn(func, _rejoin)


def _rejoin() -> None:
    shutdown()
    init()
