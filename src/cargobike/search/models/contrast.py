"""The contrast that TPE and BOHB search by: what good trials have and the others lack."""

from __future__ import annotations

import bisect
import math

import numpy as np

from cargobike.search.models.parzen import NARROWEST, Parzen, Places
from cargobike.search.models.standing import LAST, Standing
from cargobike.search.spaces.encoding import Encoding, Floats

_GOOD_SHARE = 0.1
_MOST_GOOD = 25
_MOST_BAD = 500
"""So many bad trials are enough to know where not to look; more are thinned out evenly."""
_SPREAD = np.arange(float(_MOST_BAD))


class Contrast:
    """Trials and where they stand, kept in order as they come in, and two densities made of them.

    The best tenth of those that have a score, 25 at most, are good, weighted by how much better they are than the
    rest. All others are bad.

    Args:
        encoding: Says what the columns are.
        narrowest: Least width of a kernel around a trial.
    """

    def __init__(self, encoding: Encoding, narrowest: float = NARROWEST) -> None:
        self._encoding = encoding
        self._narrowest = narrowest
        self._rows = np.empty((64, encoding.width))
        self._ranking: list[tuple[Standing, int]] = []
        # Most trials do not get among the best, and leave the density of these as it was.
        self._kept: tuple[int, list[tuple[Standing, int]], Parzen] | None = None

    def __len__(self) -> int:
        """Return how many trials with a score there are."""
        return bisect.bisect_left(self._ranking, (LAST, -1))

    def learn(self, row: Floats, stands: Standing) -> None:
        """Add a trial; one without a score stands `LAST`."""
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
            others: Further rows that count as bad: those of which nothing is known yet, so that no trial crowds around
                them.
            rng: Source of randomness.
            together: Whether columns are judged together, or each as if it were alone.
            good: How many trials count as good; by default a share of them.
        """
        wanted, unwanted = self._densities(others, good or math.ceil(_GOOD_SHARE * len(self)))
        rows = wanted.sample(count, rng)
        places = Places(self._encoding, rows)
        gains = wanted.log_density_at(places) - unwanted.log_density_at(places)
        ordered = rows[(-gains).argsort(kind="stable")]
        ordered = ordered if together else np.vstack([self._combined(rows, wanted, unwanted), ordered])
        return self._encoding.kept_first(ordered)

    def gains(self, rows: Floats) -> Floats:
        """Return how much more likely each of some rows is in the better half than in the other, as a logarithm."""
        wanted, unwanted = self._densities(None, math.ceil(len(self) / 2))
        places = Places(self._encoding, rows)
        return wanted.log_density_at(places) - unwanted.log_density_at(places)

    def _combined(self, rows: Floats, good: Parzen, bad: Parzen) -> Floats:
        """Put a row together from the best value of each column."""
        best = np.empty(rows.shape[1])
        for column in range(rows.shape[1]):
            alone = np.full_like(rows, np.nan)
            alone[:, column] = rows[:, column]
            places = Places(self._encoding, alone)
            gains = good.log_density_at(places) - bad.log_density_at(places)
            best[column] = rows[np.argmax(np.where(np.isnan(rows[:, column]), -np.inf, gains)), column]
        return self._encoding.settle(best[None, :])

    def _densities(self, others: Floats | None, count: int) -> tuple[Parzen, Parzen]:
        count = min(count, _MOST_GOOD)
        best = self._ranking[: count + 1]
        chosen = [index for _, index in best[:count]]
        if self._kept is None or self._kept[:2] != (count, best):
            rows = self._rows.take(chosen, axis=0)
            good = Parzen(self._encoding, rows, self._weights(count), narrowest=self._narrowest)
            self._kept = count, best, good
        bad = self._bad(sorted(chosen), others)
        return self._kept[2], Parzen(self._encoding, bad, narrowest=self._narrowest)

    def _bad(self, good: list[int], others: Floats | None) -> Floats:
        """Return the rows that are not good, in the order in which they came in: all, or some, evenly spread."""
        own = len(self._ranking) - len(good)
        total = own if others is None else own + len(others)
        if total <= _MOST_BAD:
            is_bad = np.ones(len(self._ranking), dtype=np.bool_)
            is_bad[good] = False
            bad = self._rows.take(is_bad.nonzero()[0], axis=0)
            return bad if others is None else np.concatenate([bad, others])
        places = (_SPREAD * ((total - 1) / (_MOST_BAD - 1))).astype(np.intp)
        places[-1] = total - 1
        ahead = np.searchsorted(np.array(good) - np.arange(len(good)), places, side="right")
        if others is None:
            return self._rows.take(places + ahead, axis=0)
        split = np.searchsorted(places, own)
        mine = self._rows.take((places + ahead)[:split], axis=0)
        return np.concatenate([mine, others.take(places[split:] - own, axis=0)])

    def _weights(self, count: int) -> Floats | None:
        """Weigh good trials by their gain over the best of the others, and none below half of the average."""
        stands = [stands for stands, _ in self._ranking[: count + 1]]
        border = stands[-1] if stands[-1] != LAST else stands[count - 1]
        if border[0] != stands[0][0]:
            return None  # some break constraints and others do not: their losses say nothing
        gains = np.array([border[1] - loss for _, loss in stands[:count]])
        average = float(np.add.reduce(gains)) / len(gains)
        return gains + average if average > 0 and math.isfinite(average) else None
