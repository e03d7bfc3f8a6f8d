"""Lets our driver run an optimizer that was written for Maggy."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from cargobike.compat.maggy.optimizer.abstractoptimizer import AbstractOptimizer as Theirs
from cargobike.compat.maggy.running.translated import as_theirs, update
from cargobike.compat.maggy.searchspace import Searchspace
from cargobike.compat.maggy.trial import Trial as TheirTrial
from cargobike.core.errors import OptimizerError
from cargobike.core.records import IDLE, Direction, Suggestion, Trial, TrialState
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.spaces.space import Searchspace as Space
from cargobike.search.spaces.values import plain

_NUMBER = "maggy"
"""Under what `Trial.info` holds which of the optimizer's trials it is."""


class Driven(AbstractOptimizer):
    """An optimizer of Maggy's contract inside one of ours.

    Each trial that ended is handed to `get_suggestion` once, in the order of the ends. One that failed leaves
    `trial_store` and does not come to `final_store`: in Maggy it would have been the end of the experiment.

    Args:
        theirs: The user's optimizer.
        searchspace: The space, as it reads it.
    """

    name: ClassVar[str] = "maggy"
    is_endless: ClassVar[bool] = True

    def __init__(self, theirs: Theirs, searchspace: Searchspace) -> None:
        self.theirs = theirs
        self.searchspace = searchspace
        check = getattr(type(theirs), "early_check", None)
        self.judges_steps = check is not None

    def setup(self, space: Space, *, num_trials: int | None, direction: Direction, seed: int) -> None:
        """Give the user's optimizer what Maggy's driver gave."""
        super().setup(space, num_trials=num_trials, direction=direction, seed=seed)
        self.theirs.searchspace = self.searchspace.seeded(self.rng.getrandbits(64))
        self.theirs.num_trials = self.num_trials
        self.theirs.direction = direction
        self.theirs.trial_store = {}
        self.theirs.final_store = []
        self._made: list[TheirTrial] = []
        self._ended: deque[TheirTrial] = deque()

    def initialize(self) -> None:
        """Call the user's `initialize`."""
        self.theirs.initialize()

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Ask the user's optimizer, with the next trial that ended."""
        answer: Any = self.theirs.get_suggestion(self._ended.popleft() if self._ended else None)
        if answer is None or answer == IDLE:
            return IDLE if answer is not None else None
        made = TheirTrial(answer) if isinstance(answer, dict) else answer
        if not isinstance(made, TheirTrial):
            raise OptimizerError(
                f"get_suggestion returned {answer!r} ({type(answer).__name__}); allowed are a maggy.trial.Trial, "
                "'IDLE', or None when there is nothing more to try"
            )
        made.status = TheirTrial.SCHEDULED
        self.theirs.trial_store[made.trial_id] = made
        self._made.append(made)
        params = {name: plain(value) for name, value in made.params.items()}
        return Suggestion(params=params, info={_NUMBER: len(self._made) - 1})

    def observe(self, trial: Trial) -> None:
        """Move a trial that ended from one store to the other."""
        theirs = self._theirs_of(trial)
        if theirs is None or not trial.state.is_final:
            return
        update(theirs, trial)
        if self.theirs.trial_store.get(theirs.trial_id) is theirs:
            del self.theirs.trial_store[theirs.trial_id]
        if trial.state is not TrialState.FAILED:
            self.theirs.final_store.append(theirs)
            self._ended.append(theirs)

    def early_check(
        self, to_check: Sequence[Trial], trials: Sequence[Trial], direction: Direction
    ) -> Iterable[Trial | int]:
        """Ask the user's optimizer, if it has this method, as slides showed it."""
        check: Any = getattr(self.theirs, "early_check", None)
        if check is None:
            return ()
        asked = {as_theirs(trial).trial_id: trial.number for trial in to_check}
        chosen = check([as_theirs(trial) for trial in to_check], [as_theirs(trial) for trial in trials], direction)
        if chosen is None:
            return ()
        several = [chosen] if isinstance(chosen, str | TheirTrial) else list(chosen)
        ids = [one.trial_id if isinstance(one, TheirTrial) else one for one in several]
        return [asked[one] for one in ids if one in asked]

    def finalize_experiment(self, trials: Sequence[Trial]) -> None:
        """Call the user's `finalize_experiment`."""
        self.theirs.finalize_experiment([self._theirs_of(trial) or as_theirs(trial) for trial in trials])

    def _theirs_of(self, trial: Trial) -> TheirTrial | None:
        number = trial.info.get(_NUMBER)
        return self._made[number] if isinstance(number, int) and number < len(self._made) else None
