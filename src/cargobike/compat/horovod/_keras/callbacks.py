"""Callbacks for `model.fit` in a job of several ranks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np

from cargobike.compat.horovod._keras.values import share_variables
from cargobike.compat.horovod.common import collectives
from cargobike.compat.horovod.common.basics import rank, size
from cargobike.compat.noticing import notice
from cargobike.core.errors import InvalidInputError


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):
    """Gives all ranks the weights and the optimizer's state of one, after the first batch.

    Args:
        root_rank: Which.
        device: Means nothing here.
        local_variables: Variables that each rank keeps.
    """

    def __init__(self, root_rank: int, device: str = "", local_variables: Iterable[Any] | None = None) -> None:
        super().__init__()
        notice("horovod.keras.callbacks.BroadcastGlobalVariablesCallback")
        self.root_rank = root_rank
        self.broadcast_done = False
        self._local = {id(variable) for variable in local_variables or ()}

    def register_local_var(self, var: Any) -> None:
        """Let each rank keep its value of a variable."""
        self._local.add(id(var))

    def set_model(self, model: Any) -> None:
        """Note the model; a training step that XLA compiles could not leave TensorFlow to meet other ranks."""
        super().set_model(model)
        if getattr(model, "jit_compile", False):
            model.jit_compile = False

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Do so, once."""
        if self.broadcast_done:
            return
        self.broadcast_done = True
        # Seeds are variables too, but of each rank: dropout must differ.
        variables = [*self.model.weights, *self.model.optimizer.variables]
        share_variables([one for one in variables if id(one) not in self._local], self.root_rank, "first_variables")


class MetricAverageCallback(keras.callbacks.Callback):
    """Averages what an epoch logs over all ranks, for the callbacks after this one.

    Args:
        device: Means nothing here.
    """

    def __init__(self, device: str = "") -> None:
        super().__init__()
        notice("horovod.keras.callbacks.MetricAverageCallback")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Change the logs in place."""
        names = sorted(logs or {})
        if names:
            means = collectives.allreduce(np.array([float(logs[name]) for name in names]), "metrics")
            logs.update(zip(names, means.tolist(), strict=True))


class LearningRateScheduleCallback(keras.callbacks.Callback):
    """Multiplies the learning rate by a function of the epoch.

    Args:
        initial_lr: What is multiplied.
        multiplier: A function of the epoch, or the base of a power whose exponent is the epochs since the start.
        start_epoch: The first epoch that it is responsible for.
        end_epoch: The first that it is not.
        staircase: Whether to change it at the beginning of an epoch only, or before each batch.
        momentum_correction: Whether what momentum has gathered changes with the learning rate.
        steps_per_epoch: How many batches an epoch has; by default `fit` knows.
    """

    def __init__(
        self,
        initial_lr: float,
        multiplier: float | Callable[[float], float],
        start_epoch: int = 0,
        end_epoch: float | None = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
    ) -> None:
        super().__init__()
        if initial_lr is None:
            raise InvalidInputError("initial_lr must be a number: the learning rate that is multiplied.")
        self.initial_lr = initial_lr
        self.start_epoch, self.end_epoch = start_epoch, end_epoch
        self.staircase, self.momentum_correction = staircase, momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = 0
        self.multiplier: Callable[[float], float]
        if callable(multiplier):
            self.multiplier = multiplier
        else:
            base = multiplier
            self.multiplier = lambda epoch: base ** (epoch - start_epoch)

    def on_train_begin(self, logs: Any = None) -> None:
        """Find out how long an epoch is.

        Raises:
            ValueError: If it matters and is not known, or the optimizer follows a schedule of its own.
        """
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = (self.params or {}).get("steps")
            if not self.steps_per_epoch:
                raise InvalidInputError(
                    f"The data does not say how many batches an epoch has: {type(self).__name__}(steps_per_epoch=...)."
                )
        if isinstance(self.model.optimizer._learning_rate, keras.optimizers.schedules.LearningRateSchedule):
            raise InvalidInputError(
                f"The optimizer has a learning rate schedule of its own; drop it or {type(self).__name__}."
            )

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Note where training is."""
        self.current_epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Change the learning rate, if it is time."""
        epoch = self.current_epoch
        if epoch < self.start_epoch or (self.end_epoch is not None and epoch >= self.end_epoch):
            return
        if not self.staircase:
            self._change(epoch + batch / (self.steps_per_epoch or 1))
        elif batch == 0:
            self._change(epoch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Log the learning rate as `lr`."""
        if logs is not None:
            logs["lr"] = self._learning_rate()

    def _learning_rate(self) -> float:
        return float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))

    def _change(self, epoch: float) -> None:
        optimizer = self.model.optimizer
        old, new = self._learning_rate(), self.initial_lr * self.multiplier(epoch)
        optimizer.learning_rate.assign(new)
        # What momentum gathers is a multiple of the learning rate: to change it with that is to multiply, for one
        # step, the factor that it is kept by, which compiled training steps would not notice.
        if self.momentum_correction and getattr(optimizer, "momentum", None) and old and new != old:
            for gathered in getattr(optimizer, "momentums", None) or getattr(optimizer, "_momentums", None) or ():
                if gathered is not None:
                    gathered.assign(gathered * (new / old))


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Raises the learning rate from that of one rank to that of all, a little with each batch.

    Args:
        initial_lr: The learning rate of all ranks together, that is, the scaled one.
        warmup_epochs: How long it takes.
        momentum_correction: Whether what momentum has gathered changes with the learning rate.
        steps_per_epoch: How many batches an epoch has; by default `fit` knows.
        verbose: Whether rank 0 says when it is done.
    """

    def __init__(
        self,
        initial_lr: float,
        warmup_epochs: float = 5,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
        verbose: int = 0,
    ) -> None:
        notice("horovod.keras.callbacks.LearningRateWarmupCallback")

        def multiplier(epoch: float) -> float:
            done = epoch + 1 / (self.steps_per_epoch or 1)
            return (done * (size() - 1) / warmup_epochs + 1) / size()

        super().__init__(
            initial_lr,
            multiplier,
            end_epoch=warmup_epochs,
            staircase=False,
            momentum_correction=momentum_correction,
            steps_per_epoch=steps_per_epoch,
        )
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Log the learning rate, and say when it is reached."""
        super().on_epoch_end(epoch, logs)
        if self.end_epoch is not None and epoch == self.end_epoch - 1 and self.verbose > 0 and rank() == 0:
            sys.stdout.write(f"\nEpoch {epoch + 1}: the learning rate has reached {self._learning_rate():g}.\n")


class BestModelCheckpoint(keras.callbacks.ModelCheckpoint):
    """Keeps the best model; an Estimator, or you, set its `filepath`.

    Args:
        monitor: The metric that decides.
        verbose: Whether to say so.
        save_weights_only: Whether to leave the architecture out.
        mode: `min`, `max` or `auto`.
        save_freq: `epoch`, or a number of batches.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
    ) -> None:
        self._unset = "unset.weights.h5" if save_weights_only else "unset.keras"
        super().__init__(self._unset, monitor, verbose, True, save_weights_only, mode, save_freq)

    def on_train_begin(self, logs: Any = None) -> None:
        """Check that there is a file.

        Raises:
            ValueError: If there is none.
        """
        if self.filepath == self._unset:
            raise InvalidInputError(
                "BestModelCheckpoint has no file: set checkpoint.filepath = 'best.keras', or give it to an Estimator."
            )
        super().on_train_begin(logs)
