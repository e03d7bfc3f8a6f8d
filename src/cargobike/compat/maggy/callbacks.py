"""Maggy's callbacks for Keras."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from cargobike.compat.noticing import notice
from cargobike.core.errors import InvalidInputError, nearest

__all__ = ["KerasBatchEnd", "KerasEpochEnd"]

_OLD_WORDS = {"acc": "accuracy", "val_acc": "val_accuracy"}
"""What Keras called metrics when Maggy was written."""


class KerasBatchEnd(keras.callbacks.Callback):  # type: ignore[misc]
    """Broadcasts a metric at the end of each batch.

    Args:
        reporter: The train function's reporter.
        metric: Its name in the logs: `loss`, or a metric that the model was compiled with.
    """

    def __init__(self, reporter: Any, metric: str = "loss") -> None:
        super().__init__()
        notice("maggy.callbacks.KerasBatchEnd")
        self.metric_name = metric
        self.reporter = reporter

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Broadcast; steps are counted over all epochs."""
        self.reporter.broadcast(_value(self.metric_name, logs or {}, "KerasBatchEnd"))


class KerasEpochEnd(keras.callbacks.Callback):  # type: ignore[misc]
    """Broadcasts a metric at the end of each epoch.

    Args:
        reporter: The train function's reporter.
        metric: Its name in the logs: `val_loss`, or a metric that the model was compiled with.
    """

    def __init__(self, reporter: Any, metric: str = "val_loss") -> None:
        super().__init__()
        notice("maggy.callbacks.KerasEpochEnd")
        self.metric_name = metric
        self.reporter = reporter

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Broadcast; the step is the epoch."""
        self.reporter.broadcast(_value(self.metric_name, logs or {}, "KerasEpochEnd"), epoch)


def _value(name: str, logs: Mapping[str, Any], owner: str) -> float:
    """Return a metric of the logs; Maggy broadcast 0 for one that is not there."""
    there = name if name in logs else _OLD_WORDS.get(name, name)
    if there not in logs:
        names = ", ".join(map(repr, logs)) or "nothing"
        raise InvalidInputError(f"{owner}: metric={name!r} was not measured; there are {names}.{nearest(name, logs)}")
    return float(logs[there])
