"""Maggy's distributed training in torch, on a gang of ours."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch.utils.data
from torch.utils.data import DataLoader, Dataset, IterableDataset

import cargobike.torch
from cargobike import experiment, trial
from cargobike.compat.maggy.config import TorchDistributedConfig
from cargobike.compat.maggy.running.calling import USUAL_KEYS, Called
from cargobike.compat.placing import placement
from cargobike.core.errors import InvalidInputError


class ModuleTypeError(InvalidInputError, TypeError):
    """What was given makes no model: Maggy raised a TypeError."""


class Prepared:
    """The class of a model, or a function that makes one: what it makes trains with all ranks.

    Args:
        make: The class or function.
        strategy: `"ddp"`, or `"fsdp"` to divide it among the ranks.
        precision: `"fp32"` or `"bf16"`.
    """

    def __init__(self, make: Any, strategy: str, precision: str) -> None:
        if not callable(make) or isinstance(make, torch.nn.Module):
            raise ModuleTypeError(
                f"module={make!r}: give the class of the model, or a function that makes one, not a model; the ranks "
                "make it."
            )
        self.make = make
        self._strategy = strategy
        self._precision = precision

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "make" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.make, name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Make the model, and prepare it."""
        model = self.make(*args, **named)
        return cargobike.torch.prepare(model, strategy=self._strategy, precision=self._precision).model


class Share(Dataset[Any]):  # type: ignore[misc,unused-ignore]
    """What a rank sees of a dataset: every n-th sample, and as many as every other rank.

    Args:
        whole: The dataset.
    """

    def __init__(self, whole: Any) -> None:
        self.whole = whole

    def __len__(self) -> int:
        return math.ceil(len(self.whole) / trial.world_size)

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self.whole[((index % len(self)) * trial.world_size + trial.rank) % len(self.whole)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "whole" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.whole, name)


class TorchCalled(Called):
    """A train function of Maggy's as the ranks of ours call it: what it loads is divided among them.

    Maggy replaced torch's `DataLoader` for good, and divided the data to test with, too. Here it stands for one that
    divides while the function runs and no longer; the configuration's `test_set`, and what comes after the first in
    `dataset`, stays whole.
    """

    def __call__(self, **params: Any) -> Any:
        """Call the user's function."""
        dataset = self._objects.get("dataset")
        whole = [self._objects.get("test_set"), *(dataset[1:] if isinstance(dataset, list) else ())]
        with loaders_divide([one for one in whole if one is not None]):
            return super().__call__(**params)


@contextlib.contextmanager
def loaders_divide(whole: list[Any]) -> Iterator[None]:
    """Make `torch.utils.data.DataLoader` give each rank its share of every dataset but these.

    Args:
        whole: Datasets that every rank reads as a whole.
    """

    class RankLoader(DataLoader[Any]):  # type: ignore[misc,unused-ignore]
        def __new__(cls, dataset: Any, *args: Any, **named: Any) -> Any:
            loader: Any = DataLoader(dataset.whole if isinstance(dataset, Share) else dataset, *args, **named)
            if any(dataset is one for one in whole):
                return cargobike.torch.prepare(loader=loader, shard=False).loader
            uneven = "auto" if isinstance(dataset, IterableDataset) else "pad"
            return cargobike.torch.prepare(loader=loader, uneven=uneven).loader

    torch.utils.data.DataLoader = RankLoader  # type: ignore[misc,unused-ignore]
    try:
        yield
    finally:
        torch.utils.data.DataLoader = DataLoader  # type: ignore[misc,unused-ignore]


def run_torch(train_fn: Callable[..., Any], config: TorchDistributedConfig, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Train on all workers at once, and return the mean of what the ranks returned, as `"test result"`.

    Args:
        train_fn: The user's function.
        config: What was asked for.
        ours: Arguments of our own `allreduce` that were given besides.
    """
    strategy = "fsdp" if config.zero_lvl else "ddp"
    precision = "bf16" if config.mixed_precision else "fp32"
    several = isinstance(config.module, list)
    modules = [Prepared(one, strategy, precision) for one in (config.module if several else [config.module])]
    module = modules if several else modules[0]
    dataset = config.dataset
    if isinstance(dataset, list) and dataset:
        dataset = [_divided(dataset[0]), *dataset[1:]]
    objects = {
        "module": module,
        "model": module,
        "train_set": _divided(config.train_set),
        "test_set": config.test_set,
        "dataset": dataset,
        "hparams": config.hparams,
    }
    called = TorchCalled(train_fn, USUAL_KEYS[0], objects)
    said = {"name": config.name, "description": config.description, **placement(ours)}
    result = experiment.allreduce(called, **said)
    values = [number for value in result.values if (number := number_of(value)) is not None]
    mean = sum(values) / len(values) if values else None
    return {"test result": mean, "values": list(result.values), "experiment_id": result.id}


def number_of(value: Any) -> float | None:
    """Return the number that counts of what a rank returned."""
    if isinstance(value, Mapping):
        return next((value[key] for key in (*USUAL_KEYS, *value) if key in value), None)
    return value if isinstance(value, int | float) else None


def _divided(dataset: Any) -> Any:
    is_map = isinstance(dataset, Dataset) and not isinstance(dataset, IterableDataset)
    return Share(dataset) if is_map else dataset
