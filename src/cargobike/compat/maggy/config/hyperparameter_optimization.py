"""Maggy's configurations of a search: `HyperparameterOptConfig` of 1.1, and `OptimizationConfig` of 1.0."""

from __future__ import annotations

from typing import Any

from cargobike.compat.maggy.config.lagom import LagomConfig
from cargobike.core.errors import InvalidInputError

__all__ = ["HyperparameterOptConfig", "OptimizationConfig"]


class HyperparameterOptConfig(LagomConfig):
    """A search.

    Args:
        num_trials: How many trials.
        optimizer: A name or an object.
        searchspace: What to search.
        optimization_key: What the number to optimize is called in a returned dict.
        direction: `"max"` or `"min"`.
        es_interval: At which steps early stopping is asked.
        es_min: After how many finished trials it is asked.
        es_policy: `"median"`, `"none"` or a policy of your own.
        name: The experiment's name.
        description: A sentence about it.
        hb_interval: Means nothing here.
        model: What the train function gets as `model`.
        dataset: What it gets as `dataset`.
        train_set: What it gets as `train_set`, as documents have it.
        test_set: What it gets as `test_set`.
    """

    def __init__(
        self,
        num_trials: int,
        optimizer: Any,
        searchspace: Any,
        optimization_key: str = "Metric",
        direction: str = "max",
        es_interval: int = 1,
        es_min: int = 10,
        es_policy: Any = "median",
        name: str = "HPOptimization",
        description: str = "",
        hb_interval: int = 1,
        model: Any = None,
        dataset: Any = None,
        train_set: Any = None,
        test_set: Any = None,
    ) -> None:
        super().__init__(name, description, hb_interval)
        if not num_trials > 0:
            raise InvalidInputError(f"num_trials={num_trials!r}: the number of trials should be greater than zero.")
        self.num_trials = num_trials
        self.optimizer = optimizer
        self.searchspace = searchspace
        self.optimization_key = optimization_key
        self.direction = direction
        self.es_interval = es_interval
        self.es_min = es_min
        self.es_policy = es_policy
        self.model = model
        self.dataset = dataset
        self.train_set = train_set
        self.test_set = test_set


class OptimizationConfig(HyperparameterOptConfig):
    """The same, as 1.0 called it: the number to optimize is called `metric`."""

    def __init__(
        self,
        num_trials: int,
        optimizer: Any,
        searchspace: Any,
        optimization_key: str = "metric",
        *args: Any,
        **named: Any,
    ) -> None:
        super().__init__(num_trials, optimizer, searchspace, optimization_key, *args, **named)
