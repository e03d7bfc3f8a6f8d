"""Reports the logs of Keras' `model.fit` at the end of each epoch."""

from __future__ import annotations

from typing import Any

import keras

from cargobike.experiments.trial import context
from cargobike.experiments.trial.callbacks.reporting import Metrics, Reporting


class KerasReport(keras.callbacks.Callback):
    """Report the logs of each epoch of `model.fit`, and end the training when the trial is to stop.

    Put it last among the callbacks: it ends the trial when all others have heard that the training is over.

    Args:
        metrics: The name of a metric in the logs, such as `"val_accuracy"`, several, `{"name to report":
            "val_accuracy"}`, or nothing for all of them.
        checkpoint: Whether to save weights and the optimizer's state after each epoch. A later attempt goes on with
            them by itself, in the epoch after.
    """

    def __init__(self, metrics: Metrics = None, *, checkpoint: bool = False) -> None:
        super().__init__()
        self._reporting = Reporting("KerasReport", metrics)
        self._checkpoint = checkpoint

    def on_train_begin(self, logs: Any = None) -> None:
        """Go on with the checkpoint of an earlier attempt, as Keras' own `BackupAndRestore` does."""
        checkpoints = context.current().checkpoint if self._checkpoint and context.is_inside() else None
        if checkpoints is not None and checkpoints.exists:
            if not self.model.optimizer.built:  # otherwise its state would not be read
                self.model.optimizer.build(self.model.trainable_variables)
            self.model.load_weights(checkpoints.load())
            self.model._initial_epoch = (checkpoints.step or 0) + 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Report the epoch."""
        self._reporting.report(logs or {}, epoch)
        if self._checkpoint:
            self._reporting.save(self.model.save_weights, "model.weights.h5", epoch)
        if self._reporting.is_stopping:
            self.model.stop_training = True

    def on_train_end(self, logs: Any = None) -> None:
        """End the trial, if it was to stop."""
        self._reporting.end()
