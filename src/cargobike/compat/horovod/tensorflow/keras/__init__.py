"""Horovod for `tf.keras`, which is Keras 3 since TensorFlow 2.16."""

from __future__ import annotations

from cargobike.compat.horovod._keras import names
from cargobike.compat.horovod._keras.names import *  # noqa: F403 - the two have the same names
from cargobike.compat.horovod.tensorflow.keras import callbacks, elastic

__all__ = [*names.__all__, "callbacks", "elastic"]  # noqa: PLE0604 - they are texts
