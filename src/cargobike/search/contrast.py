"""The contrast that TPE and BOHB search by: what good trials have and the others lack."""

from __future__ import annotations

import bisect
import math

import numpy as np

from cargobike.search.encoding import Encoding, Floats
from cargobike.search.parzen import Parzen
from cargobike.search.standing import LAST, Standing

_GOOD_SHARE = 0.1
_MOST_GOOD = 25
_MOST_BAD = 500
"""So many bad trials are enough to know where not to look; more are thinned out evenly."""


class Contrast:
    """Trials and where they stand, kept in order as they come in, and two densities made of them.

    The best tenth of those that have a score, 25 at most, are good, weighted by how much better they are than the
    rest. All others are bad.
    """

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._rows = np.empty((64, encoding.width))
        self._ranking: list[tuple[Standing, int]] = []

    def __len__(self) -> int:
        """Return how many trials with a score there are."""
        return bisect.bisect_left(self._ranking, (LAST, -1))

    def learn(self, row: Floats, stands: Standing) -> None:
        """Take in a trial; one without a score stands `LAST`."""
        index = len(self._ranking)
        if index == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[index] = row
        bisect.insort(self._ranking, (stands, index))

    def candidates(
        self,
        count: int,
        others: Floats | None,
        rng: np.random.Generator,
        *,
        together: bool = True,
        good: int | None = None,
    ) -> Floats:
        """Return rows that the good would draw, the most promising one first; needs a trial with a score.

        Args:
            count: How many to draw.
            others: Further rows that count as bad: those of which nothing is known yet, so that nobody crowds around
                them.
            rng: Source of randomness.
            together: Whether columns are judged together, or each as if it were alone.
            good: How many trials count as good, if somebody knows better.
        """
        wanted, unwanted = self._densities(others, good or math.ceil(_GOOD_SHARE * len(self)))
        rows = wanted.sample(count, rng)
        gains = wanted.log_density(rows) - unwanted.log_density(rows)
        ordered = rows[np.argsort(-gains, kind="stable")]
        return ordered if together else np.vstack([self._combined(rows, wanted, unwanted), ordered])

    def gains(self, rows: Floats) -> Floats:
        """Return how much more likely each of some rows is in the better half than in the other, as a logarithm."""
        wanted, unwanted = self._densities(None, math.ceil(len(self) / 2))
        return wanted.log_density(rows) - unwanted.log_density(rows)

    def _combined(self, rows: Floats, good: Parzen, bad: Parzen) -> Floats:
        """Put a row together from the best value of each column."""
        best = np.empty(rows.shape[1])
        for column in range(rows.shape[1]):
            alone = np.full_like(rows, np.nan)
            alone[:, column] = rows[:, column]
            gains = good.log_density(alone) - bad.log_density(alone)
            best[column] = rows[np.argmax(np.where(np.isnan(rows[:, column]), -np.inf, gains)), column]
        return self._encoding.settle(best[None, :])

    def _densities(self, others: Floats | None, count: int) -> tuple[Parzen, Parzen]:
        count = min(count, _MOST_GOOD)
        chosen = [index for _, index in self._ranking[:count]]
        is_bad = np.ones(len(self._ranking), dtype=np.bool_)
        is_bad[chosen] = False
        bad = self._rows[: len(self._ranking)][is_bad]
        if others is not None:
            bad = np.concatenate([bad, others])
        if len(bad) > _MOST_BAD:
            bad = bad[np.linspace(0, len(bad) - 1, _MOST_BAD).astype(np.intp)]
        return Parzen(self._encoding, self._rows[chosen], self._weights(count)), Parzen(self._encoding, bad)

    def _weights(self, count: int) -> Floats | None:
        """Weigh good trials by their gain over the best of the others, and none below half of the average."""
        stands = [stands for stands, _ in self._ranking[: count + 1]]
        border = stands[-1] if stands[-1] != LAST else stands[count - 1]
        if border[0] != stands[0][0]:
            return None  # some break constraints and others do not: their losses say nothing
        gains = np.array([border[1] - loss for _, loss in stands[:count]])
        average = gains.mean()
        return gains + average if average > 0 and math.isfinite(average) else None
