"""Maggy's distributed training in TensorFlow, on a gang of ours.

TensorFlow's own `MultiWorkerMirroredStrategy` does not work with the `fit` of Keras 3. Here each rank's optimizer
averages gradients with the others': `cargobike.keras.prepare`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cargobike import experiment, trial
from cargobike.compat.maggy.config import TfDistributedConfig
from cargobike.compat.maggy.running.calling import USUAL_KEYS, Called
from cargobike.compat.placing import placement
from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.lazy import load


class ModelTypeError(InvalidInputError, AssertionError, TypeError):
    """What was given makes no model: Maggy asserted that."""


class PreparedModel:
    """The class of a Keras model, or a function that makes one: what it makes trains with all ranks.

    Args:
        make: The class or function.
    """

    def __init__(self, make: Any) -> None:
        if not callable(make) or not (isinstance(make, type) or hasattr(make, "__code__") or hasattr(make, "func")):
            raise ModelTypeError(
                f"model={make!r}: give the class of the model, or a function that makes one, not a model; the ranks "
                "make it."
            )
        self.make = make

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Make the model; it is prepared when it is compiled."""
        model = self.make(*args, **named)
        compile_alone = model.compile

        def compile_together(*given: Any, **options: Any) -> None:
            options.pop("experimental_run_tf_function", None)  # of TensorFlow 2.2
            compile_alone(*given, **options)
            load("cargobike.keras:prepare")(model)

        object.__setattr__(model, "compile", compile_together)
        if getattr(model, "optimizer", None) is not None:  # a function that compiles what it makes
            load("cargobike.keras:prepare")(model)
        return model


class TensorflowCalled(Called):
    """A train function of Maggy's as the ranks of ours call it.

    Args:
        function: The user's function.
        objects: What the configuration holds.
        process_data: Makes the data in each rank.
        mixed_precision: Whether Keras computes in mixed precision.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        objects: Mapping[str, Any],
        process_data: Callable[..., Any] | None,
        mixed_precision: bool,
    ) -> None:
        super().__init__(function, USUAL_KEYS[0], objects)
        self._process_data = process_data
        self._mixed_precision = mixed_precision

    def __call__(self, **params: Any) -> Any:
        """Make the data, take this rank's share, and call the user's function."""
        if self._mixed_precision:
            load("keras:mixed_precision.set_global_policy")("mixed_bfloat16")
        objects = self._objects
        if self._process_data is not None:
            objects |= self._processed(objects, self._process_data)
        objects["train_set"] = share_of(objects["train_set"])
        if isinstance(objects["dataset"], Sequence) and not isinstance(objects["dataset"], str):
            first, *others = objects["dataset"]
            objects["dataset"] = [share_of(first), *others]
        return super().__call__(**params)

    @staticmethod
    def _processed(objects: Mapping[str, Any], process: Callable[..., Any]) -> dict[str, Any]:
        if objects["dataset"] is not None:
            return {"dataset": process(objects["dataset"])}
        train_set, test_set = process(objects["train_set"], objects["test_set"])
        return {"train_set": train_set, "test_set": test_set}


def share_of(data: Any) -> Any:
    """Return this rank's share of arrays, or of a `tf.data.Dataset`; anything else as it is."""
    if trial.world_size == 1 or data is None or isinstance(data, str):
        return data
    if hasattr(data, "shard"):
        return data.shard(trial.world_size, trial.rank)
    arrays = data if isinstance(data, tuple | list) else (data,)
    if not arrays or not all(hasattr(array, "shape") for array in arrays):
        return data
    return load("cargobike.keras:shard")(*arrays)


def run_tensorflow(train_fn: Callable[..., Any], config: TfDistributedConfig, ours: Mapping[str, Any]) -> list[Any]:
    """Train on all workers at once, and return what each rank returned.

    Args:
        train_fn: The user's function.
        config: What was asked for.
        ours: Arguments of our own `allreduce` that were given besides.
    """
    objects = {
        "model": None if config.model is None else PreparedModel(config.model),
        "train_set": config.train_set,
        "test_set": config.test_set,
        "dataset": config.dataset,
        "hparams": config.hparams,
    }
    called = TensorflowCalled(train_fn, objects, config.process_data, config.mixed_precision)
    said = {"name": config.name, "description": config.description, **placement(ours)}
    result = experiment.allreduce(called, **said)
    return list(result.values)
