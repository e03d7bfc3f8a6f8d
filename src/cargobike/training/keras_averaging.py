"""Averages gradients between a Keras optimizer and its variables, so that `model.fit` trains with the whole gang.

Works on Keras' TensorFlow and torch backends alike: gradients leave the backend as NumPy arrays or torch tensors and
are averaged by the gang's own process group.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import torch

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.times import Seconds
from cargobike.training.process_group import Group, all_reduce_, broadcast_, join_group
from cargobike.training.uneven import choose_policy, take_share

_log = logging.getLogger(__name__)
BACKENDS = ("tensorflow", "torch")


def prepare(model_or_optimizer: Any, *, timeout_s: Seconds | None = None) -> Any:
    """Make a compiled Keras model, or an optimizer before `compile`, average its gradients over all ranks.

    A model that is built gets rank 0's weights at once; otherwise they are taken over at the first step. Give each rank
    its share of the data (`shard`) and call `model.fit` as ever. Outside a gang nothing changes.

    Args:
        model_or_optimizer: A compiled model, or an optimizer, before its first step.
        timeout_s: Deadline of the meeting and of each average; 300 s if left out.

    Returns:
        The same model, or an optimizer to compile with.

    Raises:
        InvalidInputError: If it is neither, or Keras runs on a backend that this cannot work with.
        WaitError: If not all ranks come in time; the message names those that are missing.
    """
    is_model = isinstance(model_or_optimizer, keras.Model)
    optimizer = getattr(model_or_optimizer, "optimizer", None) if is_model else model_or_optimizer
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise InvalidInputError(
            "cargobike.keras.prepare takes a model that was compiled, or a keras optimizer; not "
            f"{'a model without compile(…)' if is_model else type(model_or_optimizer).__name__}."
        )
    group = join_group(timeout_s)
    if group.world_size == 1:
        return model_or_optimizer
    if keras.backend.backend() not in BACKENDS:
        raise InvalidInputError(
            f"cargobike.keras.prepare works on the backends {' and '.join(BACKENDS)}, not {keras.backend.backend()!r}; "
            "on JAX use keras.distribution.DataParallel, which spans processes by itself."
        )
    if optimizer.built:
        raise InvalidInputError("The optimizer has already been built: prepare before the first step or fit.")
    kind: Any = type(optimizer)
    averaging = _averaging(kind).from_config(optimizer.get_config())
    averaging._group = group
    if not is_model:
        return averaging
    model = model_or_optimizer
    model.optimizer = averaging
    if keras.backend.backend() == "tensorflow" and getattr(model, "jit_compile", False):
        model.jit_compile = False
        _log.info("compiling the training step is switched off: averaging gradients leaves TensorFlow's graph")
    if model.built:
        _take_first_weights(model.weights, group)
        averaging._has_weights = True
    return model


@functools.cache
def _averaging(kind: Any) -> Any:
    """Return a subclass of an optimizer that averages gradients before it applies them."""

    class Averaging(kind):
        _group: Group
        _has_weights = False

        def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
            variables = self._trainable_variables if trainable_variables is None else list(trainable_variables)
            present = [index for index, gradient in enumerate(grads) if gradient is not None]
            averaged = list(grads)
            values = [variables[index].value for index in present]
            for index, mean in zip(present, self._average([grads[i] for i in present], values), strict=True):
                averaged[index] = mean
            return super().apply(averaged, trainable_variables)

        def _average(self, gradients: list[Any], values: list[Any]) -> list[Any]:
            if keras.backend.backend() == "torch":
                self._share_weights_once([value.data for value in values])
                return _average_tensors([gradient.detach() for gradient in gradients], self._group)
            return _average_in_graph(self, gradients, values)

        def _share_weights_once(self, tensors: list[torch.Tensor]) -> bool:
            if self._has_weights:
                return False
            self._has_weights = True
            broadcast_(tensors, self._group, "take the first weights of rank 0")
            return True

    Averaging.__name__ = Averaging.__qualname__ = kind.__name__
    return Averaging


def _average_in_graph(optimizer: Any, gradients: list[Any], values: list[Any]) -> list[Any]:
    """Leave TensorFlow's graph for the exchange, and come back."""
    import tensorflow as tf  # noqa: PLC0415 - loaded already wherever Keras runs on it

    gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]  # rows of embeddings become whole

    def exchange(*arrays: Any) -> list[Any]:
        tensors = [torch.from_numpy(np.array(array)) for array in arrays]
        own, weights = tensors[: len(gradients)], tensors[len(gradients) :]
        optimizer._share_weights_once(weights)
        return [tensor.numpy() for tensor in [*_average_tensors(own, optimizer._group), *weights]]

    inputs = gradients if optimizer._has_weights else [*gradients, *(tf.convert_to_tensor(value) for value in values)]
    outputs = tf.numpy_function(exchange, inputs, [tensor.dtype for tensor in inputs])
    for output, tensor in zip(outputs, inputs, strict=True):
        output.set_shape(tensor.shape)
    for value, weight in zip(values, outputs[len(gradients) :], strict=False):
        value.assign(weight)
    return list(outputs[: len(gradients)])


def _average_tensors(tensors: list[torch.Tensor], group: Group) -> list[torch.Tensor]:
    flat = torch.cat([tensor.reshape(-1).float() for tensor in tensors])
    all_reduce_(flat, group, "average gradients").div_(group.world_size)
    pieces = flat.split([tensor.numel() for tensor in tensors])
    return [piece.view(tensor.shape).to(tensor.dtype) for piece, tensor in zip(pieces, tensors, strict=True)]


def _take_first_weights(variables: Sequence[Any], group: Group) -> None:
    arrays = [torch.from_numpy(np.array(keras.ops.convert_to_numpy(variable.value))) for variable in variables]
    broadcast_(arrays, group, "take the first weights of rank 0")
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array.numpy())


def shard(*arrays: Any, uneven: str = "auto") -> Any:
    """Return this rank's share of one or several arrays of equal length.

    Args:
        *arrays: NumPy arrays, or anything that NumPy indexes.
        uneven: `drop` or `pad`: every rank gets equally many, as `fit` needs it; `join` gives all there is, for data
            that is not trained on. `auto` is `drop`.

    Returns:
        The share, or a tuple of shares.

    Example:
        >>> shard(np.arange(4), np.arange(4) * 2)
        (array([0, 1, 2, 3]), array([0, 2, 4, 6]))
    """
    lengths = {len(array) for array in arrays}
    if len(lengths) != 1:
        raise InvalidInputError(f"shard takes arrays of equal length, not of lengths {sorted(lengths)}.")
    group = join_group()
    facts = {"is_stream": True, "trains": False, "shuffles": False, "can_join": True}
    policy = choose_policy(uneven, **facts)
    share = take_share(range(lengths.pop()), group.rank, group.world_size, policy)
    if not share:
        raise InvalidInputError(f"Rank {group.rank} of {group.world_size} would get no data: use fewer workers.")
    shares = tuple(np.asarray(array)[share] for array in arrays)
    return shares if len(shares) > 1 else shares[0]
