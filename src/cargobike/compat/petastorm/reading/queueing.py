"""Columns that wait until they make a batch, mixed with each other if asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cargobike.core.errors import SignatureError

Column = NDArray[Any] | list[Any]


class BatchQueue:
    """Rows in columns, of which batches are taken.

    Args:
        capacity: How many rows wait, so that they are mixed; 0 if they come as they went in.
        seed: What the order is drawn from.
    """

    def __init__(self, capacity: int, seed: Sequence[int]) -> None:
        self._mixing = _Mixing(max(capacity - 1, 1), seed) if capacity > 0 else None
        self._ready: deque[dict[str, Column]] = deque()
        self._at = 0
        self.rows = 0
        """How many rows can be taken."""

    def add(self, columns: dict[str, Column]) -> None:
        """Put in rows."""
        self._make_ready(columns if self._mixing is None else self._mixing.exchange(columns))

    def finish(self) -> None:
        """Have the rows that wait ready, too: no more will come."""
        if self._mixing is not None:
            self._make_ready(self._mixing.drain())

    def _make_ready(self, columns: dict[str, Column]) -> None:
        rows = _rows(columns)
        if rows:
            self._ready.append(columns)
            self.rows += rows

    def take(self, size: int) -> dict[str, Column]:
        """Take a batch."""
        taken: list[dict[str, Column]] = []
        wanted = size
        while wanted:
            part = self._ready[0]
            rows = _rows(part)
            end = min(self._at + wanted, rows)
            taken.append({name: values[self._at : end] for name, values in part.items()})
            wanted -= end - self._at
            self._at = end
            if end == rows:
                self._ready.popleft()
                self._at = 0
        self.rows -= size
        return taken[0] if len(taken) == 1 else _joined(taken)


class _Mixing:
    """Rows that wait in places; when others come, as many of all are drawn at random and leave."""

    def __init__(self, least: int, seed: Sequence[int]) -> None:
        self._least = least
        self._random = np.random.Generator(np.random.PCG64(list(seed)))
        self._waiting: dict[str, Column] = {}
        self._rows = 0

    def exchange(self, columns: dict[str, Column]) -> dict[str, Column]:
        """Put in rows, and draw those that are too many."""
        rows = _rows(columns)
        for name, values in columns.items():
            self._waiting[name] = self._grown(self._waiting.get(name), values, rows)
        self._rows += rows
        return self._draw(max(self._rows - self._least, 0))

    def drain(self) -> dict[str, Column]:
        """Draw all rows."""
        return self._draw(self._rows)

    def _grown(self, waiting: Column | None, values: Column, rows: int) -> Column:
        if isinstance(waiting, list) or isinstance(values, list):
            kept = [] if waiting is None else list(waiting[: self._rows])
            return kept + list(values)
        end = self._rows + rows
        if waiting is None or len(waiting) < end:
            larger = np.empty((max(end, self._least + 2 * rows), *values.shape[1:]), values.dtype)
            if waiting is not None:
                larger[: self._rows] = waiting[: self._rows]
            waiting = larger
        waiting[self._rows : end] = values
        return waiting

    def _draw(self, count: int) -> dict[str, Column]:
        """Take rows at random; rows from the end fill their places."""
        left = self._rows - count
        drawn = self._random.permutation(self._rows)[:count]
        holes = drawn[drawn < left]
        is_drawn = np.zeros(self._rows, bool)
        is_drawn[drawn] = True
        movers = np.flatnonzero(~is_drawn[left:]) + left
        taken: dict[str, Column] = {}
        for name, values in self._waiting.items():
            if isinstance(values, list):
                taken[name] = [values[at] for at in drawn]
                for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
                    values[hole] = values[mover]
                del values[left:]
            else:
                taken[name] = values[drawn]
                values[holes] = values[movers]
        self._rows = left
        return taken


def _rows(columns: Mapping[str, Column]) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def _joined(parts: Sequence[Mapping[str, Column]]) -> dict[str, Column]:
    joined: dict[str, Column] = {}
    for name in parts[0]:
        columns = [part[name] for part in parts]
        if all(isinstance(column, np.ndarray) for column in columns):
            joined[name] = np.concatenate(columns)
        else:
            joined[name] = [value for column in columns for value in column]
    return joined


def for_torch(name: str, values: Any) -> Column:
    """Return a column in types that torch has: an array, or a list of text, decimals or arrays of different shapes.

    Raises:
        SignatureError: If it holds what torch has no tensors for; it is a `TypeError`.
    """
    if isinstance(values, np.ndarray):
        return promoted(name, values)
    if any(value is None for value in values):
        raise SignatureError(
            f"Pytorch does not support nullable fields. Found None in {name}; leave the field out, or fill it in a "
            "TransformSpec."
        )
    first = values[0] if len(values) else None
    if isinstance(first, np.ndarray):
        promoted(name, first)
        if len({value.shape for value in values}) == 1:
            return promoted(name, np.stack(values))
        return [promoted(name, value) for value in values]
    if isinstance(first, str | bytes | Decimal):
        return list(values)
    return promoted(name, np.asarray(values))


def promoted(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in a type that torch has."""
    if array.dtype.kind in "SUO":
        raise SignatureError(
            f"Pytorch does not support arrays of string or object classes. Found in field {name}; leave it out with "
            "schema_fields, or turn it into numbers in a TransformSpec."
        )
    if array.dtype.kind == "M":
        return array.astype("M8[ns]").view(np.int64)
    wider: dict[Any, Any] = {np.uint16: np.int32, np.uint32: np.int64, np.bool_: np.uint8}
    return array.astype(wider.get(array.dtype.type, array.dtype), copy=False)
