"""Averages gradients between a Keras optimizer and its variables, so that `model.fit` trains with the whole gang.

Works on Keras' TensorFlow and torch backends alike: gradients leave the backend as NumPy arrays or torch tensors and
are averaged by the gang's own process group.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import torch

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.times import Seconds
from cargobike.training.keras_exchange import exchanging
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
    exchange = _Averaging(group)
    averaging = exchanging(optimizer, exchange)
    if not is_model:
        return averaging
    model = model_or_optimizer
    model.optimizer = averaging
    if keras.backend.backend() == "tensorflow" and getattr(model, "jit_compile", False):
        model.jit_compile = False
        _log.info("compiling the training step is switched off: averaging gradients leaves TensorFlow's graph")
    if model.built:
        _take_first_weights(model.weights, group)
        exchange.has_weights = True
    return model


class _Averaging:
    """Averages gradients over a gang, and takes over the weights of rank 0 before the first pass."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.has_weights = False

    def begin_pass(self, variables: Sequence[Any]) -> None:
        if self.has_weights:
            return
        if keras.backend.backend() == "torch":
            self._share_weights([variable.value.data for variable in variables])
            return
        shared = _outside_graph(self._share_weights, [variable.value for variable in variables])
        for variable, weight in zip(variables, shared, strict=True):
            variable.assign(weight)

    def reduce(self, gradients: list[Any], variables: Sequence[Any]) -> list[Any]:
        if keras.backend.backend() == "torch":
            return _average_tensors([gradient.detach() for gradient in gradients], self.group)
        return _outside_graph(lambda tensors: _average_tensors(tensors, self.group), gradients)

    def _share_weights(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        if not self.has_weights:  # a graph that was traced before the first pass comes here at each
            self.has_weights = True
            broadcast_(tensors, self.group, "take the first weights of rank 0")
        return tensors


def _outside_graph(function: Callable[[list[torch.Tensor]], list[torch.Tensor]], values: Sequence[Any]) -> list[Any]:
    """Leave TensorFlow's graph with some tensors, and come back with as many."""
    import tensorflow as tf  # noqa: PLC0415 - loaded already wherever Keras runs on it

    inputs = [tf.convert_to_tensor(value) for value in values]  # rows of embeddings become whole

    def exchange(*arrays: Any) -> list[Any]:
        return [tensor.numpy() for tensor in function([torch.from_numpy(np.array(array)) for array in arrays])]

    outputs = tf.numpy_function(exchange, inputs, [tensor.dtype for tensor in inputs])
    for output, tensor in zip(outputs, inputs, strict=True):
        output.set_shape(tensor.shape)
    return list(outputs)


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
