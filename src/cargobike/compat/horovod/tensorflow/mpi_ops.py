"""Collectives on tensors of TensorFlow: those of `horovod.torch`, with gradients, eagerly and in graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
import torch

from cargobike.compat.horovod._tensorflow.crossing import as_written, cross
from cargobike.compat.horovod._tensorflow.dense import allgathered, broadcast_from, exchanged
from cargobike.compat.horovod.common import collectives
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
from cargobike.compat.horovod.common.collectives import barrier
from cargobike.compat.horovod.common.process_sets import (
    ProcessSet,
    add_process_set,
    get_process_set_ids_and_ranks,
    global_process_set,
    remove_process_set,
)
from cargobike.compat.horovod.common.reductions import Adasum, Average, Max, Min, Product, Sum
from cargobike.core.errors import InvalidInputError

__all__ = [
    "Adasum",
    "Average",
    "Max",
    "Min",
    "ProcessSet",
    "Product",
    "Sum",
    "add_process_set",
    "allgather",
    "alltoall",
    "barrier",
    "broadcast",
    "broadcast_",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "grouped_allgather",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_rank_op",
    "local_size",
    "local_size_op",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "process_set_included_op",
    "rank",
    "rank_op",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "size_op",
    "start_timeline",
    "stop_timeline",
]


@as_written
def allgather(
    tensor: Any, name: str | None = None, ignore_name_scope: bool = False, process_set: Any = global_process_set
) -> Any:
    """Return the rows of all ranks in their order; each may have as many as it likes."""
    return allgathered([tensor], name=name, process_set=process_set)[0]


@as_written
def grouped_allgather(
    tensors: Sequence[Any],
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: Any = global_process_set,
) -> list[Any]:
    """Do the same for several tensors at once."""
    return allgathered(tensors, name=name, process_set=process_set)


@as_written
def broadcast(
    tensor: Any,
    root_rank: int,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: Any = global_process_set,
) -> Any:
    """Return the tensor of one rank."""
    return broadcast_from(tensor, root_rank, name=name, process_set=process_set)


@as_written
def broadcast_(
    variables: Sequence[Any], root_rank: int, name: str | None = None, process_set: Any = global_process_set
) -> list[Any]:
    """Give variables the values of one rank's, and return them."""
    values = []
    for number, variable in enumerate(variables):
        own_name = None if name is None else f"{name}.{number}"
        value = broadcast_from(variable, root_rank, name=own_name, process_set=process_set)
        variable.assign(value)
        values.append(value)
    return values


@as_written
def alltoall(
    tensor: Any,
    splits: Any = None,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: Any = global_process_set,
) -> Any:
    """Send rows to every rank; returns what came, with `splits` also how much from each."""
    rows, received = exchanged(tensor, splits, name=name, process_set=process_set)
    return rows if splits is None else (rows, received)


@as_written
def join() -> Any:
    """Say that this rank has no more data, wait for the others, and return who came last."""
    return tf.constant(collectives.join(), dtype=tf.int32)


@as_written
def size_op(process_set_id: int = 0, name: str | None = None) -> Any:
    """Return how many ranks there are when the graph runs, which elastic training can change."""
    return _now(lambda: len(_ranks(process_set_id)))


@as_written
def process_set_included_op(process_set_id: int = 0, name: str | None = None) -> Any:
    """Return 1 if this rank belongs to a set when the graph runs, 0 if not."""
    return _now(lambda: int(rank() in _ranks(process_set_id)))


@as_written
def local_size_op(name: str | None = None) -> Any:
    """Return how many ranks this machine has when the graph runs."""
    return _now(local_size)


@as_written
def rank_op(name: str | None = None) -> Any:
    """Return the rank of this process when the graph runs."""
    return _now(rank)


@as_written
def local_rank_op(name: str | None = None) -> Any:
    """Return the rank on this machine when the graph runs."""
    return _now(local_rank)


def _now(number: Callable[[], int]) -> Any:
    (value,) = cross(lambda _: [torch.tensor(number(), dtype=torch.int32)], [], [tf.int32], [tf.TensorShape([])])
    return value


def _ranks(process_set_id: int) -> list[int]:
    sets = get_process_set_ids_and_ranks()
    if process_set_id not in sets:
        raise InvalidInputError(f"There is no process set {process_set_id}; there are {sorted(sets)}.")
    return sets[process_set_id]
