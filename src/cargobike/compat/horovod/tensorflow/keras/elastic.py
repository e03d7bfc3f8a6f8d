"""Training with `tf.keras` that goes on while ranks come and go."""

from __future__ import annotations

from cargobike.compat.horovod._keras.elastic import (
    CommitStateCallback,
    KerasState,
    UpdateBatchStateCallback,
    UpdateEpochStateCallback,
)
from cargobike.compat.horovod.tensorflow.elastic import run

__all__ = ["CommitStateCallback", "KerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run"]
