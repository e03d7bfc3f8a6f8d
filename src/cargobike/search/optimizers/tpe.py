"""TPE, the tree-structured Parzen estimator: tries what looks like the good trials and unlike the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Params, Suggestion, Trial
from cargobike.core.values.kinds import is_number
from cargobike.search.models.contrast import Contrast
from cargobike.search.models.fronts import FrontContrast, losses_of
from cargobike.search.models.standing import standing
from cargobike.search.optimizers.optimizer import Suggested
from cargobike.search.optimizers.sobol import Sobol
from cargobike.search.spaces.encoding import Encoding, Floats


class TPE(Sobol):
    """Models where good trials lie and where the others do, and tries where the first outweighs the second.

    Failed and stopped trials count as bad, and so do those that still run, so that parallel workers keep apart. On a
    finite space nothing is tried twice. With several objectives, good trials are those that no other
    beats in all of them.

    Use it for up to some thousand trials of a function whose parameters interact, numbers and choices mixed, with
    conditions or without.

    Args:
        startup: How many trials must have a score before the model is asked; until then they are Sobol points.
        candidates: How many draws of the good model compete for each suggestion.
        multivariate: Whether parameters are modelled together; apart, each is chosen as if it were alone.
    """

    name: ClassVar[str] = "tpe"
    handles_objectives: ClassVar[bool] = True

    def __init__(self, startup: int = 8, candidates: int = 24, multivariate: bool = True) -> None:
        super().__init__()
        if not (is_number(startup, lambda number: number >= 1) and is_number(candidates, lambda number: number >= 1)):
            raise InvalidInputError(f"startup={startup!r} and candidates={candidates!r} must be at least 1")
        self.startup = startup
        self.candidates = candidates
        self.multivariate = multivariate

    def initialize(self) -> None:
        """Forget everything learned."""
        super().initialize()
        self._encoding = Encoding(self.space)
        self._generator = np.random.default_rng(self.rng.getrandbits(64))
        self._contrast = (
            FrontContrast(self._encoding, len(self.objectives)) if self.objectives else Contrast(self._encoding)
        )
        self._pending: dict[int, Floats] = {}
        self._known = 0
        self._out: deque[tuple[Params, Floats]] = deque()

    def observe(self, trial: Trial) -> None:
        """Learn from a trial that ended; one that paused may still get better or worse."""
        self._notice()
        row = self._pending.pop(trial.number, None) if trial.state.is_final else None
        if row is not None:
            self._learn(row, trial)

    def learn_from(self, trials: Sequence[Trial]) -> None:
        """Count trials of earlier experiments like those of this one."""
        super().learn_from(trials)
        for trial in trials:
            row = self._encoding.try_row(trial.params)
            if row is not None:
                self._learn(row, trial)

    def _learn(self, row: Floats, trial: Trial) -> None:
        if isinstance(self._contrast, FrontContrast):
            self._contrast.learn_losses(row, losses_of(trial, self), trial.violation)
        else:
            self._contrast.learn(row, standing(trial, self.direction))

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return the most promising of some draws, or `None` when nothing is left to try."""
        if self.num_trials is not None and self._suggested >= self.num_trials:
            return None
        self._notice()
        params, by = self._modelled(), "model"
        if params is None:
            params, by = self._next(), "sobol"
        if params is None:
            return None
        self._suggested += 1
        return Suggestion(params=params, info={"by": by})

    def _notice(self) -> None:
        """Add the trials that were started since the last call, also those that it did not suggest."""
        while self._known in self.trials:
            params = self.trials[self._known].params
            is_ours = bool(self._out) and self._out[0][0] == params
            row = self._out.popleft()[1] if is_ours else self._encoding.try_row(params)
            if row is not None:
                self._pending[self._known] = row
                self._remember(params)
            self._known += 1

    def _modelled(self) -> Params | None:
        if len(self._contrast) < self.startup:
            return None
        pending = np.array(list(self._pending.values())) if self._pending else None
        for row in self._contrast.candidates(self.candidates, pending, self._generator, together=self.multivariate):
            params = self._encoding.params(row)
            if self._remember(params):
                self._out.append((params, self._encoding.row(params)))
                return params
        return None
