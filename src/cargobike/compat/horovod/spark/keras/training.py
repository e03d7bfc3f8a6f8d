"""Trains a model of Keras on a rank's share of the rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np

import cargobike.compat.horovod.keras as hvd
from cargobike.compat.horovod.spark.common.training import Plan, array_of, rows_of, save_network


@dataclass(frozen=True)
class KerasPlan(Plan):
    """What a model of Keras needs besides."""

    model: bytes = b""
    optimizer: Any = None
    loss: Any = None
    callbacks: Sequence[Any] = ()
    checkpoint_callback: Any = None
    custom_objects: Mapping[str, Any] = field(default_factory=dict)
    label_shapes: Sequence[Sequence[int]] | None = None
    verbose: int = 0


def to_bytes(model: Any) -> bytes:
    """Return a model as the content of a `.keras` file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.keras")
        model.save(path)
        return path.read_bytes()


def from_bytes(content: bytes, custom_objects: Mapping[str, Any], *, compiled: bool = False) -> Any:
    """Return the model that such a file holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.keras")
        path.write_bytes(content)
        return keras.models.load_model(path, custom_objects=dict(custom_objects), compile=compiled)


def train_function(plan: KerasPlan) -> Callable[..., float]:
    """Return what each rank is to do."""

    def train(data: Any) -> float:
        return _train(plan, data)

    return train


def _train(plan: KerasPlan, data: Any) -> float:
    hvd.init()
    if plan.random_seed is not None:
        keras.utils.set_random_seed(plan.random_seed + hvd.rank())
    train, val = rows_of(plan, data)
    model = _compiled(plan)
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
    for callback in plan.callbacks:
        if isinstance(callback, hvd.callbacks.LearningRateScheduleCallback):
            callback.initial_lr = float(keras.ops.convert_to_numpy(model.optimizer.learning_rate))
        callbacks.append(callback)
    with tempfile.TemporaryDirectory() as folder:
        best = Path(folder, "best.keras")
        if plan.checkpoint_callback is not None and hvd.rank() == 0:
            plan.checkpoint_callback.filepath = str(best)
            callbacks.append(plan.checkpoint_callback)
        x, y, weights = _arrays(plan, train, model)
        held = _arrays(plan, val, model) if _fewest(len(val)) else None
        history = model.fit(
            x,
            y,
            sample_weight=weights,
            batch_size=plan.batch_size,
            epochs=plan.epochs,
            shuffle=plan.shuffle,
            steps_per_epoch=plan.train_steps,
            validation_data=None if held is None else (held if held[2] is not None else held[:2]),
            validation_batch_size=plan.val_batch_size,
            validation_steps=plan.validation_steps,
            callbacks=callbacks,
            verbose=plan.verbose if hvd.rank() == 0 else 0,
        ).history
        if hvd.rank() == 0:
            rate = model.optimizer.learning_rate
            rate.assign(rate / hvd.size())
            save_network(best.read_bytes() if best.exists() else to_bytes(model), history)
    hvd.shutdown()
    return float(history.get("val_loss", history["loss"])[-1])


def _compiled(plan: KerasPlan) -> Any:
    """Return the model with an optimizer for all ranks, whose learning rate is that of all of them."""
    model = from_bytes(plan.earlier or plan.model, plan.custom_objects, compiled=plan.earlier is not None)
    plain = model.optimizer if plan.earlier is not None else keras.optimizers.deserialize(plan.optimizer)
    more = {} if plan.compression is None else {"compression": plan.compression}
    optimizer = hvd.DistributedOptimizer(plain, backward_passes_per_step=plan.passes, **more)
    optimizer.learning_rate = optimizer.learning_rate * hvd.size()
    model.compile(optimizer, plan.loss, loss_weights=plan.loss_weights, metrics=list(plan.metrics) or None)
    return model


def _fewest(rows: int) -> int:
    """Return how many rows every rank has."""
    return int(hvd.allreduce(np.array([rows]), op=hvd.Min)[0])


def _arrays(plan: KerasPlan, frame: Any, model: Any) -> tuple[Any, Any, Any]:
    """Return features, labels and weights as `fit` takes them, of as many rows as every rank has."""
    frame = frame[: _fewest(len(frame))]
    shapes = [tuple(-1 if size is None else size for size in tensor.shape) for tensor in model.inputs]
    features = [array_of(frame[column]).reshape(shape) for column, shape in zip(plan.feature_cols, shapes, strict=True)]
    labels = [array_of(frame[column]) for column in plan.label_cols]
    if plan.label_shapes is not None:
        labels = [label.reshape(tuple(shape)) for label, shape in zip(labels, plan.label_shapes, strict=True)]
    weights = None if plan.sample_weight_col is None else array_of(frame[plan.sample_weight_col])
    return _single(features), _single(labels), weights


def _single(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else arrays
