"""`TorchEstimator`, and the model that it fits."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from cargobike.compat.horovod.spark.common.estimator import HorovodEstimator, HorovodModel
from cargobike.compat.horovod.spark.common.params import ESTIMATOR, IGNORED, MODEL, with_params
from cargobike.compat.horovod.spark.common.training import shared_settings
from cargobike.compat.horovod.spark.torch.training import TorchPlan, train_function
from cargobike.compat.noticing import notice
from cargobike.core.errors import InvalidInputError

_OWN = {"input_shapes": None, "loss_constructors": None, "train_minibatch_fn": None, "data_module": None}


@with_params(**ESTIMATOR, **IGNORED, **_OWN)
class TorchEstimator(HorovodEstimator):
    """Trains a network of torch on the rows of a DataFrame, in ranks on Spark's executors.

    Parameters are given by name, as Horovod's; those that tuned petastorm are accepted and mean nothing.
    """

    def __init__(self, **params: Any) -> None:
        notice("horovod.spark.torch.TorchEstimator")
        if params.get("loss") is not None and params.get("loss_constructors") is not None:
            raise InvalidInputError("give loss or loss_constructors, not both.")
        super().__init__(**params)

    def _plan(self) -> TorchPlan:
        get = self.getOrDefault
        optimizer, mistakes = get("optimizer"), []
        if not isinstance(optimizer, torch.optim.Optimizer):
            mistakes.append(f"optimizer must be one of torch, not {optimizer!r}")
        if get("loss") is None and get("loss_constructors") is None:
            mistakes.append("loss is missing")
        mistakes += [
            f"{name} is not supported: write a train function for cargobike.spark.Estimator"
            for name in ("train_minibatch_fn", "data_module")
            if get(name) is not None
        ]
        if mistakes:
            raise InvalidInputError("TorchEstimator cannot train.", mistakes)
        return TorchPlan(
            **shared_settings(self),
            model=copy.deepcopy(get("model")),
            optimizer_class=type(optimizer),
            optimizer_state=optimizer.state_dict(),
            losses=_listed(get("loss")),
            loss_constructors=_listed(get("loss_constructors")),
            input_shapes=get("input_shapes"),
            label_shapes=get("label_shapes"),
            earlier=self._earlier(),
        )

    def _train_function(self, plan: TorchPlan) -> Callable[..., Any]:
        return train_function(plan)

    def _model(self, checkpoint: bytes, common: dict[str, Any]) -> TorchModel:
        get = self.getOrDefault
        state = torch.load(io.BytesIO(checkpoint), weights_only=True)
        network = copy.deepcopy(get("model"))
        network.load_state_dict(state["model"])
        optimizer = type(get("optimizer"))(network.parameters(), lr=1)
        optimizer.load_state_dict(state["optimizer"])
        more = {name: get(name) for name in ("input_shapes", "loss", "loss_constructors")}
        return TorchModel(model=network.eval(), optimizer=optimizer, **more, **common)


@with_params(**MODEL, optimizer=None, input_shapes=None, loss=None, loss_constructors=None)
class TorchModel(HorovodModel):
    """A network of torch that was fitted; `getModel()` returns it."""

    def _predict_function(self) -> Callable[[Any], list[Any]]:
        network = copy.deepcopy(self.getOrDefault("model")).eval()
        columns, shapes = self.getOrDefault("feature_columns"), self.getOrDefault("input_shapes")

        def predict(batch: Any) -> list[Any]:
            # Travels by value to executors, which may lack Cargobike: it uses none of it.
            inputs = []
            for number, column in enumerate(columns):
                values = np.stack([np.asarray(value) for value in batch[column]])
                tensor = torch.as_tensor(values).float()
                inputs.append(tensor if shapes is None else tensor.reshape(tuple(shapes[number])))
            with torch.no_grad():
                outputs = network(*inputs)
            listed = outputs if isinstance(outputs, list | tuple) else [outputs]
            return [output.numpy() for output in listed]

        return predict


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
