"""Collectives on values that Keras programs have in their hands, outside graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from cargobike.compat.horovod._keras.compression import Compression
from cargobike.compat.horovod.common import collectives
from cargobike.compat.horovod.common.reductions import Average, ReduceOp, choose_op


def allreduce(
    value: Any,
    name: str | None = None,
    average: bool | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: ReduceOp | None = None,
    compression: Any = Compression.none,
) -> Any:
    """Return the mean of a number, an array or a tensor over all ranks, or what else `op` says, as an array."""
    array, ctx = compression.compress(_array(value)) if compression is not Compression.none else (_array(value), None)
    scales = {"prescale_factor": prescale_factor, "postscale_factor": postscale_factor}
    reduced = collectives.allreduce(_array(array), name, choose_op(op, average), **scales)
    return reduced if compression is Compression.none else _array(compression.decompress(reduced, ctx))


def allgather(value: Any, name: str | None = None) -> Any:
    """Return the rows of all ranks in their order, as an array."""
    return collectives.allgather(_array(value), name)


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    """Return the value of one rank, as an array."""
    return collectives.broadcast(_array(value), root_rank, name)


def reducescatter(value: Any, name: str | None = None, op: ReduceOp = Average) -> Any:
    """Reduce a value over all ranks, and return this rank's share of its rows, as an array."""
    return collectives.reducescatter(_array(value), name, op)


def share_variables(variables: Sequence[Any], root_rank: int, name: str) -> None:
    """Give variables the values that they have on one rank."""
    under_way = [
        collectives.broadcast_async(_array(variable), root_rank, f"{name}.{number}")
        for number, variable in enumerate(variables)
    ]
    for variable, pending in zip(variables, under_way, strict=True):
        variable.assign(collectives.synchronize(pending))


def _array(value: Any) -> Any:
    if isinstance(value, int | float | list | tuple | np.generic):
        array = np.asarray(value)
        return array.astype(np.float32) if array.dtype == np.float64 and not isinstance(value, np.generic) else array
    return np.array(keras.ops.convert_to_numpy(value))
