"""A small random forest for regression, kept as what variance analysis needs: the boxes of its leaves.

Inputs are measured by probability: an ordered column lies in [0, 1] and is uniform there, a column of categories holds
their indices. A leaf is an interval of each ordered column times a set of categories of each other one.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Column:
    """What a column of the inputs is.

    Attributes:
        weights: Probabilities of the categories; empty for an ordered column.
        absent: Share of an ordered column, from 0 on, that stands for "does not exist"; never cut in two.
    """

    weights: tuple[float, ...] = ()
    absent: float = 0.0


@dataclass(frozen=True)
class Tree:
    """The leaves of one tree.

    Attributes:
        low: Where a leaf begins, for each leaf and column; unused for categories.
        high: Where it ends.
        members: For each column of categories, which of them a leaf holds.
        values: What it predicts.
    """

    low: Floats
    high: Floats
    members: dict[int, Flags]
    values: Floats

    def predict(self, inputs: Floats) -> Floats:
        """Return a prediction for each row."""
        inside = np.ones((len(inputs), len(self.values)), dtype=bool)
        for column in range(inputs.shape[1]):
            given = inputs[:, column]
            if column in self.members:
                inside &= self.members[column][:, given.astype(int)].T
            else:
                last = self.high[:, column] >= 1.0
                inside &= given[:, None] >= self.low[:, column]
                inside &= (given[:, None] < self.high[:, column]) | last
        predictions: Floats = self.values[inside.argmax(axis=1)]
        return predictions


@dataclass(frozen=True)
class Forest:
    """Trees, and how much of the variance they explain in rows that they have not seen."""

    trees: list[Tree]
    columns: tuple[Column, ...]
    explained: float


@dataclass(frozen=True)
class Growth:
    """How trees grow.

    Attributes:
        trees: How many.
        leaves: How many leaves each has at most.
        smallest: How many rows a leaf has at least.
        rows: How many rows each tree sees at most.
        tried: Which share of the columns is tried for each split.
    """

    trees: int = 20
    leaves: int = 96
    smallest: int = 2
    rows: int = 1500
    tried: float = 0.7


def grow_forest(
    inputs: Floats, outputs: Floats, columns: Sequence[Column], *, seed: int = 0, growth: Growth | None = None
) -> Forest:
    """Grow a forest; the same inputs and seed give the same forest."""
    growth = growth or Growth()
    rng = np.random.default_rng(seed)
    rows = len(outputs)
    trees = []
    total, counts = np.zeros(rows), np.zeros(rows)
    for _ in range(growth.trees):
        drawn = rng.integers(0, rows, size=min(rows, growth.rows))
        tree = _Grower(inputs[drawn], outputs[drawn], tuple(columns), growth, rng).grow()
        trees.append(tree)
        unseen = np.setdiff1d(np.arange(rows), drawn)[: growth.rows]
        if len(unseen):
            total[unseen] += tree.predict(inputs[unseen])
            counts[unseen] += 1
    judged = counts > 0
    explained = 0.0
    if judged.sum() > 1 and (spread := float(np.var(outputs[judged]))) > 0:
        error = float(np.mean((total[judged] / counts[judged] - outputs[judged]) ** 2))
        explained = max(0.0, 1.0 - error / spread)
    return Forest(trees, tuple(columns), explained)


@dataclass
class _Leaf:
    rows: Whole
    low: Floats
    high: Floats
    members: dict[int, Flags]


@dataclass(frozen=True)
class _Split:
    gain: float
    column: int
    threshold: float = 0.0
    left: Flags | None = None


@dataclass(frozen=True)
class _Cut:
    gain: float
    before: float
    after: float


class _Grower:
    """Grows one tree, always at the leaf where a split gains most."""

    def __init__(
        self, inputs: Floats, outputs: Floats, columns: tuple[Column, ...], growth: Growth, rng: np.random.Generator
    ) -> None:
        self._inputs = inputs
        self._outputs = outputs
        self._columns = columns
        self._growth = growth
        self._rng = rng
        self._tried = max(1, round(growth.tried * len(columns)))

    def grow(self) -> Tree:
        width = len(self._columns)
        everything = {
            index: np.ones(len(column.weights), dtype=bool)
            for index, column in enumerate(self._columns)
            if column.weights
        }
        root = _Leaf(np.arange(len(self._outputs)), np.zeros(width), np.ones(width), everything)
        done: list[_Leaf] = []
        waiting: list[tuple[float, int, _Leaf, _Split]] = []
        number = 0
        fresh = [root]
        while True:
            for leaf in fresh:
                split = self._best_split(leaf)
                if split is None:
                    done.append(leaf)
                else:
                    heapq.heappush(waiting, (-split.gain, number, leaf, split))
                    number += 1
            if not waiting or len(done) + len(waiting) >= self._growth.leaves:
                break
            _, _, leaf, split = heapq.heappop(waiting)
            fresh = self._apply(leaf, split)
        leaves = [*done, *(leaf for _, _, leaf, _ in waiting)]
        return Tree(
            low=np.array([leaf.low for leaf in leaves]),
            high=np.array([leaf.high for leaf in leaves]),
            members={column: np.array([leaf.members[column] for leaf in leaves]) for column in everything},
            values=np.array([self._outputs[leaf.rows].mean() for leaf in leaves]),
        )

    def _best_split(self, leaf: _Leaf) -> _Split | None:
        if len(leaf.rows) < 2 * self._growth.smallest:
            return None
        outputs = self._outputs[leaf.rows]
        if np.ptp(outputs) == 0:
            return None
        best: _Split | None = None
        tried = self._rng.permutation(len(self._columns))
        for position, column in enumerate(tried):
            if position >= self._tried and best is not None:
                break
            found = self._split_of(leaf, int(column), outputs)
            if found is not None and (best is None or found.gain > best.gain):
                best = found
        return best

    def _split_of(self, leaf: _Leaf, column: int, outputs: Floats) -> _Split | None:
        given = self._inputs[leaf.rows, column]
        if column not in leaf.members:
            found = _best_cut(given, outputs, self._growth.smallest)
            return None if found is None else _Split(found.gain, column, threshold=self._threshold(column, found))
        # Ordered by their means, the best of all divisions of categories into two is a cut in that order.
        codes, size = given.astype(int), len(self._columns[column].weights)
        counts = np.bincount(codes, minlength=size)
        means = np.bincount(codes, weights=outputs, minlength=size) / np.maximum(counts, 1)
        ranks = np.empty(size)
        ranks[np.argsort(np.where(counts > 0, means, np.inf), kind="stable")] = np.arange(size)
        found = _best_cut(ranks[codes], outputs, self._growth.smallest)
        if found is None:
            return None
        left: Flags = (counts > 0) & (ranks <= found.before)
        if 2 * counts[left].sum() > len(codes):
            left |= counts == 0  # categories that no row of the leaf has follow the larger part
        return _Split(found.gain, column, left=left & leaf.members[column])

    def _threshold(self, column: int, cut: _Cut) -> float:
        absent = self._columns[column].absent
        if cut.before < absent <= cut.after:
            return absent
        drawn = cut.before + (cut.after - cut.before) * float(self._rng.random())
        return min(max(drawn, float(np.nextafter(cut.before, 2.0))), cut.after)

    def _apply(self, leaf: _Leaf, split: _Split) -> list[_Leaf]:
        given = self._inputs[leaf.rows, split.column]
        if split.left is not None:
            goes_left = split.left[given.astype(int)]
            rest = leaf.members[split.column] & ~split.left
            return [
                _Leaf(leaf.rows[goes_left], leaf.low, leaf.high, {**leaf.members, split.column: split.left}),
                _Leaf(leaf.rows[~goes_left], leaf.low, leaf.high, {**leaf.members, split.column: rest}),
            ]
        goes_left = given < split.threshold
        high, low = leaf.high.copy(), leaf.low.copy()
        high[split.column] = low[split.column] = split.threshold
        return [
            _Leaf(leaf.rows[goes_left], leaf.low, high, leaf.members),
            _Leaf(leaf.rows[~goes_left], low, leaf.high, leaf.members),
        ]


def _best_cut(given: Floats, outputs: Floats, smallest: int) -> _Cut | None:
    """Return between which two numbers a cut leaves the least variance on both sides together."""
    order = np.argsort(given, kind="stable")
    numbers, sums = given[order], np.cumsum(outputs[order])
    sizes = np.arange(1, len(order))
    left, total = sums[:-1], sums[-1]
    gains = left**2 / sizes + (total - left) ** 2 / (len(order) - sizes) - total**2 / len(order)
    gains[numbers[1:] <= numbers[:-1]] = -np.inf
    gains[: smallest - 1] = -np.inf
    gains[len(gains) - smallest + 1 :] = -np.inf
    best = int(np.argmax(gains))
    if not gains[best] > 0:
        return None
    return _Cut(float(gains[best]), float(numbers[best]), float(numbers[best + 1]))


def widths_of(tree: Tree, columns: Sequence[Column]) -> Floats:
    """Return the probability of each leaf's side in each column."""
    widths = tree.high - tree.low
    for column, members in tree.members.items():
        widths[:, column] = members @ np.array(columns[column].weights)
    return widths
