"""The collectives on lists of dense tensors, each with its gradient.

Gradients follow Horovod's: a sum passes sums back, a mean means; what was gathered, scattered or broadcast passes the
mean over the ranks back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from cargobike.compat.horovod._tensorflow.crossing import cross
from cargobike.compat.horovod.common import collectives
from cargobike.compat.horovod.common.basics import rank
from cargobike.compat.horovod.common.reductions import Adasum, Average, Sum
from cargobike.core.errors import InvalidInputError


def allreduced(
    tensors: Sequence[Any],
    *,
    op: Any,
    name: str | None,
    process_set: Any,
    prescale: float = 1.0,
    postscale: float = 1.0,
) -> list[Any]:
    """Return tensors, each reduced over all ranks."""
    how: dict[str, Any] = {
        "op": op,
        "prescale_factor": prescale,
        "postscale_factor": postscale,
        "process_set": process_set,
    }

    def call(own: list[Any]) -> list[Any]:
        if len(own) == 1:
            return [collectives.allreduce(own[0], name=name, **how)]
        return list(collectives.grouped_allreduce(own, name=name, **how))

    @tf.custom_gradient
    def forward(*given: Any) -> Any:
        def backward(*gradients: Any) -> Any:
            if op not in (Average, Sum, Adasum):
                raise InvalidInputError("An allreduce with Min, Max or Product has no gradient; use Average or Sum.")
            scales = {"prescale": prescale, "postscale": postscale}
            return allreduced(gradients, op=op, name=None, process_set=process_set, **scales)

        return _crossed_alike(call, given), backward

    return _each(forward(*_tensors(tensors)))


def allgathered(tensors: Sequence[Any], *, name: str | None, process_set: Any) -> list[Any]:
    """Return tensors, each with the rows of all ranks in their order."""

    def call(own: list[Any]) -> list[Any]:
        if len(own) == 1:
            return [collectives.allgather(own[0], name=name, process_set=process_set)]
        return list(collectives.grouped_allgather(own, name=name, process_set=process_set))

    @tf.custom_gradient
    def forward(*given: Any) -> Any:
        def backward(*gradients: Any) -> Any:
            means = allreduced(gradients, op=Average, name=None, process_set=process_set)
            counts = tf.stack([_rows(tensor) for tensor in given])[tf.newaxis]
            (of_all,) = allgathered([counts], name=None, process_set=process_set)
            own = process_set.rank()
            first = tf.reduce_sum(of_all[:own], axis=0)
            return [mean[first[i] : first[i] + of_all[own, i]] for i, mean in enumerate(means)]

        return _crossed_rows(call, given), backward

    return _each(forward(*_tensors(tensors)))


def broadcast_from(tensor: Any, root_rank: int, *, name: str | None, process_set: Any) -> Any:
    """Return a rank's tensor."""

    def call(own: list[Any]) -> list[Any]:
        return [collectives.broadcast(own[0], root_rank, name=name, process_set=process_set)]

    @tf.custom_gradient
    def forward(given: Any) -> Any:
        def backward(gradient: Any) -> Any:
            (mean,) = allreduced([gradient], op=Average, name=None, process_set=process_set)
            return mean if rank() == root_rank else tf.zeros_like(mean)

        (result,) = _crossed_alike(call, [given])
        return result, backward

    return forward(tf.convert_to_tensor(tensor))


def exchanged(tensor: Any, splits: Any, *, name: str | None, process_set: Any) -> tuple[Any, Any]:
    """Return the rows that all ranks have sent to this one, and how many each has."""

    def call(own: list[Any]) -> list[Any]:
        rows, received = collectives.alltoall(own[0], splits=own[1], name=name, process_set=process_set)
        return [rows, received.to(own[1].dtype)]

    @tf.custom_gradient
    def forward(given: Any, counts: Any) -> Any:
        shapes = [_any_rows(given), tf.TensorShape([None])]
        rows, received = cross(call, [given, counts], [given.dtype, counts.dtype], shapes)

        def backward(gradient: Any, _: Any) -> Any:
            return exchanged(gradient, received, name=None, process_set=process_set)[0], None

        return (rows, received), backward

    tensor = tf.convert_to_tensor(tensor)
    if splits is None:
        ranks = process_set.size()
        if tensor.shape[0] is not None and tensor.shape[0] % ranks:
            raise InvalidInputError(
                f"{tensor.shape[0]} rows cannot be divided evenly among {ranks} ranks: give splits."
            )
        splits = tf.fill([ranks], _rows(tensor) // ranks)
    splits = tf.cast(tf.convert_to_tensor(splits), tf.int32)
    rows, received = forward(tensor, splits)
    return rows, received


def reducescattered(
    tensors: Sequence[Any],
    *,
    op: Any,
    name: str | None,
    process_set: Any,
    prescale: float = 1.0,
    postscale: float = 1.0,
) -> list[Any]:
    """Return this rank's rows of each tensor, reduced over all ranks."""
    how: dict[str, Any] = {
        "op": op,
        "process_set": process_set,
        "prescale_factor": prescale,
        "postscale_factor": postscale,
    }

    def call(own: list[Any]) -> list[Any]:
        if len(own) == 1:
            return [collectives.reducescatter(own[0], name=name, **how)]
        return list(collectives.grouped_reducescatter(own, name=name, **how))

    @tf.custom_gradient
    def forward(*given: Any) -> Any:
        def backward(*gradients: Any) -> Any:
            factor = prescale * postscale * (process_set.size() if op == Sum else 1)
            scaled = [gradient * tf.cast(factor, gradient.dtype) for gradient in gradients]
            return allgathered(scaled, name=None, process_set=process_set)

        return _crossed_rows(call, given), backward

    return _each(forward(*_tensors(tensors)))


def _crossed_alike(call: Any, given: Sequence[Any]) -> list[Any]:
    return cross(call, given, [tensor.dtype for tensor in given], [tensor.shape for tensor in given])


def _crossed_rows(call: Any, given: Sequence[Any]) -> list[Any]:
    return cross(call, given, [tensor.dtype for tensor in given], [_any_rows(tensor) for tensor in given])


def _tensors(values: Sequence[Any]) -> list[Any]:
    return [tf.convert_to_tensor(value) for value in values]


def _each(results: Any) -> list[Any]:
    return list(results) if isinstance(results, list | tuple) else [results]


def _rows(tensor: Any) -> Any:
    return tf.shape(tensor)[0]


def _any_rows(tensor: Any) -> Any:
    if tensor.shape.rank is None:
        return tf.TensorShape(None)
    return tf.TensorShape([None, *tensor.shape.as_list()[1:]])
