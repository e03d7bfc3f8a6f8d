"""Foresight: where trials will end, told by how they stand and fell so far and by those that were trained to their end.

A curve that falls steeply has more to come than a flat one. How much a score and the last fall tell about the end is
learned, for each rung, from the trials that ended. All of it is in losses, the less the better, and in plain numbers: a
search of a few trials does without NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_REPEATED = 0.5
"""How much of a change repeats itself up to the next rung, before anything is known."""
_BELIEVED = 8
"""That, and that a trial ends as it stands, count as so many trials which showed it."""
_ENOUGH_ENDS = 3
"""So many trials must have ended before they say how well an end can be told."""
_UNSURE = (0.7, 0.5, 0.25, 0.15)
"""Deviation of what is foreseen at each rung, as a share of that of the ends, before anything is known."""
_UNSURE_BELIEVED = 2
"""That counts as so many trials."""
_CHANCE = 1.25
"""A trial may still win if it is so many times as many deviations from the best as an unknown trial, or less."""
_GROWTH, _GROWTH_OF_MANY = 1.1, 1.5
"""Learned anew when so many times more trials have ended; each time all that is known is gone through."""
_MANY_ENDS = 200
_NEAR = 0.1
"""Below this share of the way from the best to the median differences count in full, above it by their ratio."""


class Foresight:
    """Curves at the rungs, ends, and what they say about trials that have not ended."""

    def __init__(self) -> None:
        self._reached: dict[int, list[float]] = {}
        self._ends: dict[int, float] = {}
        self._rungs: int | None = None
        self._fits: dict[int, _Fit] = {}
        self._scale = _Scale((0.0, 1.0))
        self._reach = 0.0
        self._spread = 1.0
        self._learns_at = _ENOUGH_ENDS

    def __len__(self) -> int:
        """Return how many trials are known."""
        return len(self._reached)

    @property
    def ended(self) -> int:
        """How many of them have ended."""
        return len(self._ends)

    def note(self, trial: int, losses: Sequence[float]) -> None:
        """Note what a trial had reached at the rungs it has passed, lowest first."""
        if len(losses) > len(self._reached.get(trial, ())):
            self._reached[trial] = list(losses)

    def note_end(self, trial: int, loss: float, rungs: int) -> bool:
        """Note where a trial ended.

        Args:
            trial: Its number.
            loss: What it reached.
            rungs: How many rungs there are below the end.

        Returns:
            Whether other things are foreseen now.
        """
        if not math.isfinite(loss) or trial not in self._reached:
            return False
        self._ends[trial] = loss
        has_changed = rungs != self._rungs
        self._rungs = rungs
        if len(self._ends) >= self._learns_at:
            growth = _GROWTH if len(self._ends) < _MANY_ENDS else _GROWTH_OF_MANY
            self._learns_at = max(len(self._ends) + 1, int(growth * len(self._ends)))
            self._learn(rungs)
            has_changed = True
        return has_changed

    def foreseen(self, trial: int, rung: int) -> float:
        """Return what trials that got to a rung are ranked by there, the less the better.

        It is where a trial is foreseen to end, on a scale of its own; at the first rung, and before enough have ended,
        it is the loss there.
        """
        fit = self._fits.get(rung) if rung else None
        return self._reached[trial][rung] if fit is None else fit.end(*self._stand(trial, rung))

    def may_win(self, trial: int, rung: int) -> bool:
        """Tell whether a trial may end better than the best so far, about as likely as one of which nothing is known.

        So all may where a rung says nothing about ends, and few where it says much. None may as long as too little is
        known.
        """
        fit = self._fits.get(rung)
        if fit is None or not math.isfinite(score := fit.end(*self._stand(trial, rung))):
            return False
        return score <= self._reach * fit.deviation

    def left_open(self, rung: int) -> float | None:
        """Return which share of the variance of ends is not told at a rung, `None` before enough have ended."""
        fit = self._fits.get(rung)
        return None if fit is None else min((fit.deviation / self._spread) ** 2, 1.0)

    def expected(self) -> dict[int, tuple[float, float]]:
        """Return for each trial what it is expected to end with, on a scale of its own, and the variance of that."""
        top = self._rungs
        last = {
            trial: len(losses) - 1 if top is None else min(len(losses), top) - 1
            for trial, losses in self._reached.items()
        }
        if not self._fits:
            standing = {
                trial: self._ends.get(trial, self._reached[trial][max(rung, 0)]) for trial, rung in last.items()
            }
            known = sorted(loss for loss in standing.values() if math.isfinite(loss))
            if not known:
                return {}
            scale = _Scale(known)
            spread = _deviation([scale(loss) for loss in known])
            return {
                trial: (
                    scale(loss if math.isfinite(loss) else known[-1]),
                    0.0 if trial in self._ends else (_unsure(last[trial]) * spread) ** 2,
                )
                for trial, loss in standing.items()
            }
        found = dict[int, tuple[float, float]]()
        for trial, rung in last.items():
            fit = self._fits.get(rung)
            if trial in self._ends:
                found[trial] = self._scale(self._ends[trial]), 0.0
            elif fit is not None:
                score = fit.end(*self._stand(trial, rung))
                found[trial] = score if math.isfinite(score) else fit.worst, fit.deviation**2
        return found

    def _stand(self, trial: int, rung: int) -> tuple[float, float]:
        """Return the score of a trial at a rung, and by how much that differs from the one at the rung before."""
        losses = self._reached[trial]
        score = self._scale(losses[rung])
        change = score - self._scale(losses[rung - 1]) if rung else 0.0
        return score, change if math.isfinite(change) else 0.0

    def _learn(self, rungs: int) -> None:
        ends = sorted(self._ends.values())
        self._scale = _Scale(ends)
        scores = [self._scale(end) for end in ends]
        self._spread = spread = _deviation(scores)
        self._reach = _CHANCE * sum(scores) / len(scores) / spread
        for rung in range(rungs):
            known = [trial for trial in self._ends if len(self._reached[trial]) > rung]
            stands = [self._stand(trial, rung) for trial in known]
            pairs = [
                (stand, self._scale(self._ends[trial]))
                for trial, stand in zip(known, stands, strict=True)
                if math.isfinite(stand[0])
            ]
            if len(pairs) >= _ENOUGH_ENDS - 1:
                self._fits[rung] = _Fit(pairs, 1 - _REPEATED ** (rungs - rung), _unsure(rung) * spread)


class _Scale:
    """Losses as multiples of the way from the best to the median, on a logarithm that is straight near the best.

    How bad the bad ones are says little about where the best lie, and small differences among the best say much.

    Args:
        losses: In order, the best first.
    """

    def __init__(self, losses: Sequence[float]) -> None:
        self._low = losses[0]
        self._unit = _NEAR * (losses[len(losses) // 2] - self._low or losses[-1] - self._low or 1.0)

    def __call__(self, loss: float) -> float:
        units = (loss - self._low) / self._unit
        return math.log1p(units) if units > 0 else units


class _Fit:
    """How trials end, told by their score at a rung and by the last change of that, and how far off that is.

    Args:
        pairs: Score and change of some trials, and how they ended.
        repeated: How much of the change is believed to be still to come.
        deviation: What the deviation is believed to be.
    """

    def __init__(self, pairs: Sequence[tuple[tuple[float, float], float]], repeated: float, deviation: float) -> None:
        count = len(pairs)
        self._x = sum(x for (x, _), _ in pairs) / count
        self._z = sum(z for (_, z), _ in pairs) / count
        self._y = sum(y for _, y in pairs) / count
        moved = [(x - self._x, z - self._z, y - self._y) for (x, z), y in pairs]
        xx, zz, xz = sum(x * x for x, _, _ in moved), sum(z * z for _, z, _ in moved), sum(x * z for x, z, _ in moved)
        # Least squares, drawn to what is believed: a slope of 1 for the score, and what repeats itself of the change.
        prior_x, prior_z = (_BELIEVED * max(squares / count, 1e-12) for squares in (xx, zz))
        xy = sum(x * y for x, _, y in moved) + prior_x
        zy = sum(z * y for _, z, y in moved) + prior_z * repeated
        xx, zz = xx + prior_x, zz + prior_z
        area = xx * zz - xz * xz
        self._slopes = (zz * xy - xz * zy) / area, (xx * zy - xz * xy) / area
        away = sum((y - self.end(x, z)) ** 2 for (x, z), y in pairs)
        self.deviation = math.sqrt((_UNSURE_BELIEVED * deviation**2 + away) / (_UNSURE_BELIEVED + count))
        self.worst = max(y for _, y in pairs)

    def end(self, score: float, change: float) -> float:
        """Return how a trial ends that stands like this."""
        return self._y + self._slopes[0] * (score - self._x) + self._slopes[1] * (change - self._z)


def _unsure(rung: int) -> float:
    """Return the deviation of what is foreseen at a rung, as a share of that of the ends, before anything is known."""
    return _UNSURE[min(max(rung, 0), len(_UNSURE) - 1)]


def _deviation(numbers: Sequence[float]) -> float:
    middle = sum(numbers) / len(numbers)
    return math.sqrt(sum((number - middle) ** 2 for number in numbers) / len(numbers)) or 1.0
