"""`KerasEstimator`, and the model that it fits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from cargobike.compat.horovod.spark.common.estimator import HorovodEstimator, HorovodModel
from cargobike.compat.horovod.spark.common.params import ESTIMATOR, IGNORED, MODEL, with_params
from cargobike.compat.horovod.spark.common.training import shared_settings
from cargobike.compat.horovod.spark.keras.training import KerasPlan, from_bytes, to_bytes, train_function
from cargobike.compat.noticing import notice
from cargobike.core.errors import InvalidInputError

_OWN = {"custom_objects": None, "checkpoint_callback": None, "data_module": None, "backend_env": None}


@with_params(**ESTIMATOR, **IGNORED, **_OWN)
class KerasEstimator(HorovodEstimator):
    """Trains a model of Keras on the rows of a DataFrame, in ranks on Spark's executors.

    Parameters are given by name, as Horovod's; those that tuned petastorm are accepted and mean nothing.
    """

    def __init__(self, **params: Any) -> None:
        notice("horovod.spark.keras.KerasEstimator")
        super().__init__(**params)

    def _plan(self) -> KerasPlan:
        get = self.getOrDefault
        model, mistakes = get("model"), []
        optimizer = get("optimizer") or getattr(model, "optimizer", None)
        loss = get("loss") or getattr(model, "loss", None)
        if not isinstance(model, keras.Model):
            mistakes.append(f"model must be one of Keras, not {model!r}")
        elif not model.built:
            mistakes.append("model has no shapes yet: begin it with keras.Input(shape), or call model.build(shape)")
        if optimizer is None:
            mistakes.append("optimizer is missing, and the model was not compiled with one")
        if loss is None:
            mistakes.append("loss is missing, and the model was not compiled with one")
        if get("data_module") is not None:
            mistakes.append("data_module is not supported: write a train function for cargobike.spark.Estimator")
        if mistakes:
            raise InvalidInputError("KerasEstimator cannot train.", mistakes)
        return KerasPlan(
            **shared_settings(self),
            model=to_bytes(model),
            optimizer=keras.optimizers.serialize(keras.optimizers.get(optimizer)),
            loss=loss,
            callbacks=get("callbacks"),
            checkpoint_callback=get("checkpoint_callback"),
            custom_objects=get("custom_objects") or {},
            label_shapes=get("label_shapes"),
            verbose=get("verbose"),
            earlier=self._earlier(),
        )

    def _train_function(self, plan: KerasPlan) -> Callable[..., Any]:
        return train_function(plan)

    def _model(self, checkpoint: bytes, common: dict[str, Any]) -> KerasModel:
        custom = self.getOrDefault("custom_objects") or {}
        model = from_bytes(checkpoint, custom, compiled=True)
        return KerasModel(model=model, custom_objects=custom, **common)


@with_params(**MODEL, custom_objects=None)
class KerasModel(HorovodModel):
    """A model of Keras that was fitted; `getModel()` returns it."""

    def _predict_function(self) -> Callable[[Any], list[Any]]:
        model = self.getOrDefault("model")
        content, columns = to_bytes(model), self.getOrDefault("feature_columns")
        shapes = [tuple(-1 if size is None else size for size in tensor.shape) for tensor in model.inputs]
        custom = dict(self.getOrDefault("custom_objects") or {})
        held: list[Any] = []

        def predict(batch: Any) -> list[Any]:
            # Travels by value to executors, which may lack Cargobike: it uses none of it.
            if not held:
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder, "model.keras")
                    path.write_bytes(content)
                    held.append(keras.models.load_model(path, custom_objects=custom, compile=False))
            inputs = [
                np.stack([np.asarray(value) for value in batch[column]]).reshape(shape)
                for column, shape in zip(columns, shapes, strict=True)
            ]
            outputs = held[0].predict_on_batch(inputs if len(inputs) > 1 else inputs[0])
            return list(outputs) if isinstance(outputs, list | tuple) else [outputs]

        return predict
