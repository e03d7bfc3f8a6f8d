"""How numbers vary together: counts, means and products of deviations for each pair of columns.

A pair counts the rows in which both values are there. States are merged by the update of Chan, Golub and LeVeque, which
does not lose digits where means are large.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MOST_COLUMNS: Final = 40
"""Beyond these the pairs would need more room than the rows."""


_ROUNDING: Final = 1e-24
"""Squared deviations below this share of the squared mean are rounding."""


class Pairs(msgspec.Struct, frozen=True, array_like=True):
    """The state; matrices are stored row after row, as doubles.

    Attributes:
        names: The columns.
        counts: For each pair, in how many rows both values are there.
        means: The mean of the first of a pair over these rows.
        squares: The sum of squared deviations of the first from its mean over these rows.
        products: The sum of products of both deviations over these rows.
    """

    names: tuple[str, ...] = ()
    counts: bytes = b""
    means: bytes = b""
    squares: bytes = b""
    products: bytes = b""

    def matrix(self, data: bytes) -> Floats:
        """Return one of the matrices."""
        return np.frombuffer(data, dtype=np.float64).reshape(len(self.names), len(self.names))


@np.errstate(over="ignore", invalid="ignore")
def compare(columns: dict[str, Floats]) -> Pairs:
    """Return the state of columns of numbers; what is not finite is missing, or was squared too large to be kept."""
    names = tuple(columns)[:MOST_COLUMNS]
    if len(names) < 2:
        return Pairs()
    values = np.column_stack([columns[name] for name in names])
    there = np.isfinite(values)
    centers = np.array([column[ok].mean() if ok.any() else 0.0 for column, ok in zip(values.T, there.T, strict=True)])
    if there.all():
        values = values - centers
        counts = np.full((len(names), len(names)), float(len(values)))
        sums = np.repeat(values.sum(axis=0)[:, None], len(names), axis=1)
        products = values.T @ values
        squares = np.repeat(np.diag(products)[:, None], len(names), axis=1)
    else:
        values = np.where(there, values, centers) - centers
        present = there.astype(np.float64)
        counts, sums, products = present.T @ present, values.T @ present, values.T @ values
        squares = (values * values).T @ present
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    products = products - counts * means * means.T
    squares = squares - counts * means * means
    return Pairs(names, *(part.tobytes() for part in (counts, means + centers[:, None], squares, products)))


@np.errstate(over="ignore", invalid="ignore")
def merge(states: list[Pairs]) -> Pairs:
    """Return the state of all rows together, for the columns that all parts with any have."""
    states = [state for state in states if state.names]
    if not states:
        return Pairs()
    names = tuple(name for name in states[0].names if all(name in state.names for state in states))
    if len(names) < 2:
        return Pairs()
    counts, means, squares, products = (np.zeros((len(names), len(names))) for _ in range(4))
    for state in states:
        chosen = np.ix_(*[[state.names.index(name) for name in names]] * 2)
        more = state.matrix(state.counts)[chosen]
        gap = state.matrix(state.means)[chosen] - means
        total = counts + more
        share = np.divide(more, total, out=np.zeros_like(total), where=total > 0)
        squares = squares + state.matrix(state.squares)[chosen] + gap * gap * counts * share
        products = products + state.matrix(state.products)[chosen] + gap * gap.T * counts * share
        means, counts = means + gap * share, total
    return Pairs(names, *(part.tobytes() for part in (counts, means, squares, products)))


@np.errstate(over="ignore", invalid="ignore")
def correlations(state: Pairs) -> dict[str, dict[str, float | None]]:
    """Return the correlation of each pair of columns; `None` where one of the two does not vary."""
    if not state.names:
        return {}
    products, squares = state.matrix(state.products), state.matrix(state.squares)
    noise = _ROUNDING * state.matrix(state.counts) * state.matrix(state.means) ** 2
    varies = (squares > noise) & np.isfinite(squares) & np.isfinite(products)
    scale = np.sqrt(np.where(varies, squares, 1.0)) * np.sqrt(np.where(varies.T, squares.T, 1.0))
    values = np.clip(products / scale, -1.0, 1.0)
    return {
        first: {
            second: float(values[row, column]) if varies[row, column] and varies[column, row] else None
            for column, second in enumerate(state.names)
        }
        for row, first in enumerate(state.names)
    }
