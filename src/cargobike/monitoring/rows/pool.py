"""Rows of the reference that null windows are drawn from: a sample, encoded, as little as will do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from cargobike.monitoring.packing import Packed, pack, unpack
from cargobike.monitoring.rows.encoding import Encoded
from cargobike.monitoring.states.layout import Codes, Layout

MOST_ROWS: Final = 8192


class PoolRecord(msgspec.Struct, frozen=True):
    """A pool as it is stored."""

    numbers: Packed
    bins: Packed
    codes: Packed


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Some rows of the reference; a row of each array for a column.

    Attributes:
        numbers: Standardized numbers, cut off, in half precision: they are averaged, never shown.
        bins: Which bin each is in.
        codes: Which cell of its column each category is in.
    """

    numbers: NDArray[np.float16]
    bins: Codes
    codes: Codes

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.bins.shape[1] or self.codes.shape[1])

    @classmethod
    def of(cls, pieces: list[Encoded]) -> Pool:
        """Return encoded rows as a pool."""
        return cls(
            np.concatenate([piece.numbers for piece in pieces], 1).astype(np.float16),
            np.concatenate([piece.bins for piece in pieces], 1),
            np.concatenate([piece.codes for piece in pieces], 1),
        )

    def record(self) -> PoolRecord:
        """Return the pool as plain data."""
        return PoolRecord(pack(self.numbers), pack(self.bins), pack(self.codes))

    @classmethod
    def read(cls, record: PoolRecord, layout: Layout) -> Pool:
        """Return the pool that was stored.

        Raises:
            ValueError: If it is no pool of this layout.
        """
        pool = cls(unpack(record.numbers), unpack(record.bins), unpack(record.codes))
        numbers, categories = len(layout.numbers), len(layout.categories)
        shapes = [array.shape for array in (pool.numbers, pool.bins, pool.codes)]
        if shapes != [(numbers, pool.rows), (numbers, pool.rows), (categories, pool.rows)] or not pool.rows:
            raise ValueError(f"rows of {shapes}")
        if pool.bins.max(initial=0) > layout.bins or pool.codes.max(initial=0) > layout.kinds + 1:
            raise ValueError("rows with cells that the reference does not have")
        return pool
