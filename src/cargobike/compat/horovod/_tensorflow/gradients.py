"""Gradients of TensorFlow from all ranks: dense ones travel together, rows of embeddings are gathered."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from cargobike.compat.horovod._tensorflow.dense import allgathered, allreduced
from cargobike.compat.horovod.common.gradients import Reduction
from cargobike.compat.horovod.common.process_sets import ProcessSet
from cargobike.compat.horovod.common.reductions import Average, ReduceOp, Sum
from cargobike.core.errors import InvalidInputError


class TensorFlowReduction(Reduction):
    """That of tensors and `tf.IndexedSlices`, eagerly and in graphs."""

    @staticmethod
    def key_of(variable: Any) -> Any:
        """Return what tells a variable from others, whether Keras has wrapped it or not."""
        if isinstance(variable, keras.Variable):
            variable = variable.value
        return variable.ref() if isinstance(variable, tf.Variable | tf.Tensor) else id(variable)

    def _allreduce(self, tensors: list[Any]) -> list[Any]:
        scales = {"prescale": 1.0 / self.predivide, "postscale": self.predivide}
        return allreduced(tensors, op=self.op, name=f"{self.name}.dense", process_set=self.process_set, **scales)

    def _reduce_sparse(self, gradient: Any, name: str) -> Any:
        return reduce_slices(gradient, op=self.op, name=name, process_set=self.process_set)

    @staticmethod
    def _is_sparse(gradient: Any) -> bool:
        return isinstance(gradient, tf.IndexedSlices)

    @staticmethod
    def _whole(gradient: Any) -> Any:
        return tf.convert_to_tensor(gradient)

    @staticmethod
    def _scale(gradient: Any, divisor: int) -> Any:
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(gradient.values / divisor, gradient.indices, gradient.dense_shape)
        return gradient / divisor


def reduce_slices(slices: Any, *, op: ReduceOp, name: str | None, process_set: ProcessSet) -> Any:
    """Return the rows of all ranks, which add up to their sum or mean."""
    if op not in (Average, Sum):
        raise InvalidInputError(
            "Rows of embeddings (tf.IndexedSlices) are reduced by hvd.Average or hvd.Sum; with sparse_as_dense=True "
            "also by hvd.Adasum."
        )
    values, indices = allgathered([slices.values, slices.indices], name=name, process_set=process_set)
    if op == Average:
        values = values / tf.cast(process_set.size() or 1, values.dtype)
    return tf.IndexedSlices(values, indices, dense_shape=slices.dense_shape)
