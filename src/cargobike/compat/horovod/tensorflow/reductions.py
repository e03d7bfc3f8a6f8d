"""`allreduce` and `reducescatter` as programs call them: compressed, for rows of embeddings, for groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from cargobike.compat.horovod._tensorflow.crossing import as_written
from cargobike.compat.horovod._tensorflow.dense import allreduced, reducescattered
from cargobike.compat.horovod._tensorflow.gradients import reduce_slices
from cargobike.compat.horovod.common.process_sets import ProcessSet, global_process_set
from cargobike.compat.horovod.common.reductions import Average, ReduceOp, choose_op
from cargobike.compat.horovod.tensorflow.compression import Compression
from cargobike.core.errors import InvalidInputError


@as_written
def allreduce(
    tensor: Any,
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
) -> Any:
    """Return the mean over all ranks, or what else `op` says; of `tf.IndexedSlices` the rows of all."""
    (reduced,) = grouped_allreduce(
        [tensor],
        average,
        compression=compression,
        op=op,
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
        process_set=process_set,
        name=name,
    )
    return reduced


@as_written
def grouped_allreduce(
    tensors: Sequence[Any],
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    name: str | None = None,
) -> list[Any]:
    """Reduce several tensors at once: all of them or none."""
    chosen = choose_op(op, average)
    if not tensors:
        return []
    if any(isinstance(tensor, tf.IndexedSlices) for tensor in tensors):
        if prescale_factor != 1.0 or postscale_factor != 1.0:
            raise InvalidInputError("prescale_factor and postscale_factor are for dense tensors, not tf.IndexedSlices.")
        return [_reduce_any(tensor, chosen, compression, name, process_set) for tensor in tensors]
    packed = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors]
    reduced = allreduced(
        [tensor for tensor, _ in packed],
        op=chosen,
        name=name,
        process_set=process_set,
        prescale=prescale_factor,
        postscale=postscale_factor,
    )
    return [compression.decompress(tensor, ctx) for tensor, (_, ctx) in zip(reduced, packed, strict=True)]


def _reduce_any(tensor: Any, op: ReduceOp, compression: Any, name: str | None, process_set: ProcessSet) -> Any:
    if isinstance(tensor, tf.IndexedSlices):
        return reduce_slices(tensor, op=op, name=name, process_set=process_set)
    return grouped_allreduce([tensor], compression=compression, op=op, process_set=process_set)[0]


@as_written
def reducescatter(
    tensor: Any,
    device_dense: str = "",
    compression: Any = Compression.none,
    op: ReduceOp = Average,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Reduce a tensor over all ranks, and return this rank's share of its rows."""
    return _reducescatter([tensor], compression, op, name, process_set, prescale_factor, postscale_factor)[0]


@as_written
def grouped_reducescatter(
    tensors: Sequence[Any],
    device_dense: str = "",
    compression: Any = Compression.none,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Any]:
    """Do the same for several tensors at once."""
    return _reducescatter(tensors, compression, op, None, process_set, prescale_factor, postscale_factor)


def _reducescatter(
    tensors: Sequence[Any],
    compression: Any,
    op: ReduceOp,
    name: str | None,
    process_set: ProcessSet,
    prescale: float,
    postscale: float,
) -> list[Any]:
    packed = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors]
    reduced = reducescattered(
        [tensor for tensor, _ in packed],
        op=choose_op(op),
        name=name,
        process_set=process_set,
        prescale=prescale,
        postscale=postscale,
    )
    return [compression.decompress(tensor, ctx) for tensor, (_, ctx) in zip(reduced, packed, strict=True)]
