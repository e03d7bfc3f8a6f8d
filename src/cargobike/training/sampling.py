"""Deals one epoch's samples out to the ranks: the same order drawn in all, a share of it taken in each."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterator, Sized
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, IterableDataset, RandomSampler, Sampler

from cargobike.training.uneven import Policy, share_length, take_share


class SharedOrder:
    """Draws an epoch's order from the user's own sampler, equal in all ranks, another one in each epoch.

    Every rank seeds what a sampler may draw from (torch, NumPy, `random`, the sampler's own generator) with the same
    number and the epoch's, draws, and puts everything back as it was.
    """

    def __init__(self, sampler: Any, seed: int) -> None:
        self.sampler = sampler
        self.epoch = 0
        self._seed = seed

    def draw(self) -> list[Any]:
        """Return the next epoch's order and count the epoch."""
        seed = (self._seed + self.epoch) % 2**63
        if hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(self.epoch)
        self.epoch += 1
        if type(self.sampler) is RandomSampler and not self.sampler.replacement:
            generator = torch.Generator().manual_seed(seed)
            if self.sampler.num_samples == len(self.sampler.data_source):
                order: list[int] = torch.randperm(len(self.sampler.data_source), generator=generator).tolist()
                return order
        with _seeded(seed, self.sampler):
            return list(self.sampler)


@contextlib.contextmanager
def _seeded(seed: int, sampler: Any) -> Iterator[None]:
    own = [
        candidate.generator
        for candidate in (sampler, getattr(sampler, "sampler", None))
        if candidate is not None and isinstance(getattr(candidate, "generator", None), torch.Generator)
    ]
    states = [generator.get_state() for generator in own]
    python_state, numpy_state = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)
        for generator in own:
            generator.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)
            for generator, state in zip(own, states, strict=True):
                generator.set_state(state)


class ShardedSampler(Sampler[Any]):
    """One rank's share of what a sampler draws. Each pass is a new epoch, without a call of `set_epoch`."""

    def __init__(self, sampler: Any, *, rank: int, world_size: int, policy: Policy, seed: int) -> None:
        self._order = SharedOrder(sampler, seed)
        self._rank, self._world_size, self._policy = rank, world_size, policy

    def __iter__(self) -> Iterator[Any]:
        return iter(take_share(self._order.draw(), self._rank, self._world_size, self._policy))

    def __len__(self) -> int:
        return share_length(len(self._order.sampler), self._rank, self._world_size, self._policy)

    @property
    def epoch(self) -> int:
        """The epoch that the next pass draws."""
        return self._order.epoch

    def set_epoch(self, epoch: int) -> None:
        """Draw this epoch next: for training that goes on from a checkpoint."""
        self._order.epoch = epoch


class ShardedBatchSampler(ShardedSampler, BatchSampler):
    """One rank's share of the batches that the user's own batch sampler makes."""


class ShardedStream(IterableDataset[Any]):
    """One rank's share of a stream: every `world_size`-th item, starting with its own."""

    def __init__(self, stream: Any, *, rank: int, world_size: int) -> None:
        self._stream, self._rank, self._world_size = stream, rank, world_size

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self._stream), self._rank, None, self._world_size)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_stream":
            raise AttributeError(name)
        return getattr(self._stream, name)


class CountedShardedStream(ShardedStream):
    """A share of a stream that knows its length."""

    def __len__(self) -> int:
        return max(0, -(-(len(self._stream) - self._rank) // self._world_size))


def shard_stream(stream: Any, *, rank: int, world_size: int) -> ShardedStream:
    """Return one rank's share of a stream, with a length if the stream has one."""
    kind = CountedShardedStream if isinstance(stream, Sized) else ShardedStream
    return kind(stream, rank=rank, world_size=world_size)
