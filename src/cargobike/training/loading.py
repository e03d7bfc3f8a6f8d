"""Turns a DataLoader into one that gives this rank its share, with all its other settings kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler

from cargobike.core.errors import InvalidInputError
from cargobike.training.pace import Pace
from cargobike.training.process_group import Group, all_reduce_, broadcast_
from cargobike.training.sampling import ShardedBatchSampler, ShardedSampler, shard_stream
from cargobike.training.uneven import Policy


def check_loader(loader: Any) -> None:
    """Refuse what is not a DataLoader.

    Raises:
        InvalidInputError: For anything else.
    """
    if not isinstance(loader, DataLoader):
        raise InvalidInputError(
            f"loader must be a torch.utils.data.DataLoader, not {type(loader).__name__}. Put the data in a Dataset, or "
            "an IterableDataset for a stream; or leave the loader out and give each rank its own data."
        )


def is_stream(loader: DataLoader[Any]) -> bool:
    """Tell whether the loader reads an IterableDataset, whose length is not known for sure."""
    return isinstance(loader.dataset, IterableDataset)


def keeps_order(loader: DataLoader[Any]) -> bool:
    """Tell whether the loader gives out its samples in the order of the dataset."""
    return isinstance(loader.sampler, SequentialSampler)


def is_sharded(loader: DataLoader[Any]) -> bool:
    """Tell whether the loader already gives each rank a share, by torch's sampler or by ours."""
    samplers = (loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None))
    kinds = (torch.utils.data.DistributedSampler, ShardedSampler)
    return any(isinstance(sampler, kinds) for sampler in samplers)


class PreparedLoader(DataLoader[Any]):
    """A DataLoader for one rank: its share of each epoch, evened out, on its device."""

    def attach(self, group: Group, policy: Policy, pace: Pace, joinables: Sequence[Any], agrees: bool) -> None:
        """Connect the loader with the model and the optimizer that it feeds."""
        self._group, self._policy, self._pace = group, policy, pace
        self._joinables, self._agrees = list(joinables), agrees
        self._passes = 0

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override,unused-ignore]
        batches: Iterator[Any] = super().__iter__()
        self._passes += 1
        if self._agrees:
            batches = self._agree(batches)
        batches = self._count(batches)
        return self._join(batches) if self._joinables else batches

    @property
    def epoch(self) -> int:
        """The epoch that the next pass draws."""
        for sampler in (self.batch_sampler, self.sampler):
            if isinstance(sampler, ShardedSampler):
                return sampler.epoch
        return self._passes

    def set_epoch(self, epoch: int) -> None:
        """Go on with this epoch's order: for training that continues from a checkpoint."""
        self._passes = epoch
        for sampler in (self.batch_sampler, self.sampler):
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)

    def _count(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Tell the pace what is left, and move batches to the device."""
        device = self._group.device
        total = None if self._agrees or is_stream(self) else len(self)
        for index, (batch, is_last) in enumerate(_with_end(batches, total)):
            remaining = total - index if total is not None else (1 if is_last else None)
            self._pace.begin_batch(remaining)
            yield move(batch, device) if device is not None and device.type != "cpu" else batch

    def _agree(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Ask all ranks before each batch whether they have one: the length of a stream is not known."""
        first: Any = None
        has_batch = True
        while True:
            batch = next(batches, _NOTHING)
            has_batch = batch is not _NOTHING
            first = batch if first is None else first
            flag = torch.tensor([int(has_batch)], device=self._group.device)
            having = int(all_reduce_(flag, self._group, "agree on the next batch").item())
            if having == 0 or (having < self._group.world_size and self._policy == "drop"):
                return
            if not has_batch and first is _NOTHING:
                raise InvalidInputError(
                    f"Rank {self._group.rank} has no batch at all to pad with, while others have: the stream is "
                    "shorter than the number of ranks. Use fewer ranks, smaller batches or uneven='drop'."
                )
            yield batch if has_batch else first

    def _join(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Answer the collectives of the others after the last batch, until they are done too."""
        joined = Join(self._joinables, divide_by_initial_world_size=False)
        joined.__enter__()
        try:
            yield from batches
        except BaseException as error:
            joined.__exit__(type(error), error, None)
            raise
        joined.__exit__(None, None, None)


_NOTHING = object()


def _with_end(batches: Iterator[Any], total: int | None) -> Iterator[tuple[Any, bool]]:
    """Yield each batch with whether it is the last; looks one ahead only where the number is unknown."""
    if total is not None:
        for index, batch in enumerate(batches):
            yield batch, index + 1 == total
        return
    batch = next(batches, _NOTHING)
    while batch is not _NOTHING:
        following = next(batches, _NOTHING)
        yield batch, following is _NOTHING
        batch = following


def move(batch: Any, device: torch.device) -> Any:
    """Return a batch with its tensors on the device; tuples, lists, dicts and objects with `to` are understood."""
    if isinstance(batch, dict):
        return type(batch)((key, move(value, device)) for key, value in batch.items())
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(move(value, device) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(move(value, device) for value in batch)
    return batch.to(device, non_blocking=True) if hasattr(batch, "to") else batch


def shard_loader(loader: DataLoader[Any], group: Group, policy: Policy, *, shard: bool) -> PreparedLoader:
    """Return a loader with the settings of the given one that gives this rank its share.

    Raises:
        InvalidInputError: If a rank would get nothing.
    """
    settings = _settings(loader)
    shares = shard and group.world_size > 1 and not is_sharded(loader)
    place: dict[str, Any] = {"rank": group.rank, "world_size": group.world_size}
    if is_stream(loader):
        if shares:
            settings["dataset"] = shard_stream(loader.dataset, **place)
        return PreparedLoader(**settings, batch_size=loader.batch_size, drop_last=loader.drop_last)
    place |= {"policy": policy, "seed": _shared_seed(loader, group) if shares else 0}
    if loader.batch_size is None and loader.batch_sampler is not None:
        batches = ShardedBatchSampler(loader.batch_sampler, **place) if shares else loader.batch_sampler
        _refuse_nothing(batches, group)
        return PreparedLoader(**settings, batch_sampler=batches)
    sampler = ShardedSampler(loader.sampler, **place) if shares else loader.sampler
    _refuse_nothing(sampler, group)
    return PreparedLoader(**settings, batch_size=loader.batch_size, drop_last=loader.drop_last, sampler=sampler)


def _refuse_nothing(sampler: Any, group: Group) -> None:
    with contextlib.suppress(TypeError):
        if len(sampler) == 0 and group.world_size > 1:
            raise InvalidInputError(
                f"Rank {group.rank} of {group.world_size} would get no data: there is less of it than ranks. Use fewer "
                "workers, or uneven='pad'."
            )


def _settings(loader: DataLoader[Any]) -> dict[str, Any]:
    names = ["dataset", "num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "generator"]
    names += ["multiprocessing_context", "prefetch_factor", "persistent_workers", "in_order"]
    return {name: getattr(loader, name) for name in names if hasattr(loader, name)}


def _shared_seed(loader: DataLoader[Any], group: Group) -> int:
    """Return rank 0's seed: of the loader's generator if it has one, of the default generator otherwise."""
    generator = loader.generator or getattr(loader.sampler, "generator", None)
    seed = generator.initial_seed() if generator is not None else torch.initial_seed()
    tensor = torch.tensor([seed % 2**62], dtype=torch.int64, device=group.device)
    broadcast_([tensor], group, "agree on the order of the data")
    return int(tensor.item())


def steps_agree(count: int, group: Group) -> bool:
    """Tell whether all ranks will take equally many steps."""
    counts = torch.tensor([count, -count], device=group.device)
    all_reduce_(counts, group, "compare the lengths of their loaders", op=dist.ReduceOp.MAX)
    return bool(counts[0] == -counts[1])
