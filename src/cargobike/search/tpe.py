"""TPE, the tree-structured Parzen estimator: tries what looks like the good trials and unlike the others."""

from __future__ import annotations

import bisect
import math
from typing import ClassVar

import numpy as np

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Params, Suggestion, Trial
from cargobike.search.encoding import Encoding, Floats
from cargobike.search.optimizer import Suggested
from cargobike.search.parzen import Parzen
from cargobike.search.randomsearch import RandomSearch
from cargobike.search.standing import LAST, Standing, standing

_GOOD_SHARE = 0.1
_MOST_GOOD = 25
_MOST_BAD = 1_000
"""So many bad trials are enough to know where not to look; more are thinned out evenly."""


class TPE(RandomSearch):
    """Models where good trials lie and where the others do, and tries where the first outweighs the second.

    The best tenth of the finished trials, 25 at most, are good, weighted by how much better they are than the rest. All
    others are bad: also failed and stopped trials, and those still running, so that parallel workers keep apart. On a
    finite space nothing is tried twice.

    Use it for up to some thousand trials of a function whose parameters interact, numbers and choices mixed, with
    conditions or without.

    Args:
        startup: How many trials must have finished before the model is asked.
        candidates: How many draws of the good model compete for each suggestion.
        multivariate: Whether parameters are modelled together; apart, each is chosen as if it were alone.
    """

    name: ClassVar[str] = "tpe"
    handles_objectives: ClassVar[bool] = False

    def __init__(self, startup: int = 10, candidates: int = 24, multivariate: bool = True) -> None:
        super().__init__()
        if startup < 1 or candidates < 1:
            raise InvalidInputError(f"startup={startup} and candidates={candidates} must be at least 1")
        self.startup = startup
        self.candidates = candidates
        self.multivariate = multivariate

    def initialize(self) -> None:
        """Forget everything learned."""
        super().initialize()
        self._encoding = Encoding(self.space)
        self._generator = np.random.default_rng(self.rng.getrandbits(64))
        self._rows = np.empty((64, self._encoding.width))
        self._ranking: list[tuple[Standing, int]] = []
        self._pending: dict[int, Floats] = {}
        self._known = 0

    def observe(self, trial: Trial) -> None:
        """Learn from a trial that ended; one that paused may still get better or worse."""
        self._notice()
        if not trial.state.is_final:
            return
        row = self._pending.pop(trial.number, None)
        if row is not None:
            self._learn(row, standing(trial, self.direction))

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return the most promising of some draws, or `None` when nothing is left to try."""
        if self.num_trials is not None and self._suggested >= self.num_trials:
            return None
        self._notice()
        params = self._modelled() if self._scored >= self.startup else None
        by = "model" if params is not None else "random"
        params = params or self._draw()
        if params is None:
            return None
        self._suggested += 1
        return Suggestion(params=params, info={"by": by})

    @property
    def _scored(self) -> int:
        """How many finished trials have a score."""
        return bisect.bisect_left(self._ranking, (LAST, -1))

    def _notice(self) -> None:
        """Take in the trials that were started since the last look, whoever suggested them."""
        while self._known in self.trials:
            row = self._encoding.try_row(self.trials[self._known].params)
            if row is not None:
                self._pending[self._known] = row
            self._known += 1

    def _learn(self, row: Floats, stands: Standing) -> None:
        index = len(self._ranking)
        if index == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[index] = row
        bisect.insort(self._ranking, (stands, index))

    def _modelled(self) -> Params | None:
        good, bad = self._models()
        rows = good.sample(self.candidates, self._generator)
        gains = good.log_density(rows) - bad.log_density(rows)
        ordered = rows[np.argsort(-gains, kind="stable")]
        if not self.multivariate:
            ordered = np.vstack([self._combined(rows, good, bad), ordered])
        for row in ordered:
            params = self._encoding.params(row)
            if self._remember(params):
                return params
        return None

    def _combined(self, rows: Floats, good: Parzen, bad: Parzen) -> Floats:
        """Put a row together from the best value of each column, as if the others did not matter."""
        best = np.empty(rows.shape[1])
        for column in range(rows.shape[1]):
            alone = np.full_like(rows, np.nan)
            alone[:, column] = rows[:, column]
            gains = good.log_density(alone) - bad.log_density(alone)
            best[column] = rows[np.argmax(np.where(np.isnan(rows[:, column]), -np.inf, gains)), column]
        return np.asarray(self._encoding.settle(best[None, :])[0])

    def _models(self) -> tuple[Parzen, Parzen]:
        count = min(math.ceil(_GOOD_SHARE * self._scored), _MOST_GOOD)
        chosen = [index for _, index in self._ranking[:count]]
        is_bad = np.ones(len(self._ranking), dtype=np.bool_)
        is_bad[chosen] = False
        others = np.flatnonzero(is_bad)
        if len(others) > _MOST_BAD:
            others = others[np.linspace(0, len(others) - 1, _MOST_BAD).astype(np.intp)]
        bad = np.vstack([self._rows[others], *self._pending.values()])
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
