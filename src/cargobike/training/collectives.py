"""What all ranks do together: numbers and tensors of all made into one, all at the same point.

The one implementation behind `trial` and `cargobike.torch`. Tensors travel through torch's process group, and so do
numbers where there is one; other numbers go over the gang's own connections, so that no framework is needed.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.running.member import Gang, Member, current
from cargobike.core.values.kinds import is_number
from cargobike.core.values.numbers import read_metrics, read_number

if TYPE_CHECKING:
    from cargobike.training.process_group import Group

Operation = Literal["mean", "sum", "min", "max"]
OPERATIONS = ("mean", "sum", "min", "max")


def all_reduce(value: Any, op: Operation = "mean", *, weight: float = 1.0) -> Any:
    """Combine a number, named numbers or a tensor over all ranks; every rank gets the result and must call this.

    Args:
        value: A number, a dict of named numbers, or a tensor of torch (which is not changed).
        op: `mean`, `sum`, `min` or `max`.
        weight: For `mean`: how much this rank counts, such as the number of samples it has evaluated.

    Raises:
        WaitError: After the deadline; the message names the ranks that are missing.

    Example:
        >>> all_reduce({"loss": 0.5}, weight=100)
        {'loss': 0.5}
    """
    if op not in OPERATIONS:
        raise InvalidInputError(f"op must be one of {', '.join(OPERATIONS)}, not {op!r}.{nearest(str(op), OPERATIONS)}")
    if _is_tensor(value):
        return _combine_tensor(value, op, weight)
    names = sorted(value) if isinstance(value, Mapping) else None
    own = read_metrics(value) if isinstance(value, Mapping) else {}
    numbers = [own[name] for name in names] if names is not None else [read_number(value, "value")]
    if not is_number(weight, lambda number: number >= 0):
        raise InvalidInputError(f"weight must be a number of at least 0, {weight!r} was given.")
    numbers = _combine_numbers(numbers, op, read_number(weight, "weight"))
    return numbers[0] if names is None else dict(zip(names, numbers, strict=True))


def barrier(name: str = "barrier", timeout_s: float | None = None) -> None:
    """Wait until all ranks have come here.

    Args:
        name: What the error calls it.
        timeout_s: How long; the experiment's `stall_timeout_s`, or the deadline of the process group, by default.

    Raises:
        WaitError: After the deadline; the message names the ranks that are missing.
    """
    here = current()
    if here.gang is not None and here.world_size > 1:
        here.gang.barrier(name, timeout_s=timeout_s)
        return
    group = _torch_group(here)
    if group is not None:
        from cargobike.training import process_group  # noqa: PLC0415 - torch is loaded, or there would be no group

        process_group.barrier(group, timeout_s)


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _torch_group(here: Member) -> Group | None:
    """Return the process group that the ranks have; joins it where they have no other way to talk."""
    distributed = sys.modules.get("torch.distributed")
    has_group = distributed is not None and distributed.is_available() and distributed.is_initialized()
    if not has_group and here.gang is not None:
        return None
    from cargobike.training import process_group  # noqa: PLC0415 - imports torch

    return process_group.join_group() if here.gang is None else process_group.known_group()


def _combine_tensor(tensor: Any, op: Operation, weight: float) -> Any:
    from cargobike.training import process_group  # noqa: PLC0415 - imports torch, as its caller has

    group = process_group.join_group()
    return tensor if group.world_size == 1 else process_group.combine(tensor, op, weight, group)


def _combine_numbers(numbers: list[float], op: Operation, weight: float) -> list[float]:
    here = current()
    group = _torch_group(here)
    if group is not None and group.world_size > 1:
        from cargobike.training import process_group  # noqa: PLC0415 - torch is loaded, or there would be no group

        tensor = sys.modules["torch"].tensor(numbers, dtype=sys.modules["torch"].float64)
        combined: list[float] = process_group.combine(tensor, op, weight, group).tolist()
        return combined
    if here.gang is not None and here.world_size > 1:
        return _combine_over(here.gang, numbers, op, weight)
    return numbers


def _combine_over(gang: Gang, numbers: Sequence[float], op: Operation, weight: float) -> list[float]:
    own = [*numbers, 1.0] if op != "mean" else [*(number * weight for number in numbers), weight]
    packed = gang.exchange(gang.numbered("all_reduce"), struct.pack(f"<{len(own)}d", *own), of="workers")
    rows = [struct.unpack(f"<{len(data) // 8}d", data) for data in packed]
    if len({len(row) for row in rows}) != 1:
        raise InvalidInputError(f"ranks gave different numbers of values: {[len(row) - 1 for row in rows]}.")
    columns = list(zip(*rows, strict=True))
    if op in ("min", "max"):
        return [min(column) if op == "min" else max(column) for column in columns[:-1]]
    sums = [math.fsum(column) for column in columns]
    if op == "sum":
        return sums[:-1]
    total = sums.pop()
    return [number / total if total else math.nan for number in sums]
