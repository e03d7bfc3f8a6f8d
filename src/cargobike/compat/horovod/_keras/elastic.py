"""States of Keras models that survive a change of ranks, and callbacks that keep them from `model.fit`."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from cargobike.compat.horovod._keras.values import share_variables
from cargobike.compat.horovod.common.basics import rank
from cargobike.compat.horovod.common.elastic import ObjectState
from cargobike.compat.horovod.common.objects import broadcast_object
from cargobike.core.errors import InvalidInputError


class KerasState(ObjectState):
    """A model, its optimizer and further attributes.

    Args:
        model: A Keras model that has been built.
        optimizer: Its optimizer; by default that it was compiled with.
        backend: Means nothing here.
        **kwargs: Further attributes, such as `batch` and `epoch`.

    Raises:
        ValueError: If the model has not been built, or has no optimizer.
    """

    def __init__(self, model: Any, optimizer: Any = None, backend: Any = None, **kwargs: Any) -> None:
        if not getattr(model, "built", True):
            raise InvalidInputError("The model has not been built: call model.build(input_shape) first.")
        self.model = model
        self.optimizer: Any = optimizer or getattr(model, "optimizer", None)
        if self.optimizer is None:
            raise InvalidInputError("The model has no optimizer: compile it, or give optimizer=.")
        self._values: list[Any] = []
        self._keep()
        super().__init__(broadcast_object, rank, **kwargs)

    def save(self) -> None:
        """Keep a copy of all of it in memory."""
        self._keep()
        super().save()

    def restore(self) -> None:
        """Go back to what was saved last; state that the optimizer did not have then becomes zero."""
        variables = self._variables()
        for variable, value in zip(variables, self._values, strict=False):
            variable.assign(value)
        for variable in variables[len(self._values) :]:
            variable.assign(np.zeros(variable.shape, dtype=keras.backend.standardize_dtype(variable.dtype)))
        super().restore()

    def sync(self) -> None:
        """Take over what rank 0 has, and save it."""
        # A rank that has come has not made the state of its optimizer yet.
        if not self.optimizer.built:
            self.optimizer.build(self.model.trainable_variables)
        share_variables(self._variables(), 0, "keras_state")
        self._keep()
        super().sync()

    def _variables(self) -> list[Any]:
        return [*self.model.weights, *self.optimizer.variables]

    def _keep(self) -> None:
        self._values = [np.array(keras.ops.convert_to_numpy(variable)) for variable in self._variables()]


class CommitStateCallback(keras.callbacks.Callback):
    """Commits a state after some batches, and at the end of each epoch.

    Args:
        state: The state.
        batches_per_commit: After how many.
    """

    def __init__(self, state: Any, batches_per_commit: int = 1) -> None:
        super().__init__()
        self.state = state
        self.batches_per_commit = batches_per_commit
        self._remaining = batches_per_commit

    def on_train_begin(self, logs: Any = None) -> None:
        """Count anew: all ranks must commit at the same batches."""
        self._remaining = self.batches_per_commit

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Count, and commit."""
        self._remaining -= 1
        if self._remaining <= 0:
            self._remaining = self.batches_per_commit
            self.state.commit()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Commit."""
        self.state.commit()


class UpdateBatchStateCallback(keras.callbacks.Callback):
    """Keeps in `state.batch` which batch of an epoch was the last; 0 between epochs.

    Args:
        state: The state.
    """

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self._steps: int | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin anew."""
        self._steps = None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Say how many batches are left of an epoch that was begun before a change of ranks."""
        steps = (self.params or {}).get("steps")
        if steps:
            self._steps = self._steps or steps
            self.params["steps"] = self._steps - self.state.batch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Note the batch."""
        self.state.batch = batch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Note that there is none."""
        self.state.batch = 0


class UpdateEpochStateCallback(keras.callbacks.Callback):
    """Keeps in `state.epoch` how many epochs are done, over all changes of ranks.

    Args:
        state: The state.
    """

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self.initial_epoch = state.epoch

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin with what was done before."""
        self.initial_epoch = self.state.epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Count the epoch."""
        self.state.epoch = self.initial_epoch + epoch + 1
