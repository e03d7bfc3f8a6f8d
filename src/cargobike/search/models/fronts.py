"""Several objectives: which trials are good when none is best in everything."""

from __future__ import annotations

import math

import numpy as np

from cargobike.core.records import Trial, TrialState
from cargobike.search.models.contrast import Contrast
from cargobike.search.models.standing import LAST, loss_of
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.spaces.encoding import Encoding, Floats

_CONTENDERS = 64
"""So many of the best can still be good. A trial only ever falls behind, so none behind them comes back."""


def order_by_fronts(losses: Floats, violations: Floats) -> list[int]:
    """Return the rows of a table of losses, the best first.

    Those that no other beats in every column come first, then those that only these beat, and so on; within such a
    front, those with the most room around them. Rows that break constraints come last, by how much.
    """
    keeps = np.flatnonzero(violations == 0)
    ordered: list[int] = []
    while len(keeps):
        own = losses[keeps]
        no_worse = (own[None, :, :] <= own[:, None, :]).all(axis=2)
        better = (own[None, :, :] < own[:, None, :]).any(axis=2)
        is_front = ~np.any(no_worse & better, axis=1)
        front = keeps[is_front]
        ordered += front[np.argsort(-_room(losses[front]), kind="stable")].tolist()
        keeps = keeps[~is_front]
    breaks = np.flatnonzero(violations > 0)
    ordered += breaks[np.argsort(violations[breaks], kind="stable")].tolist()
    return ordered


def _room(front: Floats) -> Floats:
    """Return how far the neighbours of each row are from each other, all columns together; ends have no limit."""
    room = np.zeros(len(front))
    for column in front.T:
        order = np.argsort(column, kind="stable")
        ends = column[order[[0, -1]]]
        room[order[[0, -1]]] = np.inf
        if len(front) > 2 and ends[1] > ends[0]:
            room[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / (ends[1] - ends[0])
    return room


class FrontContrast(Contrast):
    """A contrast between trials of the foremost fronts and the others."""

    def __init__(self, encoding: Encoding, objectives: int) -> None:
        super().__init__(encoding)
        self._losses = np.empty((0, objectives))
        self._violations = np.empty(0)
        self._contenders: list[int] = []

    def learn_losses(self, row: Floats, losses: Floats | None, violation: float) -> None:
        """Add a trial; one without finite losses has no score."""
        index = len(self._ranking)
        self.learn(row, LAST)
        if losses is None or not math.isfinite(violation):
            return
        # `learn` has put it last; from here on contenders stand by their place, and who drops out behind them all.
        self._ranking.remove((LAST, index))
        self._contenders.append(index)
        self._losses = np.vstack([self._losses, losses])
        self._violations = np.append(self._violations, violation)
        order = order_by_fronts(self._losses, self._violations)
        behind = self._ranking[len(self._contenders) - 1 :]
        dropped = [self._contenders[place] for place in order[_CONTENDERS:]]
        kept = order[:_CONTENDERS]
        self._contenders = [self._contenders[place] for place in kept]
        self._losses, self._violations = self._losses[kept], self._violations[kept]
        ahead = [((float(place), 0.0), number) for place, number in enumerate(self._contenders)]
        self._ranking = ahead + [((float(_CONTENDERS), 0.0), number) for number in dropped] + behind
        self._ranking.sort()


def losses_of(trial: Trial, optimizer: AbstractOptimizer) -> Floats | None:
    """Return what a trial scored in each objective, so that smaller is better; `None` if not all are finite."""
    if trial.state is not TrialState.COMPLETED:
        return None
    scores = [loss_of(trial.metrics.get(name, math.nan), way) for name, way in optimizer.objectives.items()]
    return np.array(scores) if all(map(math.isfinite, scores)) else None
