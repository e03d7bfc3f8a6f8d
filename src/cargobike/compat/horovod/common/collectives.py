"""Operations on arrays of NumPy and tensors of torch: what all of Horovod's front ends do with other ranks.

Each gives back what it was given: an array for an array, a tensor for a tensor. Those that end with `_async` return at
once; `synchronize` gives their result. Operations of ranks are matched by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cargobike.compat.horovod.common.objects import allgather_object, broadcast_object
from cargobike.compat.horovod.common.operations import (
    Array,
    Operation,
    Pending,
    broadcasting,
    exchange,
    gathering,
    make_request,
    reduction,
    scattering,
)
from cargobike.compat.horovod.common.process_sets import ProcessSet, global_process_set


def poll(pending: Pending) -> bool:
    """Tell whether an operation has ended: `synchronize` will not wait."""
    return pending.handle.is_done


def synchronize(pending: Pending) -> Any:
    """Wait for an operation and return what it gives.

    Raises:
        HorovodInternalError: If ranks disagree, or some are missing.
    """
    return pending.result()


def allreduce(value: Array, *args: Any, **kwargs: Any) -> Array:
    """Reduce a value over all ranks of a set; arguments as of `reduction`."""
    return reduction([value], *args, **kwargs).of_one().run()


def allreduce_async(value: Array, *args: Any, **kwargs: Any) -> Pending:
    """Begin to reduce a value over all ranks of a set; arguments as of `reduction`."""
    return reduction([value], *args, **kwargs).of_one().begin()


def grouped_allreduce(values: Sequence[Array], *args: Any, **kwargs: Any) -> list[Array]:
    """Reduce several values, all or none; arguments as of `reduction`."""
    return list(reduction(values, *args, **kwargs).run())


def grouped_allreduce_async(values: Sequence[Array], *args: Any, **kwargs: Any) -> Pending:
    """Begin to reduce several values, all or none; arguments as of `reduction`."""
    return reduction(values, *args, **kwargs).begin()


def allgather(value: Array, *args: Any, **kwargs: Any) -> Array:
    """Concatenate what all ranks of a set have; arguments as of `gathering`."""
    return gathering([value], *args, **kwargs).of_one().run()


def allgather_async(value: Array, *args: Any, **kwargs: Any) -> Pending:
    """Begin to concatenate what all ranks of a set have; arguments as of `gathering`."""
    return gathering([value], *args, **kwargs).of_one().begin()


def grouped_allgather(values: Sequence[Array], *args: Any, **kwargs: Any) -> list[Array]:
    """Concatenate several values; arguments as of `gathering`."""
    return list(gathering(values, *args, **kwargs).run())


def grouped_allgather_async(values: Sequence[Array], *args: Any, **kwargs: Any) -> Pending:
    """Begin to concatenate several values; arguments as of `gathering`."""
    return gathering(values, *args, **kwargs).begin()


def broadcast(value: Array, root_rank: int, *args: Any, **kwargs: Any) -> Array:
    """Give all ranks of a set the value of one of them; arguments as of `broadcasting`."""
    return broadcasting(value, root_rank, *args, **kwargs).run()


def broadcast_async(value: Array, root_rank: int, *args: Any, **kwargs: Any) -> Pending:
    """Begin to give all ranks of a set the value of one of them; arguments as of `broadcasting`."""
    return broadcasting(value, root_rank, *args, **kwargs).begin()


def alltoall(value: Array, *args: Any, **kwargs: Any) -> tuple[Array, Array]:
    """Send rows to each rank; returns what came, and how many rows from each. Arguments as of `exchange`."""
    received: tuple[Array, Array] = exchange(value, *args, **kwargs).run()
    return received


def alltoall_async(value: Array, *args: Any, **kwargs: Any) -> Pending:
    """Begin to send rows to each rank; arguments as of `exchange`."""
    return exchange(value, *args, **kwargs).begin()


def reducescatter(value: Array, *args: Any, **kwargs: Any) -> Array:
    """Reduce a value and give each rank a part of the rows; arguments as of `scattering`."""
    return scattering([value], *args, **kwargs).of_one().run()


def reducescatter_async(value: Array, *args: Any, **kwargs: Any) -> Pending:
    """Begin to reduce a value and give each rank a part of the rows; arguments as of `scattering`."""
    return scattering([value], *args, **kwargs).of_one().begin()


def grouped_reducescatter(values: Sequence[Array], *args: Any, **kwargs: Any) -> list[Array]:
    """Reduce several values and give each rank a part of the rows of each; arguments as of `scattering`."""
    return list(scattering(values, *args, **kwargs).run())


def grouped_reducescatter_async(values: Sequence[Array], *args: Any, **kwargs: Any) -> Pending:
    """Begin to reduce several values and give each rank a part of the rows; arguments as of `scattering`."""
    return scattering(values, *args, **kwargs).begin()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait for all ranks of a set."""
    Operation(make_request("barrier", None, [], process_set), [], lambda _: None).run()


def join() -> int:
    """Say that this rank has no more data, and wait for the others; returns which rank came last."""
    pending = Operation(make_request("join", "join", [], global_process_set), [], lambda _: None).begin()
    pending.result()
    return pending.handle.answer.last


__all__ = [
    "Pending",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_async",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_async",
    "broadcast_object",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_async",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "join",
    "poll",
    "reducescatter",
    "reducescatter_async",
    "synchronize",
]
