"""Maggy's configuration of a distributed training in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cargobike.compat.maggy.config.lagom import LagomConfig

__all__ = ["TfDistributedConfig"]


class TfDistributedConfig(LagomConfig):
    """A training in TensorFlow on all workers at once.

    Args:
        model: The class of a Keras model, or a function that makes one.
        train_set: What the function gets as `train_set`: each rank gets its share.
        test_set: What it gets as `test_set`, whole.
        process_data: Makes what the function gets of what is given here, in each worker.
        mixed_precision: Whether Keras computes in mixed precision.
        name: The experiment's name.
        hb_interval: Means nothing here.
        description: A sentence about it.
        hparams: What the function gets as `hparams`.
        dataset: What it gets as `dataset`, as in 1.1: the first of the list is divided, as `train_set` is.
    """

    def __init__(
        self,
        model: Any = None,
        train_set: Any = None,
        test_set: Any = None,
        process_data: Callable[..., Any] | None = None,
        mixed_precision: bool = False,
        name: str = "tfDist",
        hb_interval: int = 1,
        description: str = "",
        hparams: dict[str, Any] | None = None,
        dataset: Any = None,
    ) -> None:
        super().__init__(name, description, hb_interval)
        if isinstance(train_set, list) and dataset is None and (test_set is None or callable(test_set)):
            # 1.1 had the list, and then process_data, in these places
            train_set, test_set, dataset, process_data = None, None, train_set, process_data or test_set
        self.model = model
        self.train_set = train_set
        self.test_set = test_set
        self.dataset = dataset
        self.process_data = process_data
        self.mixed_precision = mixed_precision
        self.hparams = hparams or {}
