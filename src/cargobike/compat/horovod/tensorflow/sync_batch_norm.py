"""Normalizes by the statistics of the batches of all ranks."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from cargobike.compat.horovod._tensorflow.dense import allreduced
from cargobike.compat.horovod.common.process_sets import global_process_set
from cargobike.compat.horovod.common.reductions import Sum


class SyncBatchNormalization(keras.layers.BatchNormalization):
    """A `BatchNormalization` whose mean and variance are those of all ranks, whose batches may differ in size."""

    def __init__(self, fused: bool = False, **kwargs: Any) -> None:
        if fused:
            raise ValueError("SyncBatchNormalization does not support fused=True: it looks at all ranks.")
        super().__init__(**kwargs)

    def _moments(self, inputs: Any, mask: Any) -> Any:
        counted = tf.ones_like(inputs) if mask is None else tf.cast(mask, inputs.dtype)[..., tf.newaxis]
        counted = tf.broadcast_to(counted, tf.shape(inputs))
        count, total, squares = (
            tf.reduce_sum(values, axis=self._reduction_axes)
            for values in (counted, counted * inputs, counted * inputs**2)
        )
        sums = tf.stack([count, total, squares])
        (sums,) = allreduced([sums], op=Sum, name=None, process_set=global_process_set)
        mean = sums[1] / sums[0]
        return mean, sums[2] / sums[0] - mean**2
