"""Foresight: where trials will end, told by how they fell so far and by those that were trained to their end.

A curve that falls steeply has more to come than a flat one: a part of each fall, from one rung to the next, repeats
itself. How large a part is learned from trials that got further, and how well that tells the end from those that got
there. All of it is in losses, the less the better, and in plain numbers: a search of a few trials does without NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

_REPEATED = 0.5
"""How much of a fall repeats itself up to the next rung, before anything is known."""
_BELIEVED = 4
"""That counts as so many trials which showed it."""
_ENOUGH_ENDS = 3
"""So many trials must have ended before they say how well an end can be told."""
_CAPPED_FROM = 0.75
"""A fall counts from where three quarters of the others are better: one from far above says nothing about the rest."""
_UNSURE = (0.7, 0.5, 0.25, 0.15)
"""Deviation of what is foreseen at each rung, as a share of that of the ends, before anything is known."""
_UNSURE_BELIEVED = 2
"""That, and that ends follow what is foreseen, count as so many trials."""
_CHANCE = 1.25
"""A trial may still win if it is so many times as many deviations from the best as an unknown trial, or less."""
_GROWTH, _GROWTH_OF_MANY = 1.1, 1.5
"""Learned anew when so many times more trials have ended; each time all that is known is gone through."""
_MANY_ENDS = 200


class Foresight:
    """Curves at the rungs, ends, and what they say about trials that have not ended."""

    def __init__(self) -> None:
        self._reached: dict[int, list[float]] = {}
        self._ends: dict[int, float] = {}
        self._rungs: int | None = None
        self._repeated: dict[int, float] = {}
        self._caps: dict[int, float] = {}
        self._fits: dict[int, _Fit] = {}
        self._scale = _Scale((0.0, 1.0))
        self._reach = 0.0
        self._learns_at = _ENOUGH_ENDS

    def __len__(self) -> int:
        """Return how many trials are known."""
        return len(self._reached)

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
            self._learn()
            has_changed = True
        return has_changed

    def foreseen(self, trial: int, rung: int) -> float:
        """Return the loss that a trial is foreseen to end with, as far as it can be told at a rung that it got to."""
        losses = self._reached[trial]
        fall = self._fall(losses, rung) if rung else 0.0
        return losses[rung] + self._to_come(rung) * fall if math.isfinite(fall) else losses[rung]

    def may_win(self, trial: int, rung: int) -> bool:
        """Tell whether a trial may end better than the best so far, about as likely as one of which nothing is known.

        So all may where a rung says nothing about ends, and few where it says much. None may as long as too little is
        known.
        """
        fit = self._fits.get(rung)
        if fit is None or not math.isfinite(loss := self.foreseen(trial, rung)):
            return False
        return fit.end(self._scale(loss)) <= self._reach * fit.deviation

    def expected(self) -> dict[int, tuple[float, float]]:
        """Return for each trial what it is expected to end with, on a scale of its own, and the variance of that."""
        top = self._rungs
        last = {
            trial: (top if trial in self._ends else len(losses) - 1 if top is None else min(len(losses), top) - 1)
            for trial, losses in self._reached.items()
        }
        losses = {
            trial: self._ends[trial] if trial in self._ends else self.foreseen(trial, rung or 0)
            for trial, rung in last.items()
        }
        known = sorted(loss for loss in losses.values() if math.isfinite(loss))
        if not known:
            return {}
        scale = self._scale if self._fits else _Scale(known)
        spread = _deviation([scale(loss) for loss in (self._ends.values() if self._fits else known)])
        worst = known[-1]
        found = dict[int, tuple[float, float]]()
        for trial, rung in last.items():
            score = scale(losses[trial] if math.isfinite(losses[trial]) else worst)
            fit = self._fits.get(rung or 0)
            if trial in self._ends:
                found[trial] = score, 0.0
            elif fit is not None:
                found[trial] = fit.end(score), fit.deviation**2
            else:
                found[trial] = score, _unsure(rung or 0) * spread**2
        return found

    def _fall(self, losses: Sequence[float], rung: int) -> float:
        """Return by how much a trial fell from the rung before; one that rose is not foreseen to go on with that."""
        return min(losses[rung] - min(losses[rung - 1], self._caps.get(rung - 1, math.inf)), 0.0)

    def _to_come(self, rung: int) -> float:
        """Return how often the fall before a rung repeats itself until the end."""
        if self._rungs is None:
            return self._repeated.get(rung, _REPEATED)
        more = 0.0
        for other in range(self._rungs - 1, rung - 1, -1):
            more = self._repeated.get(other, _REPEATED) * (1 + more)
        return more

    def _learn(self) -> None:
        assert self._rungs is not None
        for rung in range(self._rungs):
            here = sorted(
                losses[rung] for losses in self._reached.values() if len(losses) > rung and math.isfinite(losses[rung])
            )
            if here:
                self._caps[rung] = here[int(_CAPPED_FROM * len(here))]
        for rung in range(1, self._rungs):
            pairs = list(self._falls(rung, self._rungs))
            if len(pairs) >= _ENOUGH_ENDS:
                self._repeated[rung] = min(max(_Fit(pairs, _REPEATED, _BELIEVED).slope, 0.0), 1.0)
        ends = sorted(self._ends.values())
        self._scale = _Scale(ends)
        scores = [self._scale(end) for end in ends]
        spread = _deviation(scores)
        self._reach = _CHANCE * sum(scores) / len(scores) / spread
        for rung in range(self._rungs):
            pairs = [
                (self._scale(loss), self._scale(end))
                for trial, end in self._ends.items()
                if len(self._reached[trial]) > rung and math.isfinite(loss := self.foreseen(trial, rung))
            ]
            if len(pairs) >= _ENOUGH_ENDS - 1:
                unsure = _UNSURE[min(rung, len(_UNSURE) - 1)] * spread
                self._fits[rung] = _Fit(pairs, 1.0, _UNSURE_BELIEVED, unsure, (0.0, 1.5))

    def _falls(self, rung: int, rungs: int) -> Iterable[tuple[float, float]]:
        """Yield by how much trials fell up to a rung, and from there to the next one or to the end."""
        for trial, losses in self._reached.items():
            after = self._ends.get(trial) if rung + 1 == rungs else losses[rung + 1] if len(losses) > rung + 1 else None
            if after is None or len(losses) <= rung:
                continue
            fall = self._fall(losses, rung)
            if math.isfinite(fall) and math.isfinite(after):
                yield fall, after - losses[rung]


class _Scale:
    """Losses as multiples of the way from the best to the median; what is worse is pressed together.

    How bad the bad ones are says little about where the best lie.

    Args:
        losses: In order, the best first.
    """

    def __init__(self, losses: Sequence[float]) -> None:
        self._low = losses[0]
        self._way = losses[len(losses) // 2] - self._low or losses[-1] - self._low or 1.0

    def __call__(self, loss: float) -> float:
        units = (loss - self._low) / self._way
        return 1 + math.log(units) if units > 1 else units


class _Fit:
    """A straight line through some pairs, and how far from it they lie.

    Args:
        pairs: What was seen, and what came of it.
        slope: What the slope is believed to be.
        believed: That, and the deviation, counts as so many pairs.
        deviation: What the deviation is believed to be.
        slopes: The least and the greatest slope.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[float, float]],
        slope: float,
        believed: int,
        deviation: float = 0.0,
        slopes: tuple[float, float] = (-math.inf, math.inf),
    ) -> None:
        count = len(pairs)
        self._x, self._y = sum(x for x, _ in pairs) / count, sum(y for _, y in pairs) / count
        squares = sum((x - self._x) ** 2 for x, _ in pairs)
        products = sum((x - self._x) * (y - self._y) for x, y in pairs)
        prior = believed * max(squares / count, 1e-12)
        self.slope = min(max((prior * slope + products) / (prior + squares), slopes[0]), slopes[1])
        away = sum((y - self.end(x)) ** 2 for x, y in pairs)
        self.deviation = math.sqrt((believed * deviation**2 + away) / (believed + count))

    def end(self, x: float) -> float:
        """Return what comes of something."""
        return self._y + self.slope * (x - self._x)


def _unsure(rung: int) -> float:
    """Return the variance of what is seen at a rung, as a share of that of all, while no end is known."""
    return (1.0, 0.6, 0.3, 0.1)[min(rung, 3)]


def _deviation(numbers: Sequence[float]) -> float:
    middle = sum(numbers) / len(numbers)
    return math.sqrt(sum((number - middle) ** 2 for number in numbers) / len(numbers)) or 1.0
