"""What a state counts: the columns that are judged, their bins and categories, as the reference has fixed them."""

from __future__ import annotations

import functools
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Codes = NDArray[np.uint8]

FARTHEST: Final = 6.0
"""Where standardized values are cut off before they are averaged, so that one huge value does not hide all others."""
MOST_PAIRED: Final = 64
"""Up to so many columns of numbers, the correlation of each pair is followed."""


class NumberColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of numbers.

    Attributes:
        name: Its name.
        type: Arrow's type in the reference, for people.
        centre: The reference's median.
        scale: The reference's spread: that of a normal distribution with the same quartiles, if they differ.
        edges: Where bins begin, in units of `scale` from `centre`, ascending; a value on an edge belongs above it.
        is_steady: Whether nearly all rows are in one bin. What is rare there says little about other columns.
    """

    name: str
    type: str
    centre: float
    scale: float
    edges: tuple[float, ...]
    is_steady: bool = False


class CategoryColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of categories: texts or truth values.

    Attributes:
        name: Its name.
        type: Arrow's type in the reference, for people.
        categories: The most frequent ones, each counted by itself.
        others: The other ones of the reference, counted together.
        is_complete: Whether `others` names them all, so that one that was never seen can be told.
        rare: The share of rows whose category no other row has: as likely as these is one never seen before.
    """

    name: str
    type: str
    categories: tuple[str, ...]
    others: tuple[str, ...]
    is_complete: bool
    rare: float


class Layout(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What states of one reference have in common.

    Attributes:
        numbers: The columns of numbers, in the order in which states count them.
        categories: The columns of categories, likewise.
        skipped: Columns of the reference that are not judged, each with the reason.
        seed: What the random directions of the joint comparison are drawn from.
        bandwidth: The median distance between two rows of the reference.
    """

    numbers: tuple[NumberColumn, ...]
    categories: tuple[CategoryColumn, ...]
    skipped: dict[str, str] = {}
    seed: int = 1
    bandwidth: float = 1.0

    @property
    def columns(self) -> list[NumberColumn | CategoryColumn]:
        """All columns that are judged: numbers first, then categories."""
        return [*self.numbers, *self.categories]

    @functools.cached_property
    def names(self) -> list[str]:
        """Their names."""
        return [column.name for column in self.columns]

    @functools.cached_property
    def bins(self) -> int:
        """How many bins the column of numbers with the most of them has."""
        return max((len(column.edges) + 1 for column in self.numbers), default=1)

    @functools.cached_property
    def kinds(self) -> int:
        """How many cells categories need at most: one for each, one for all others that are known."""
        return max((len(column.categories) + 1 for column in self.categories), default=1)

    @functools.cached_property
    def edges(self) -> Singles:
        """The edges of all columns of numbers, with infinity where one has fewer."""
        edges = np.full((len(self.numbers), self.bins - 1), np.inf, np.float32)
        for row, column in enumerate(self.numbers):
            edges[row, : len(column.edges)] = column.edges
        return edges

    @functools.cached_property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first and the second column of each pair of numbers whose correlation is followed."""
        lively = np.flatnonzero(~self.steady) if len(self.numbers) <= MOST_PAIRED else np.zeros(0, np.intp)
        first, second = np.triu_indices(len(lively), 1)
        return lively[first], lively[second]

    @functools.cached_property
    def steady(self) -> NDArray[np.bool_]:
        """Which columns of numbers hardly vary."""
        return np.array([column.is_steady for column in self.numbers], bool)
