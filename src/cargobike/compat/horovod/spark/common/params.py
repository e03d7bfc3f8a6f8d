"""The parameters of Estimators and their models, each with `setX` and `getX`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pyspark.ml.param import Param, Params

from cargobike.core.errors import SignatureError, nearest

_C = TypeVar("_C", bound=type)

ESTIMATOR: Mapping[str, Any] = {
    "num_proc": None,
    "model": None,
    "backend": None,
    "store": None,
    "optimizer": None,
    "loss": None,
    "loss_weights": None,
    "metrics": (),
    "sample_weight_col": None,
    "gradient_compression": None,
    "feature_cols": None,
    "label_cols": None,
    "validation": None,
    "callbacks": (),
    "batch_size": 32,
    "val_batch_size": None,
    "epochs": 1,
    "train_steps_per_epoch": None,
    "validation_steps_per_epoch": None,
    "random_seed": None,
    "shuffle": True,
    "verbose": 1,
    "run_id": None,
    "transformation_fn": None,
    "label_shapes": None,
    "backward_passes_per_step": 1,
}
"""What all Estimators take, and what it is if it is not given."""

IGNORED: Mapping[str, Any] = {
    "continuous_cols": None,
    "categorical_cols": None,
    "compress_sparse_cols": False,
    "inmemory_cache_all": False,
    "mp_start_method": None,
    "partitions_per_process": 10,
    "reader_pool_type": "thread",
    "shuffle_buffer_size": None,
    "tensorflow_dataset_prefetch_buffer_size": None,
    "train_reader_num_workers": 2,
    "transformation_edit_fields": None,
    "transformation_removed_fields": None,
    "use_gpu": True,
    "val_reader_num_workers": 2,
}
"""What tuned petastorm and processes, and means nothing here."""

MODEL: Mapping[str, Any] = {
    "history": None,
    "model": None,
    "feature_columns": None,
    "label_columns": None,
    "output_cols": None,
    "run_id": None,
}
"""What all fitted models have."""

_OTHERWISE = {
    "inmemory_cache_all": "InMemoryCacheAll",
    "shuffle_buffer_size": "ShufflingBufferSize",
    "train_reader_num_workers": "TrainReaderNumWorker",
    "val_reader_num_workers": "ValReaderNumWorker",
}


def with_params(**defaults: Any) -> Callable[[_C], _C]:
    """Give a class parameters of pyspark.ml, with `setX` and `getX` for each."""

    def declare(owner: _C) -> _C:
        for name in defaults:
            setattr(owner, name, Param(Params._dummy(), name, name.replace("_", " ")))
            title = _OTHERWISE.get(name) or "".join(word.capitalize() for word in name.split("_"))
            # A class that says how to read a parameter knows better.
            if not hasattr(owner, f"set{title}"):
                setattr(owner, f"set{title}", _setter(name))
            if not hasattr(owner, f"get{title}"):
                setattr(owner, f"get{title}", _getter(name))
        owner.DEFAULTS = defaults  # type: ignore[attr-defined]
        return owner

    return declare


def _setter(name: str) -> Callable[[Any, Any], Any]:
    def set_it(self: Any, value: Any) -> Any:
        return self._set(**{name: value})

    return set_it


def _getter(name: str) -> Callable[[Any], Any]:
    def get_it(self: Any) -> Any:
        return self.getOrDefault(name)

    return get_it


class Settable(Params):
    """Takes its parameters by name, and keeps those that were given."""

    DEFAULTS: Mapping[str, Any] = {}

    def __init__(self, **given: Any) -> None:
        super().__init__()
        self._setDefault(**self.DEFAULTS)
        self.setParams(**given)

    def setParams(self, **given: Any) -> Any:
        """Set several parameters.

        Raises:
            TypeError: If there are no such.
        """
        unknown = [f"{name!r} is unknown.{nearest(name, self.DEFAULTS)}" for name in given if name not in self.DEFAULTS]
        if unknown:
            raise SignatureError(f"{type(self).__name__} has no such parameters.", unknown)
        return self._set(**{name: value for name, value in given.items() if value is not None})
