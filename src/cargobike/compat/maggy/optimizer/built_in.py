"""The optimizers that came with Maggy: each knows which of ours it is."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from cargobike.compat.maggy.optimizer.abstractoptimizer import AbstractOptimizer
from cargobike.compat.maggy.trial import Trial
from cargobike.core.records import IDLE, Direction, Suggestion, TrialState
from cargobike.core.records import Trial as OwnTrial
from cargobike.search.models.sampler import Sampler
from cargobike.search.optimizers.optimizer import AbstractOptimizer as Own
from cargobike.search.optimizers.optimizer import as_suggestion


class BuiltIn(AbstractOptimizer):
    """An optimizer that is one of ours under Maggy's name.

    Our driver runs ours directly. Where a user's class builds on this one, its methods ask ours.
    """

    @abstractmethod
    def own(self) -> Own:
        """Return the optimizer of ours."""

    def sampler(self) -> Sampler | None:
        """Return where new parameters come from if a pruner decides about budgets; `None` for random draws."""
        return None

    def initialize(self) -> None:
        """Set up ours."""
        self._own = self.own()
        direction: Direction = "min" if self.direction == "min" else "max"
        self._own.setup(self.searchspace.as_space(), num_trials=self.num_trials, direction=direction, seed=0)
        self._own.initialize()
        self._numbers: dict[str, int] = {}

    def get_suggestion(self, trial: Trial | None = None) -> Any:
        """Ask ours, after telling it what became of a trial."""
        if trial is not None and trial.trial_id in self._numbers:
            number = self._numbers[trial.trial_id]
            value = trial.final_metric
            ended = OwnTrial(trial.params, number=number, state=TrialState.COMPLETED, value=value)
            self._own.trials[number] = ended
            self._own.final_store.append(ended)
            self._own.observe(ended)
        if self.num_trials is not None and len(self._numbers) >= self.num_trials:
            return None
        answer = self._own.get_suggestion()
        if answer is None or answer == IDLE:
            return answer
        suggestion: Suggestion = as_suggestion(answer)
        made = self.create_trial(dict(suggestion.params), "random")
        number = len(self._numbers)
        self._numbers[made.trial_id] = number
        self._own.trials[number] = OwnTrial(suggestion.params, number=number, info=suggestion.info)
        return made

    def finalize_experiment(self, trials: list[Trial]) -> None:
        """Do nothing."""
