"""Takes tensors out of TensorFlow for a collective of `horovod.torch`, and back, eagerly and inside `tf.function`.

A call inside a graph is a stateful operation: TensorFlow runs those of one `tf.function` in the order in which they
were written, which is the same on every rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import torch

Collective = Callable[[list[torch.Tensor]], list[torch.Tensor]]

as_written = tf.autograph.experimental.do_not_convert
"""Keeps TensorFlow from rewriting a function when it is called inside `tf.function`, which takes seconds for ours."""

_failures: list[BaseException] = []


def last_failure() -> BaseException | None:
    """Return what a collective inside a graph raised, which TensorFlow has made an error of its own."""
    return _failures[-1] if _failures else None


def forget_failures() -> None:
    """Begin anew."""
    _failures.clear()


def cross(collective: Collective, tensors: Sequence[Any], dtypes: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
    """Run a collective on the values of tensors, and return what it returns as tensors.

    Args:
        collective: Takes and returns tensors of torch.
        tensors: Those of TensorFlow.
        dtypes: Of what comes back.
        shapes: Of what comes back, for graphs; `None` where the others decide.
    """
    if tf.executing_eagerly():
        results = collective([to_torch(tensor.numpy()) for tensor in tensors])
        return [tf.convert_to_tensor(to_numpy(result)) for result in results]

    @as_written
    def call(*arrays: Any) -> list[Any]:
        try:
            return [to_numpy(result) for result in collective([to_torch(array) for array in arrays])]
        except Exception as error:
            _failures[:] = [error]
            raise

    outputs = tf.numpy_function(call, list(tensors), list(dtypes))
    for output, shape in zip(outputs, shapes, strict=True):
        output.set_shape(shape)
    return list(outputs)


def to_torch(array: Any) -> torch.Tensor:
    """Return a tensor with the values of an array; bfloat16, which NumPy knows by name only, too."""
    array = np.asarray(array)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(np.array(array.view(np.int16))).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))  # collectives may write where TensorFlow must not see it


def to_numpy(tensor: torch.Tensor) -> Any:
    """Return an array with the values of a tensor."""
    tensor = tensor.detach().cpu()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(tf.bfloat16.as_numpy_dtype)
    return tensor.numpy()
