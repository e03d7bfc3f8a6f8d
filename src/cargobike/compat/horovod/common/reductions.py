"""How values of several ranks become one: what `op` can be."""

from __future__ import annotations

from enum import IntEnum

from cargobike.core.errors import InvalidInputError


class ReduceOp(IntEnum):
    """What `op` can be; Horovod's names for them are `Average`, `Sum`, ..."""

    AVERAGE = 0
    SUM = 1
    ADASUM = 2
    MIN = 3
    MAX = 4
    PRODUCT = 5


Average = ReduceOp.AVERAGE
Sum = ReduceOp.SUM
Adasum = ReduceOp.ADASUM
Min = ReduceOp.MIN
Max = ReduceOp.MAX
Product = ReduceOp.PRODUCT


def choose_op(op: ReduceOp | int | None, average: bool | None = None) -> ReduceOp:
    """Return which reduction was meant, by the old `average=` or by `op`.

    Raises:
        ValueError: If both are given, or there is no such reduction.
    """
    if op is not None and average is not None:
        raise InvalidInputError("give op or the older average, not both: they say the same.")
    if average is not None:
        return Average if average else Sum
    if op is None:
        return Average
    try:
        return ReduceOp(op)
    except ValueError:
        names = "Average, Sum, Adasum, Min, Max, Product"
        raise InvalidInputError(f"op must be one of hvd.{names.replace(', ', ', hvd.')}, not {op!r}.") from None
