"""Turns a DataLoader into one that gives this rank its share, with all its other settings kept."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler

from cargobike.core.errors import InvalidInputError
from cargobike.training.pace import Pace
from cargobike.training.process_group import Group, all_reduce_, broadcast_
from cargobike.training.progress import Progress, Taken, count_taken
from cargobike.training.sampling import EpochOrder, ShardedBatchSampler, ShardedSampler, ShardedStream, shard_stream
from cargobike.training.uneven import Policy

_log = logging.getLogger(__name__)
_ALONE = {"rank": 0, "world_size": 1}


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

    def follow(self, progress: Progress, ranks_with_own_data: int) -> None:
        """Count what is given out; `ranks_with_own_data` is 0 where one order is dealt out to all ranks."""
        self.progress, self.ranks_with_own_data = progress, ranks_with_own_data

    def attach(self, group: Group, policy: Policy, pace: Pace, joinables: Sequence[Any], agrees: bool) -> None:
        """Connect the loader with the model and the optimizer that it feeds."""
        self._group, self._policy, self._pace = group, policy, pace
        self._joinables, self._agrees = list(joinables), agrees

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override,unused-ignore]
        number = self.progress.begin_pass()
        batches = self._begin_stream() if is_stream(self) else super().__iter__()
        if self._agrees:
            batches = self._agree(batches)
        batches = self._count(batches, number)
        return self._join(batches) if self._joinables else batches

    @property
    def epoch(self) -> int:
        """The epoch that the next pass draws."""
        return self.progress.next_epoch

    @property
    def position(self) -> int:
        """How many batches of the present epoch this rank has had, those of earlier attempts included.

        For loops that count: `enumerate(loader, start=loader.position)`.
        """
        return self._batches_before() + self.progress.given

    def set_epoch(self, epoch: int) -> None:
        """Draw this epoch next; what is left of it, if an earlier attempt has begun it."""
        if epoch != self.progress.next_epoch:
            self.progress.go_to(epoch)
        for sampler in (self.batch_sampler, self.sampler):
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)

    def state(self) -> dict[str, Any]:
        """Return where training stands in its data, as plain data: what is in the weights, and nothing else."""
        epoch, batches = self.progress.position()
        taken = list(self.progress.taken) if epoch == self.progress.epoch else []
        if batches:
            taken.append(Taken(self._dealt_to, batches * self._items_per_batch))
        order = self._order
        return {
            "epoch": epoch,
            "taken": taken,
            "ranks_with_own_data": self.ranks_with_own_data,
            "seed": order.seed if order is not None else None,
            "origin": order.origin() if order is not None and taken else {},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on where such a state says: in the middle of an epoch with what is left of it."""
        epoch, taken = int(state["epoch"]), [Taken(*each) for each in state.get("taken", ())]
        if taken and state.get("ranks_with_own_data", 0) != self.ranks_with_own_data:
            _log.warning(
                "The checkpoint was saved in the middle of epoch %d by a gang whose ranks had other data than these; "
                "what is left of the epoch is not known, so it begins anew.",
                epoch,
            )
            taken = []
        if taken and not self.ranks_with_own_data and self._batches_left(taken, rank=0) == 0:
            epoch, taken = epoch + 1, []
        self._iterator = None  # processes that are kept have drawn ahead
        self.progress.go_to(epoch, taken)
        self.set_epoch(epoch)
        if self._order is not None:
            self._order.inherit(state.get("seed"), epoch, state.get("origin", {}) if taken else {})

    @property
    def _order(self) -> EpochOrder | None:
        for sampler in (self.batch_sampler, self.sampler):
            if isinstance(sampler, ShardedSampler):
                return sampler.order
        return None

    @property
    def _items_per_batch(self) -> int:
        """How many items one batch takes of the order; where the user's sampler makes the batches, an item is one."""
        return self.batch_size or 1

    @property
    def _dealt_to(self) -> int:
        """How many ranks an epoch's order is dealt out to."""
        return 1 if self.ranks_with_own_data else self._group.world_size

    def _batches_before(self) -> int:
        """Return how many batches of the present epoch earlier attempts have taken, counted in batches of this one."""
        taken = self.progress.taken
        if not taken:
            return 0
        left = None if is_stream(self) else self._batches_left(taken)
        if left is None:
            return count_taken(taken) // (self._items_per_batch * self._dealt_to)
        return len(self) - left

    def _batches_left(self, taken: Sequence[Taken], rank: int | None = None) -> int | None:
        """Return how many batches the rest of an epoch makes for a rank, `None` if that is not known."""
        sampler = self.sampler if isinstance(self.sampler, ShardedSampler) else self.batch_sampler
        if is_stream(self) or not isinstance(sampler, ShardedSampler):
            return None
        try:
            items = sampler.share_of_rest(taken, rank)
        except TypeError:  # a sampler without a length
            return None
        size = self._items_per_batch
        return items // size if self.drop_last else -(-items // size)

    def _begin_stream(self) -> Iterator[Any]:
        """Begin a pass over a stream, without what earlier attempts have taken of it."""
        taken, stream = self.progress.taken, self.dataset
        if isinstance(stream, ShardedStream):
            stream.taken = taken
            batches: Iterator[Any] = super().__iter__()
            stream.taken = ()
            return batches
        skipped = count_taken(taken) // self._items_per_batch
        return itertools.islice(super().__iter__(), skipped, None)

    def _count(self, batches: Iterator[Any], number: int) -> Iterator[Any]:
        """Tell the pace what is left, note what is given out, and move batches to the device."""
        device = self._group.device
        total = None if self._agrees else self._batches_left(self.progress.taken)
        # A rank that joins may have its last batch of its own data while others still have some.
        ends_with_others = not (self.ranks_with_own_data and self._policy == "join")
        is_complete = False
        try:
            for index, (batch, is_last) in enumerate(_with_end(batches, total)):
                remaining = total - index if total is not None else (1 if is_last else None)
                self._pace.begin_batch(remaining)
                self.progress.give(is_last=is_last and ends_with_others)
                yield move(batch, device) if device is not None and device.type != "cpu" else batch
            is_complete = True
        finally:
            self.progress.end_pass(number, is_complete=is_complete)

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
    if isinstance(loader, PreparedLoader):
        made = PreparedLoader(**settings, **_drawing(loader, loader.batch_sampler, loader.sampler))
        made.follow(loader.progress, loader.ranks_with_own_data)
        return made
    place: dict[str, Any] = {"rank": group.rank, "world_size": group.world_size} if shares else _ALONE
    progress = Progress()
    if is_stream(loader):
        if shares:
            settings["dataset"] = shard_stream(loader.dataset, **place, batch_size=loader.batch_size or 1)
        made = PreparedLoader(**settings, batch_size=loader.batch_size, drop_last=loader.drop_last)
    else:
        # Alone, samplers draw as they would by themselves, and so do those that give each rank a share already.
        seed = None if is_sharded(loader) or group.world_size == 1 else _shared_seed(loader, group)
        order = EpochOrder(loader.batch_sampler if _has_batches(loader) else loader.sampler, seed)
        order.salt = 0 if shares else group.rank << 32
        kind = ShardedBatchSampler if _has_batches(loader) else ShardedSampler
        sampler = kind(order, progress, **place, policy=policy)
        _refuse_nothing(sampler, group)
        made = PreparedLoader(**settings, **_drawing(loader, sampler, sampler))
    made.follow(progress, 0 if shares or group.world_size == 1 else group.world_size)
    return made


def _has_batches(loader: DataLoader[Any]) -> bool:
    """Tell whether the user's own sampler makes whole batches."""
    return loader.batch_size is None and loader.batch_sampler is not None


def _drawing(loader: DataLoader[Any], batch_sampler: Any, sampler: Any) -> dict[str, Any]:
    """Return the settings with which a loader like the given one draws from a sampler."""
    if _has_batches(loader):
        return {"batch_sampler": batch_sampler}
    kept = {"batch_size": loader.batch_size, "drop_last": loader.drop_last}
    return kept if is_stream(loader) else {**kept, "sampler": sampler}


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
