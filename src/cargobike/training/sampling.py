"""Deals one epoch's samples out to the ranks: the same order drawn in all, a share of it taken in each."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, IterableDataset, RandomSampler, Sampler, SequentialSampler, get_worker_info

from cargobike.training.progress import Progress, Taken, count_taken, skip_taken
from cargobike.training.uneven import Policy, share_length, take_share


class EpochOrder:
    """Draws an epoch's order from the user's own sampler, in such a way that a later attempt can draw it again.

    With a seed, every rank seeds what a sampler may draw from (torch, NumPy, `random`, the sampler's own generator)
    with the same number and the epoch's, draws, and puts everything back as it was. Without one, the sampler draws as
    it would by itself, and the states of these generators are noted before.

    Args:
        sampler: The user's own sampler.
        seed: What orders are made from, `None` to let the sampler draw by itself.

    Attributes:
        salt: Makes this rank's orders differ from those of others, if each has data of its own.
    """

    def __init__(self, sampler: Any, seed: int | None) -> None:
        self.sampler = sampler
        self.seed = seed
        self.salt = 0
        self._inherited: tuple[int, dict[str, Any]] | None = None
        self._origin: dict[str, Any] = {}

    def draw(self, epoch: int) -> Iterable[Any]:
        """Return the order of an epoch."""
        origin = self._inherited[1] if self._inherited is not None and self._inherited[0] == epoch else None
        if origin is None and self.seed is None:
            return self._draw_freely()
        self._origin = origin or {"seed": self.seed}
        if (seed := self._origin.get("seed")) is not None:
            return self._draw_from_seed((seed + self.salt + epoch) % 2**63, epoch)
        with _kept(self.sampler):
            _set_generators(self.sampler, self._origin)
            return _listed(self.sampler)

    def _draw_freely(self) -> Iterator[Any]:
        self._origin = _note_generators(self.sampler)
        order: Iterator[Any] = iter(self.sampler)
        if self._origin == _note_generators(self.sampler):  # it has drawn nothing yet, and others may before it does
            return self._noting(order)
        return order

    def _noting(self, order: Iterator[Any]) -> Iterator[Any]:
        self._origin = _note_generators(self.sampler)
        yield from order

    def _draw_from_seed(self, seed: int, epoch: int) -> Iterable[Any]:
        if hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(epoch)
        if type(self.sampler) is RandomSampler and not self.sampler.replacement:
            generator = torch.Generator().manual_seed(seed)
            if self.sampler.num_samples == len(self.sampler.data_source):
                order: list[int] = torch.randperm(len(self.sampler.data_source), generator=generator).tolist()
                return order
        with _kept(self.sampler):
            torch.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed % 2**32)
            for generator in _own_generators(self.sampler):
                generator.manual_seed(seed)
            return _listed(self.sampler)

    def origin(self) -> dict[str, Any]:
        """Return what the present epoch's order was made from, as plain data."""
        return self._origin

    def inherit(self, seed: int | None, epoch: int, origin: dict[str, Any]) -> None:
        """Go on with the orders of an earlier attempt: this epoch's from its origin, later ones from its seed."""
        if self.seed is not None and seed is not None:
            self.seed = seed
        self._inherited = (epoch, origin) if origin else None


def _listed(sampler: Any) -> Iterable[Any]:
    return list(sampler) if hasattr(sampler, "__len__") else iter(sampler)  # one without a length may have no end


def _own_generators(sampler: Any) -> list[torch.Generator]:
    return [
        candidate.generator
        for candidate in (sampler, getattr(sampler, "sampler", None))
        if candidate is not None and isinstance(getattr(candidate, "generator", None), torch.Generator)
    ]


@contextlib.contextmanager
def _kept(sampler: Any) -> Iterator[None]:
    """Put everything that a sampler may draw from back as it was."""
    own = _own_generators(sampler)
    states = [generator.get_state() for generator in own]
    python_state, numpy_state = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)
            for generator, state in zip(own, states, strict=True):
                generator.set_state(state)


def _note_generators(sampler: Any) -> dict[str, Any]:
    """Return the states of everything that a sampler may draw from; nothing for one that draws nothing."""
    if isinstance(getattr(sampler, "sampler", sampler), SequentialSampler):
        return {}
    version, words, gauss = random.getstate()
    _, keys, *rest = np.random.get_state(legacy=True)
    return {
        "torch": bytes(torch.get_rng_state().numpy()).hex(),
        "own": [bytes(generator.get_state().numpy()).hex() for generator in _own_generators(sampler)],
        "python": [version, list(words), gauss],
        "numpy": [[int(key) for key in keys], *rest],
    }


def _set_generators(sampler: Any, states: dict[str, Any]) -> None:
    torch.set_rng_state(_from_hex(states["torch"]))
    for generator, state in zip(_own_generators(sampler), states["own"], strict=False):
        generator.set_state(_from_hex(state))
    version, words, gauss = states["python"]
    random.setstate((version, tuple(words), gauss))
    keys, *rest = states["numpy"]
    np.random.set_state(("MT19937", np.array(keys, dtype=np.uint32), *rest))


def _from_hex(text: str) -> torch.Tensor:
    return torch.tensor(list(bytes.fromhex(text)), dtype=torch.uint8)


class ShardedSampler(Sampler[Any]):
    """One rank's share of what a sampler draws. Each pass is a new epoch, without a call of `set_epoch`."""

    def __init__(self, order: EpochOrder, progress: Progress, *, rank: int, world_size: int, policy: Policy) -> None:
        self.order = order
        self._progress = progress
        self._rank, self._world_size, self._policy = rank, world_size, policy

    def __iter__(self) -> Iterator[Any]:
        taken = self._progress.taken
        order = self.order.draw(self._progress.epoch)
        if not isinstance(order, Sequence):
            return itertools.islice(iter(order), count_taken(taken), None)
        rest = skip_taken(order, taken)
        return iter(take_share(rest, self._rank, self._world_size, self._policy, filler=order))

    def __len__(self) -> int:
        return self.share_of_rest(())

    def share_of_rest(self, taken: Sequence[Taken], rank: int | None = None) -> int:
        """Return how many items a rank, this one unless another is named, gets of what is left of an epoch."""
        rest = max(0, len(self.order.sampler) - count_taken(taken))
        return share_length(rest, self._rank if rank is None else rank, self._world_size, self._policy)

    @property
    def epoch(self) -> int:
        """The epoch that the next pass draws."""
        return self._progress.next_epoch

    def set_epoch(self, epoch: int) -> None:
        """Draw this epoch next; what is left of it, if an earlier attempt has begun it."""
        if epoch != self._progress.next_epoch:
            self._progress.go_to(epoch)
        if hasattr(self.order.sampler, "set_epoch"):
            self.order.sampler.set_epoch(epoch)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "order":
            raise AttributeError(name)
        return getattr(self.order.sampler, name)


class ShardedBatchSampler(ShardedSampler, BatchSampler):
    """One rank's share of the batches that the user's own batch sampler makes."""


class ShardedStream(IterableDataset[Any]):
    """One rank's share of a stream: every `world_size`-th item, starting with its own.

    Attributes:
        taken: What to leave out of the next pass, in batches; copies in other processes leave it out of their part.
    """

    def __init__(self, stream: Any, *, rank: int, world_size: int, batch_size: int) -> None:
        self._stream, self._rank, self._world_size = stream, rank, world_size
        self._batch_size = batch_size
        self.taken: Sequence[Taken] = ()

    def __iter__(self) -> Iterator[Any]:
        taken, self.taken = self.taken, ()
        worker = get_worker_info()
        number, of = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        skipped = count_taken(
            # Workers give batches in turns, beginning with the first.
            [
                Taken(each.world_size, _turns(each.items // self._batch_size, number, of) * self._batch_size)
                for each in taken
            ]
        )
        return itertools.islice(iter(self._stream), skipped + self._rank, None, self._world_size)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_stream":
            raise AttributeError(name)
        return getattr(self._stream, name)


def _turns(batches: int, number: int, of: int) -> int:
    return max(0, -(-(batches - number) // of))


class CountedShardedStream(ShardedStream):
    """A share of a stream that knows its length."""

    def __len__(self) -> int:
        return max(0, -(-(len(self._stream) - self._rank) // self._world_size))


def shard_stream(stream: Any, *, rank: int, world_size: int, batch_size: int) -> ShardedStream:
    """Return one rank's share of a stream, with a length if the stream has one."""
    kind = CountedShardedStream if isinstance(stream, Sized) else ShardedStream
    return kind(stream, rank=rank, world_size=world_size, batch_size=batch_size)
