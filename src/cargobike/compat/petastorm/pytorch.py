"""Readers as batches of tensors."""

from __future__ import annotations

import collections.abc
import itertools
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Self

import numpy as np
import torch
from torch.utils.data.dataloader import default_collate

from cargobike.compat.noticing import notice
from cargobike.compat.petastorm.errors import StoppedError
from cargobike.compat.petastorm.reading.queueing import BatchQueue, Column, for_torch
from cargobike.compat.petastorm.reading.sharing import batch_sizes
from cargobike.core.errors import InvalidInputError


def decimal_friendly_collate(batch: Any) -> Any:
    """Make a batch of samples: dicts of tensors, with decimals and text left in lists."""
    first = batch[0]
    if isinstance(first, Decimal | str | bytes):
        return batch
    if isinstance(first, collections.abc.Mapping):
        return {key: decimal_friendly_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, collections.abc.Sequence):
        return [decimal_friendly_collate(samples) for samples in zip(*batch, strict=True)]
    return default_collate(batch)


class LoaderBase:
    """Batches of a reader; iterating again, after a whole pass, has the reader begin anew.

    Over a shard of a reader, all shards give equally many batches: a rank that has no more would leave the others
    waiting. That cannot be known with a predicate, filters of columns, an `NGram` or a `TransformSpec` of frames.
    """

    def __init__(self, reader: Any, batch_size: int, shuffling_queue_capacity: int) -> None:
        if type(batch_size) is not int or batch_size < 1:
            raise InvalidInputError(f"batch_size={batch_size!r}: give a whole number, at least 1.")
        self.reader = reader
        self.batch_size = batch_size
        self.shuffling_queue_capacity = shuffling_queue_capacity
        even = getattr(reader, "share_evenly", lambda: None)()
        self._even = even
        self._passes = 0
        self._in_iter: bool | None = None
        self._error: Exception | None = None

    def __iter__(self) -> Iterator[Any]:
        if self._error is not None:
            raise StoppedError(f"Cannot start a new iteration because last time iteration failed: {self._error!r}.")
        if self._in_iter:
            raise StoppedError(
                "You must finish a full pass of Petastorm DataLoader before making another pass from the beginning. "
                "To begin anew before that, make another reader and another loader."
            )
        if self._in_iter is not None:
            self.reader.reset()
        self._in_iter = True
        try:
            yield from self._iter_impl()
        except Exception as error:
            self._error = error
            raise
        finally:
            self._in_iter = False

    def _iter_impl(self) -> Iterator[Any]:
        seed = getattr(getattr(self.reader, "_options", None), "seed", None) or 0
        queue = BatchQueue(self.shuffling_queue_capacity, (seed, self._passes))
        self._passes += 1
        sizes = self._sizes()
        size = next(sizes, 0)
        for columns in columns_of(self.reader):
            queue.add(columns)
            while size and queue.rows >= size:
                yield self._made(queue.take(size))
                size = next(sizes, 0)
        queue.finish()
        while queue.rows:
            size = min(size or self.batch_size, queue.rows)
            yield self._made(queue.take(size))
            size = next(sizes, 0)

    def _sizes(self) -> Iterator[int]:
        """Yield how many rows each batch has."""
        if self._even is None:
            return itertools.repeat(self.batch_size)
        shard, rows = self._even
        epochs = itertools.count() if self.reader.num_epochs is None else range(self.reader.num_epochs)
        return itertools.chain.from_iterable(batch_sizes(rows, shard, self.batch_size) for _ in epochs)

    def _made(self, columns: dict[str, Column]) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.stop()
        self.reader.join()


class DataLoader(LoaderBase):
    """Batches of samples.

    Args:
        reader: Where rows come from.
        batch_size: How many rows a batch has.
        collate_fn: Makes a batch of a list of dicts; by default a dict of tensors.
        shuffling_queue_capacity: How many rows wait, so that they are mixed.
    """

    def __init__(
        self,
        reader: Any,
        batch_size: int = 1,
        collate_fn: Callable[[list[dict[str, Any]]], Any] = decimal_friendly_collate,
        shuffling_queue_capacity: int = 0,
    ) -> None:
        notice("petastorm.pytorch.DataLoader")
        super().__init__(reader, batch_size, shuffling_queue_capacity)
        self.collate_fn = collate_fn

    def _made(self, columns: dict[str, Column]) -> Any:
        if self.collate_fn is decimal_friendly_collate:
            return {name: _tensor(name, values, torch.as_tensor) for name, values in columns.items()}
        rows = zip(*columns.values(), strict=True)
        return self.collate_fn([dict(zip(columns, row, strict=True)) for row in rows])


class BatchedDataLoader(LoaderBase):
    """Batches of tensors, without an object for each row.

    Args:
        reader: Where rows come from.
        batch_size: How many rows a batch has.
        transform_fn: Makes a tensor of an array; by default `torch.as_tensor`.
        shuffling_queue_capacity: How many rows wait, so that they are mixed.
    """

    def __init__(
        self,
        reader: Any,
        batch_size: int = 1,
        transform_fn: Callable[[Any], Any] | None = None,
        shuffling_queue_capacity: int = 0,
    ) -> None:
        notice("petastorm.pytorch.BatchedDataLoader")
        super().__init__(reader, batch_size, shuffling_queue_capacity)
        self.transform_fn: Callable[[Any], Any] = transform_fn or torch.as_tensor

    def _made(self, columns: dict[str, Column]) -> Any:
        return {name: self.transform_fn(_array(name, values)) for name, values in columns.items()}


class InMemBatchedDataLoader:
    """Batches of rows that are kept in memory, read once.

    Args:
        reader: Where rows come from; it is stopped when enough of them are there.
        batch_size: How many rows a batch has.
        transform_fn: Makes a tensor of an array; by default `torch.as_tensor`.
        num_epochs: How often all are given.
        seed: What the order is drawn from.
        rows_capacity: How many rows are kept at most.
        shuffle: Whether each epoch has an order of its own.
    """

    def __init__(
        self,
        reader: Any,
        batch_size: int = 1,
        transform_fn: Callable[[Any], Any] | None = None,
        num_epochs: int = 1,
        seed: int = 0,
        rows_capacity: int = 1024,
        shuffle: bool = False,
    ) -> None:
        notice("petastorm.pytorch.InMemBatchedDataLoader")
        self._batch_size, self._num_epochs = batch_size, num_epochs
        self._seed, self._shuffle = seed, shuffle
        self._in_iter = False
        queue = BatchQueue(0, ())
        for columns in columns_of(reader):
            queue.add(columns)
            if queue.rows >= rows_capacity:
                break
        reader.stop()
        reader.join()
        self._rows = min(queue.rows, rows_capacity)
        kept = queue.take(self._rows) if self._rows else {}
        make = transform_fn or torch.as_tensor
        self._columns = {name: make(_array(name, values)) for name, values in kept.items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if self._in_iter:
            raise StoppedError("InMemBatchedDataLoader cannot be used twice; give it num_epochs instead.")
        self._in_iter = True
        for epoch in range(self._num_epochs):
            order = torch.arange(self._rows)
            if self._shuffle:
                generator = torch.Generator()
                generator.manual_seed(self._seed + epoch)
                order = torch.randperm(self._rows, generator=generator)
            for at in range(0, self._rows, self._batch_size):
                chosen = order[at : at + self._batch_size]
                yield {name: values[chosen] for name, values in self._columns.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: the reader was stopped already."""


def columns_of(reader: Any) -> Iterator[dict[str, Column]]:
    """Yield the rows of a reader in columns: whole row groups of ours, single rows of another one."""
    if not hasattr(reader, "next_columns") or reader.ngram is not None:
        for row in reader:
            given = row._asdict() if hasattr(row, "_asdict") else row
            values = given if reader.batched_output else {name: [value] for name, value in given.items()}
            yield {name: for_torch(name, value) for name, value in values.items()}
        return
    while (made := reader.next_columns()) is not None:
        yield {name: for_torch(name, values) for name, values in made.columns.items()}


def _array(name: str, values: Column) -> Any:
    if isinstance(values, np.ndarray):
        return values
    if values and isinstance(values[0], np.ndarray) and len({value.shape for value in values}) == 1:
        return np.stack(values)
    raise InvalidInputError(
        f"Field {name!r} has values of different shapes, or none that torch has tensors for; make them alike in a "
        "TransformSpec, or take DataLoader with a collate_fn."
    )


def _tensor(name: str, values: Column, make: Callable[[Any], Any]) -> Any:
    if isinstance(values, list) and values and not isinstance(values[0], np.ndarray):
        return values
    return make(_array(name, values))
