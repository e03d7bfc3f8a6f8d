"""The operations of `horovod.torch`, each as it is, in place (`_`), not waiting (`_async`), and both (`_async_`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from cargobike.compat.horovod.common import collectives, operations
from cargobike.compat.horovod.common.basics import (
    cross_rank,
    cross_size,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from cargobike.compat.horovod.common.built import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rocm_built,
)
from cargobike.compat.horovod.common.exceptions import HorovodInternalError
from cargobike.compat.horovod.common.operations import Pending
from cargobike.compat.horovod.common.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from cargobike.compat.horovod.common.reductions import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    ReduceOp,
    Sum,
    choose_op,
)
from cargobike.compat.horovod.torch.compression import Compression, Compressor
from cargobike.compat.horovod.torch.gradients import Broadcasting, Exchange, Gathering, Reduction, Scattering
from cargobike.compat.horovod.torch.sparse import sparse_allreduce_async
from cargobike.compat.noticing import formerly

_Kind = type[Compressor]


@formerly("horovod.torch.allreduce")
def allreduce(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: _Kind = Compression.none,
    op: ReduceOp | int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Return a tensor reduced over ranks, by default the mean; autograd knows its gradient."""
    chosen = choose_op(op, average)
    if tensor.is_sparse:
        return sparse_allreduce_async(tensor, name, chosen, process_set)()
    sent, context = compression.compress(tensor)
    (reduced,) = Reduction.apply(name, chosen, (prescale_factor, postscale_factor), process_set, sent)
    return compression.decompress(reduced, context)


def allreduce_(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Reduce a tensor over ranks, in place."""
    chosen = choose_op(op, average)
    collectives.allreduce(tensor, name, chosen, prescale_factor, postscale_factor, process_set, in_place=True)
    return tensor


def allreduce_async(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Pending:
    """Begin to reduce a tensor over ranks; `synchronize` gives the result."""
    chosen = choose_op(op, average)
    return collectives.allreduce_async(tensor, name, chosen, prescale_factor, postscale_factor, process_set)


def allreduce_async_(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Pending:
    """Begin to reduce a tensor over ranks, in place."""
    chosen = choose_op(op, average)
    operation = operations.reduction(
        [tensor], name, chosen, prescale_factor, postscale_factor, process_set, in_place=True
    )
    return operation.giving(tensor).begin()


def grouped_allreduce(
    tensors: Sequence[Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: _Kind = Compression.none,
    op: ReduceOp | int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """Return several tensors reduced over ranks, all or none."""
    chosen = choose_op(op, average)
    pairs = [compression.compress(tensor) for tensor in tensors]
    scales = (prescale_factor, postscale_factor)
    reduced = Reduction.apply(name, chosen, scales, process_set, *(sent for sent, _ in pairs))
    return [compression.decompress(one, context) for one, (_, context) in zip(reduced, pairs, strict=True)]


def grouped_allreduce_(
    tensors: Sequence[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """Reduce several tensors over ranks, in place, all or none."""
    return list(
        synchronize(
            grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set)
        )
    )


def grouped_allreduce_async(
    tensors: Sequence[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Pending:
    """Begin to reduce several tensors over ranks, all or none."""
    chosen = choose_op(op, average)
    return operations.reduction(tensors, name, chosen, prescale_factor, postscale_factor, process_set).begin()


def grouped_allreduce_async_(
    tensors: Sequence[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Pending:
    """Begin to reduce several tensors over ranks, in place, all or none."""
    chosen = choose_op(op, average)
    operation = operations.reduction(
        tensors, name, chosen, prescale_factor, postscale_factor, process_set, in_place=True
    )
    return operation.giving(list(tensors)).begin()


@formerly("horovod.torch.allgather")
def allgather(tensor: Tensor, name: str | None = None, process_set: ProcessSet = global_process_set) -> Tensor:
    """Return what all ranks have, concatenated; first dimensions may differ. Autograd knows its gradient."""
    (gathered,) = Gathering.apply(name, process_set, tensor)
    whole: Tensor = gathered
    return whole


def allgather_async(tensor: Tensor, name: str | None = None, process_set: ProcessSet = global_process_set) -> Pending:
    """Begin to concatenate what all ranks have."""
    return collectives.allgather_async(tensor, name, process_set)


def grouped_allgather(
    tensors: Sequence[Tensor], name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Tensor]:
    """Return several tensors of all ranks, concatenated."""
    return list(Gathering.apply(name, process_set, *tensors))


def grouped_allgather_async(
    tensors: Sequence[Tensor], name: str | None = None, process_set: ProcessSet = global_process_set
) -> Pending:
    """Begin to concatenate several tensors of all ranks."""
    return collectives.grouped_allgather_async(tensors, name, process_set)


@formerly("horovod.torch.broadcast")
def broadcast(
    tensor: Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Tensor:
    """Return the tensor of one rank, named by its rank in the whole job; autograd knows its gradient."""
    received: Tensor = Broadcasting.apply(tensor, root_rank, name, process_set)
    return received


def broadcast_(
    tensor: Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Tensor:
    """Give all ranks the tensor of one, in place."""
    collectives.broadcast(tensor, root_rank, name, process_set, in_place=True)
    return tensor


def broadcast_async(
    tensor: Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Pending:
    """Begin to give all ranks the tensor of one."""
    return collectives.broadcast_async(tensor, root_rank, name, process_set)


def broadcast_async_(
    tensor: Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Pending:
    """Begin to give all ranks the tensor of one, in place."""
    return operations.broadcasting(tensor, root_rank, name, process_set, in_place=True).giving(tensor).begin()


@formerly("horovod.torch.alltoall")
def alltoall(
    tensor: Tensor,
    splits: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Send rows to each rank; returns what came, with `splits` also how many rows from each."""
    received, counts = Exchange.apply(tensor, splits, name, process_set)
    return received if splits is None else (received, counts)


def alltoall_async(
    tensor: Tensor,
    splits: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Pending:
    """Begin to send rows to each rank."""
    operation = operations.exchange(tensor, splits, name, process_set)
    return (operation.of_one() if splits is None else operation).begin()


@formerly("horovod.torch.reducescatter")
def reducescatter(
    tensor: Tensor,
    name: str | None = None,
    compression: _Kind = Compression.none,
    op: ReduceOp | int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Tensor:
    """Reduce a tensor and give each rank some rows; autograd knows its gradient."""
    (part,) = grouped_reducescatter([tensor], name, compression, op, process_set, prescale_factor, postscale_factor)
    return part


def reducescatter_async(
    tensor: Tensor,
    name: str | None = None,
    op: ReduceOp | int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Pending:
    """Begin to reduce a tensor and give each rank some rows."""
    return collectives.reducescatter_async(tensor, name, op, process_set, prescale_factor, postscale_factor)


def grouped_reducescatter(
    tensors: Sequence[Tensor],
    name: str | None = None,
    compression: _Kind = Compression.none,
    op: ReduceOp | int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Tensor]:
    """Reduce several tensors and give each rank some rows of each."""
    pairs = [compression.compress(tensor) for tensor in tensors]
    scales = (prescale_factor, postscale_factor)
    parts = Scattering.apply(name, choose_op(op), scales, process_set, *(sent for sent, _ in pairs))
    return [compression.decompress(one, context) for one, (_, context) in zip(parts, pairs, strict=True)]


def grouped_reducescatter_async(
    tensors: Sequence[Tensor],
    name: str | None = None,
    op: ReduceOp | int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Pending:
    """Begin to reduce several tensors and give each rank some rows of each."""
    return collectives.grouped_reducescatter_async(tensors, name, op, process_set, prescale_factor, postscale_factor)


def poll(handle: Pending | Callable[[], Any]) -> bool:
    """Tell whether an operation has ended: `synchronize` will not wait."""
    return not isinstance(handle, Pending) or handle.handle.is_done


def synchronize(handle: Pending | Callable[[], Any]) -> Any:
    """Wait for an operation and return what it gives.

    Raises:
        HorovodInternalError: If ranks disagree, or some are missing.
    """
    return handle.result() if isinstance(handle, Pending) else handle()


@formerly("horovod.torch.join")
def join(device: int = -1) -> int:
    """Say that this rank has no more data, and wait for the others; returns which rank came last."""
    return collectives.join()


@formerly("horovod.torch.barrier")
def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait for all ranks of a set."""
    collectives.barrier(process_set)


__all__ = [
    "Adasum",
    "Average",
    "HorovodInternalError",
    "Max",
    "Min",
    "ProcessSet",
    "Product",
    "ReduceOp",
    "Sum",
    "add_process_set",
    "allgather",
    "allgather_async",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "poll",
    "rank",
    "reducescatter",
    "reducescatter_async",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "sparse_allreduce_async",
    "start_timeline",
    "stop_timeline",
    "synchronize",
]
