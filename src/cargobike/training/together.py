"""Small things that ranks do together: one number of all, one rank first, all at the same point."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Literal

import torch
import torch.distributed as dist

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.training import process_group
from cargobike.training.place import find_place

_OPERATIONS = {
    "mean": dist.ReduceOp.SUM,
    "sum": dist.ReduceOp.SUM,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
}


def rank() -> int:
    """Return this process's rank; 0 outside a gang."""
    return dist.get_rank() if dist.is_initialized() else find_place().rank


def world_size() -> int:
    """Return how many ranks the gang has; 1 outside a gang."""
    return dist.get_world_size() if dist.is_initialized() else find_place().world_size


def is_main() -> bool:
    """Tell whether this is rank 0, the one that writes files and prints."""
    return rank() == 0


def all_reduce(value: Any, op: Literal["mean", "sum", "min", "max"] = "mean", *, weight: float = 1.0) -> Any:
    """Combine a number or a tensor over all ranks; every rank gets the result and must call this.

    Args:
        value: A number, or a tensor (which is not changed).
        op: `mean`, `sum`, `min` or `max`.
        weight: For `mean`: how much this rank counts, such as the number of samples it has evaluated.

    Raises:
        WaitError: After the deadline; the message names the ranks that are missing.

    Example:
        >>> all_reduce(0.5, weight=100)
        0.5
    """
    if op not in _OPERATIONS:
        raise InvalidInputError(
            f"op must be one of {', '.join(_OPERATIONS)}, not {op!r}.{nearest(str(op), _OPERATIONS)}"
        )
    group = process_group.join_group()
    if group.world_size == 1:
        return value
    is_tensor = isinstance(value, torch.Tensor)
    tensor = torch.as_tensor(value, device=group.device)
    if not is_tensor or (op == "mean" and not tensor.is_floating_point()):
        tensor = tensor.double()
    if op == "mean":
        parts = torch.cat([(tensor * weight).reshape(-1), tensor.new_tensor([weight])])
        process_group.all_reduce_(parts, group, "average a value")
        result = (parts[:-1] / parts[-1]).reshape(tensor.shape)
    else:
        result = process_group.all_reduce_(tensor.clone(), group, f"find the {op} of a value", op=_OPERATIONS[op])
    return result if is_tensor else result.item()


def barrier(timeout_s: float | None = None) -> None:
    """Wait until all ranks have come here.

    Raises:
        WaitError: After the deadline; the message names the ranks that are missing.
    """
    process_group.barrier(process_group.join_group(), timeout_s)


@contextlib.contextmanager
def main_first(timeout_s: float | None = None) -> Iterator[bool]:
    """Run rank 0 first, to download or build what the others then find; gives whether this is rank 0.

    If rank 0 fails inside, the others fail too, after the deadline at the latest.
    """
    group = process_group.join_group()
    if group.is_main:
        yield True
        process_group.barrier(group, timeout_s)
    else:
        process_group.barrier(group, timeout_s)
        yield False
