"""A state: what is kept of any number of rows, in a size that depends only on the columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from cargobike.core.errors import InvalidInputError
from cargobike.monitoring.packing import Packed, pack, unpack
from cargobike.monitoring.states.distinct import no_hashes, take_in
from cargobike.monitoring.states.fourier import FEATURES
from cargobike.monitoring.states.layout import Floats, Layout

NAMED: Final = 20
"""How many categories that were never seen before are kept by name, in each column."""

Counts = NDArray[np.int64]


class _Record(msgspec.Struct, frozen=True):
    """A state as it is stored."""

    rows: int
    arrays: dict[str, Packed]
    unseen: list[dict[str, tuple[int, int]]]


@dataclass(slots=True, eq=False)
class State:
    """What is known of some rows.

    States of one layout can be merged: in any order and grouping, the merged one is that of all rows at once (sums of
    floating-point numbers up to rounding).

    Attributes:
        rows: How many rows.
        bins: For each column of numbers how many values each bin has; the last cell counts what is missing.
        sums: For each bin the sum of its standardized values, cut off where one is far from all others.
        total: For each column of numbers the sum of standardized values, infinite ones left out.
        squares: The sum of their squares.
        lowest: The lowest finite standardized value.
        highest: The highest one.
        infinite: How many infinite values.
        kinds: For each column of categories how many rows each category has; the last cells are all other categories
            of the reference (before these two), those never seen before, and what is missing.
        hashes: For each column the smallest hashes of its values.
        fourier: The sum of the rows' Fourier features.
        cut_squares: The sum of the squares of standardized values, cut off where one is far from all others.
        products: For each two columns of numbers the sum of their products; empty where there are too many columns.
        unseen: For each column of categories some that were never seen before: hash and count by name. Those with the
            smallest hashes are kept, so that each count is exact, however states were merged.
    """

    rows: int
    bins: Counts
    sums: Floats
    total: Floats
    squares: Floats
    lowest: Floats
    highest: Floats
    infinite: Counts
    kinds: Counts
    hashes: NDArray[np.uint64]
    fourier: Floats
    cut_squares: Floats
    products: Floats
    unseen: list[dict[str, tuple[int, int]]]

    @classmethod
    def empty(cls, layout: Layout) -> State:
        """Return the state of no rows."""
        numbers, categories = len(layout.numbers), len(layout.categories)
        paired = numbers if len(layout.pairs[0]) else 0
        return cls(
            rows=0,
            bins=np.zeros((numbers, layout.bins + 1), np.int64),
            sums=np.zeros((numbers, layout.bins)),
            total=np.zeros(numbers),
            squares=np.zeros(numbers),
            lowest=np.full(numbers, np.inf),
            highest=np.full(numbers, -np.inf),
            infinite=np.zeros(numbers, np.int64),
            kinds=np.zeros((categories, layout.kinds + 2), np.int64),
            hashes=no_hashes(numbers + categories),
            fourier=np.zeros(FEATURES),
            cut_squares=np.zeros(numbers),
            products=np.zeros((paired, paired)),
            unseen=[{} for _ in range(categories)],
        )

    def merge(self, other: State) -> State:
        """Return the state of the rows of both.

        Raises:
            InvalidInputError: If they count different things.
        """
        if self.bins.shape != other.bins.shape or self.kinds.shape != other.kinds.shape:
            raise InvalidInputError("These states are of different references; only states of one can be merged.")
        hashes = self.hashes.copy()
        for kept, more in zip(hashes, other.hashes, strict=True):
            take_in(kept, more)
        return State(
            rows=self.rows + other.rows,
            lowest=np.minimum(self.lowest, other.lowest),
            highest=np.maximum(self.highest, other.highest),
            hashes=hashes,
            unseen=[merge_unseen(*both) for both in zip(self.unseen, other.unseen, strict=True)],
            **{name: getattr(self, name) + getattr(other, name) for name in _ADDED},
        )

    def encode(self) -> bytes:
        """Return the state as bytes that can be stored."""
        arrays = {name: pack(getattr(self, name)) for name in _ARRAYS}
        return msgspec.msgpack.encode(_Record(self.rows, arrays, self.unseen))

    @classmethod
    def decode(cls, encoded: bytes, layout: Layout) -> State:
        """Return the state that was encoded.

        Raises:
            ValueError: If these bytes are no state of this layout.
        """
        record = msgspec.msgpack.decode(encoded, type=_Record)
        empty = cls.empty(layout)
        if record.arrays.keys() != set(_ARRAYS) or len(record.unseen) != len(empty.unseen) or record.rows < 0:
            raise ValueError("no state of this reference")
        arrays: dict[str, Any] = {
            name: unpack(record.arrays[name], getattr(empty, name).shape).astype(getattr(empty, name).dtype, copy=False)
            for name in _ARRAYS
        }
        return cls(rows=record.rows, unseen=record.unseen, **arrays)


_ARRAYS: Final = tuple(field.name for field in fields(State) if field.name not in {"rows", "unseen"})
_ADDED: Final = tuple(name for name in _ARRAYS if name not in {"lowest", "highest", "hashes"})


def merge_unseen(one: dict[str, tuple[int, int]], other: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Return categories of both, as many as are kept, with their counts added up."""
    counts = dict(one)
    for name, (hashed, count) in other.items():
        counts[name] = (hashed, count + (counts[name][1] if name in counts else 0))
    return dict(sorted(counts.items(), key=lambda item: (item[1][0], item[0]))[:NAMED])


def merge_states(states: Iterable[State]) -> State:
    """Return the state of the rows of all.

    Raises:
        InvalidInputError: If there are none, or they count different things.
    """
    merged: State | None = None
    for state in states:
        merged = state if merged is None else merged.merge(state)
    if merged is None:
        raise InvalidInputError("No states were given; give at least one.")
    return merged
