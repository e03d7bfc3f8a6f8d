"""Gives all ranks the parameters, the state of the optimizer, or any object of one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from cargobike.compat.horovod.common.objects import allgather_object, broadcast_object
from cargobike.compat.horovod.torch.mpi_ops import broadcast_async_, rank, synchronize
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError

__all__ = ["allgather_object", "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters"]


@formerly("horovod.torch.broadcast_parameters")
def broadcast_parameters(params: Any, root_rank: int) -> None:
    """Give all ranks the parameters of one, in place.

    Args:
        params: A dict such as `model.state_dict()`, or a list of tensors or of pairs of name and tensor.
        root_rank: Whose.

    Raises:
        ValueError: If it is neither; a generator such as `model.parameters()` must be made a list.
    """
    if isinstance(params, Mapping):
        pairs = sorted(params.items())
    elif isinstance(params, list):
        pairs = [one if isinstance(one, tuple) else (None, one) for one in params]
    else:
        raise InvalidInputError(
            f"params must be a dict or a list, not {type(params).__name__}: give model.state_dict(), or "
            "list(model.named_parameters())."
        )
    used: Counter[str] = Counter()
    handles = []
    for name, tensor in pairs:
        if isinstance(tensor, torch.Tensor):
            used[str(name)] += 1
            label = f"{name}.{used[str(name)]}" if name is not None and used[str(name)] > 1 else name
            handles.append(broadcast_async_(tensor.data, root_rank, label and f"parameter.{label}"))
    for handle in handles:
        synchronize(handle)


@formerly("horovod.torch.broadcast_optimizer_state")
def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int, model: torch.nn.Module | None = None
) -> None:
    """Give all ranks the state of one rank's optimizer, with its learning rate and other options.

    Ranks whose optimizer has no state yet get it too; weights are not changed.

    Raises:
        ValueError: For LBFGS, whose state cannot be told apart.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise InvalidInputError("the state of torch.optim.LBFGS cannot be broadcast: begin all ranks with a new one.")
    tensors: list[torch.Tensor] = []
    plain: Any = None
    if rank() == root_rank:
        plain = _without_tensors(optimizer.state_dict(), tensors)
        plain = (plain, [(tuple(tensor.shape), tensor.dtype) for tensor in tensors])
    plain, kinds = broadcast_object(plain, root_rank, "optimizer_state")
    if rank() != root_rank:
        tensors = [torch.empty(shape, dtype=dtype) for shape, dtype in kinds]
    handles = [broadcast_async_(tensor, root_rank, f"optimizer_state.{index}") for index, tensor in enumerate(tensors)]
    for handle in handles:
        synchronize(handle)
    if rank() != root_rank:
        optimizer.load_state_dict(_with_tensors(plain, tensors))


class _Place:
    """Where a tensor was."""

    def __init__(self, index: int) -> None:
        self.index = index


def _without_tensors(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Return the same with each tensor replaced by its place, and append the tensors."""
    if isinstance(value, torch.Tensor):
        tensors.append(value.contiguous())
        return _Place(len(tensors) - 1)
    if isinstance(value, dict):
        return {key: _without_tensors(each, tensors) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_without_tensors(each, tensors) for each in value])
    return value


def _with_tensors(value: Any, tensors: list[torch.Tensor]) -> Any:
    if isinstance(value, _Place):
        return tensors[value.index]
    if isinstance(value, dict):
        return {key: _with_tensors(each, tensors) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_with_tensors(each, tensors) for each in value])
    return value
