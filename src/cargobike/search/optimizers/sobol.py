"""Sobol search: draws that keep out of each other's way, so that few of them cover the space evenly."""

from __future__ import annotations

import random
from typing import ClassVar

from cargobike.core.records import Params, Trial
from cargobike.search.optimizers.optimizer import Suggested
from cargobike.search.optimizers.randomsearch import RandomSearch

_BITS = 32
_MISSES = 20
"""Points in a row that may hit something tried before chance takes over."""
_BROKEN = 1000
"""Points in a row that may break constraints before chance takes over."""

# A column after the first needs a primitive polynomial over GF(2), as an integer, and as many odd numbers to start
# with as its degree, the i-th below 2**i. The polynomials are all there are up to degree 7; the numbers were chosen out
# of random ones, column by column, so that pairs of columns fill the square evenly at 8, 32, 128 and 512 points.
_COLUMNS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (3, (1,)), (7, (1, 3)), (11, (1, 3, 1)), (13, (1, 1, 5)), (19, (1, 1, 3, 5)), (25, (1, 1, 1, 15)),
    (37, (1, 1, 7, 11, 27)), (41, (1, 3, 5, 3, 29)), (47, (1, 3, 3, 5, 7)), (55, (1, 1, 3, 13, 1)),
    (59, (1, 1, 7, 5, 25)), (61, (1, 3, 7, 11, 23)), (67, (1, 3, 1, 15, 21, 35)), (91, (1, 3, 7, 7, 11, 9)),
    (97, (1, 1, 3, 1, 5, 61)), (103, (1, 3, 3, 11, 19, 59)), (109, (1, 1, 7, 5, 27, 37)),
    (115, (1, 3, 5, 11, 1, 49)), (131, (1, 1, 7, 11, 13, 61, 13)), (137, (1, 1, 1, 1, 13, 31, 43)),
    (143, (1, 1, 7, 13, 17, 39, 1)), (145, (1, 3, 7, 11, 25, 47, 57)), (157, (1, 3, 7, 7, 23, 25, 21)),
    (167, (1, 3, 1, 11, 5, 7, 67)), (171, (1, 1, 1, 5, 17, 1, 77)), (185, (1, 3, 7, 9, 7, 51, 115)),
    (191, (1, 1, 1, 15, 29, 29, 61)), (193, (1, 1, 7, 11, 19, 51, 67)), (203, (1, 1, 5, 7, 7, 59, 33)),
    (211, (1, 3, 3, 1, 11, 17, 39)), (213, (1, 3, 5, 13, 11, 45, 15)), (229, (1, 3, 7, 3, 1, 39, 17)),
    (239, (1, 3, 3, 1, 5, 45, 55)), (241, (1, 3, 5, 3, 31, 33, 115)), (247, (1, 1, 1, 3, 5, 27, 117)),
    (253, (1, 3, 3, 11, 15, 39, 17)),
)  # fmt: skip


class SobolSequence:
    """A scrambled Sobol sequence: every power of two of its points, from the start, is spread evenly.

    Scrambling keeps that and makes sequences of different seeds different. Columns beyond the table are random.

    Args:
        width: How many numbers a point has.
        rng: Decides about the scrambling.
    """

    def __init__(self, width: int, rng: random.Random) -> None:
        self._rng = rng
        known = min(width, len(_COLUMNS) + 1)
        self._rest = width - known
        self._directions = [_scrambled(_directions(column), rng) for column in range(known)]
        self._point = [rng.getrandbits(_BITS) for _ in range(known)]
        self._count = 0

    def next(self) -> list[float]:
        """Return the next point, numbers from 0 to 1."""
        point = [(bits + 0.5) / 2**_BITS for bits in self._point]
        self._count += 1
        # In the order of the Gray code a point differs from the one before in a single direction: that of the
        # lowest bit of its number.
        changed = (self._count & -self._count).bit_length() - 1
        self._point = [bits ^ column[changed] for bits, column in zip(self._point, self._directions, strict=True)]
        return [*point, *(self._rng.random() for _ in range(self._rest))]


def _directions(column: int) -> list[int]:
    """Return the column's direction numbers, the first bit behind the point being the highest of `_BITS`."""
    if column == 0:
        return [1 << (_BITS - 1 - bit) for bit in range(_BITS)]
    polynomial, start = _COLUMNS[column - 1]
    degree = len(start)
    numbers = list(start)
    for bit in range(degree, _BITS):
        number = numbers[bit - degree] ^ (numbers[bit - degree] << degree)
        for back in range(1, degree):
            if polynomial >> (degree - back) & 1:
                number ^= numbers[bit - back] << back
        numbers.append(number)
    return [number << (_BITS - 1 - bit) for bit, number in enumerate(numbers)]


def _scrambled(directions: list[int], rng: random.Random) -> list[int]:
    """Add to each bit a random choice of the bits above it, the same choice for all points."""
    taken = [(1 << bit) | (rng.getrandbits(_BITS) >> (bit + 1) << (bit + 1)) for bit in range(_BITS)]
    return [
        sum(((direction & mask).bit_count() & 1) << bit for bit, mask in enumerate(taken)) for direction in directions
    ]


class Sobol(RandomSearch):
    """Tries the points of a scrambled Sobol sequence, without looking at results.

    A finite space is searched without repetition and ends when it is used up.

    Use it instead of random search wherever that would do: it leaves no holes, and a power of two of trials covers
    the space best.
    """

    name: ClassVar[str] = "sobol"
    learns: ClassVar[bool] = False

    def initialize(self) -> None:
        """Begin a new sequence."""
        super().initialize()
        self._sequence = SobolSequence(len(self.space), self.rng)

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return the next point that was not tried before, or `None` when there is none left."""
        if self.num_trials is not None and self._suggested >= self.num_trials:
            return None
        params = self._next()
        if params is not None:
            self._suggested += 1
        return params

    def _next(self) -> Params | None:
        for _ in range(_MISSES if self._left is None else 0):
            params = self._kept()
            if params is None:
                break
            if self._remember(params):
                return params
        return self._draw()

    def _kept(self) -> Params | None:
        """Return the next point where the constraints of the space hold, `None` if they seldom do."""
        for _ in range(_BROKEN):
            params = self.space.try_unit(self._sequence.next())
            if params is not None:
                return params
        return None
