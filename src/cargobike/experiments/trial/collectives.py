"""Numbers of all ranks made into one: over torch's process group where there is one, else over our own connections."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.numbers import read_metrics, read_number
from cargobike.experiments.trial.gang import pack_numbers, unpack_numbers

Operation = Literal["mean", "sum", "min", "max"]
OPERATIONS = ("mean", "sum", "min", "max")


def combine(
    value: Any,
    op: Operation,
    weight: float,
    exchange: Callable[[bytes], list[bytes]],
    world_size: int,
) -> float | dict[str, float]:
    """Return a number, or named numbers, of all ranks made into one.

    Args:
        value: This rank's.
        op: How.
        weight: How much this rank's counts in a mean.
        exchange: Tells the other ranks something and returns what each has said.
        world_size: How many ranks there are.
    """
    if op not in OPERATIONS:
        allowed = ", ".join(map(repr, OPERATIONS))
        raise InvalidInputError(f"op={op!r} was given; allowed are {allowed}.{nearest(str(op), OPERATIONS)}")
    names = sorted(value) if isinstance(value, Mapping) else None
    own = read_metrics(value) if isinstance(value, Mapping) else {}
    numbers = [own[name] for name in names] if names is not None else [read_number(value, "value")]
    if world_size > 1:
        numbers = _reduce([*numbers, 1.0], op, read_number(weight, "weight"), exchange)[:-1]
    return numbers[0] if names is None else dict(zip(names, numbers, strict=True))


def _reduce(
    numbers: Sequence[float], op: Operation, weight: float, exchange: Callable[[bytes], list[bytes]]
) -> list[float]:
    if op == "mean":
        summed = _reduce([*(number * weight for number in numbers), weight], "sum", 1.0, exchange)
        total = summed.pop()
        return [number / total if total else math.nan for number in summed]
    group = _torch_group()
    if group is not None:
        return _reduce_with_torch(group, numbers, op)
    rows = [unpack_numbers(data) for data in exchange(pack_numbers(numbers))]
    if len({len(row) for row in rows}) != 1:
        raise InvalidInputError(f"ranks gave different numbers of values: {[len(row) - 1 for row in rows]}.")
    columns = list(zip(*rows, strict=True))
    if op == "sum":
        return [math.fsum(column) for column in columns]
    return [min(column) if op == "min" else max(column) for column in columns]


def _torch_group() -> Any:
    """Return torch's module for process groups if the train function has made one of all ranks."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed


def _reduce_with_torch(distributed: Any, numbers: Sequence[float], op: str) -> list[float]:
    torch: Any = sys.modules["torch"]
    device = torch.device("cuda") if distributed.get_backend() == "nccl" else torch.device("cpu")
    tensor = torch.tensor(numbers, dtype=torch.float64, device=device)
    operation = {"sum": distributed.ReduceOp.SUM, "min": distributed.ReduceOp.MIN, "max": distributed.ReduceOp.MAX}[op]
    distributed.all_reduce(tensor, op=operation)
    found: list[float] = tensor.tolist()
    return found
