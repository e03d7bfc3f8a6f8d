"""Extended: a search that goes on in a changed space, by a fresh optimizer that learns from what was tried before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from cargobike.core.ids import derived_seed
from cargobike.core.records import IDLE, Decision, Direction, Trial, TrialState
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested, as_suggestion
from cargobike.search.spaces.space import Searchspace


class Extended(AbstractOptimizer):
    """Asks one optimizer until the space changes, then the next one, which learns from the trials so far.

    Optimizers are made for one space: their models, sequences and populations have its columns. So each space has an
    optimizer of its own, whose trials are numbered from 0; before the first change nothing differs from the first
    optimizer alone. Trials of an earlier space that end later are learned from too. Those that paused are not resumed.

    Args:
        first: The optimizer for the first space.
        later: One more of the same kind for each change that there was or will be.
    """

    name: ClassVar[str] = "extended"

    def __init__(self, first: AbstractOptimizer, later: Sequence[AbstractOptimizer]) -> None:
        self._all = (first, *later)
        self._current = first

    def setup(self, space: Searchspace, *, num_trials: int | None, direction: Direction, seed: int) -> None:
        """Set the first optimizer up as if it were alone."""
        super().setup(space, num_trials=num_trials, direction=direction, seed=seed)
        self._seed = seed
        self._changes = self._first = 0
        self._past: Sequence[Trial] = ()
        self._defaults: Mapping[str, Any] = {}
        self._current = self._all[0]
        self._set_up(self._current, seed)

    def _set_up(self, inner: AbstractOptimizer, seed: int) -> None:
        inner.deterministic, inner.objectives = self.deterministic, self.objectives
        inner.setup(self.space, num_trials=self._left, direction=self.direction, seed=seed)

    def initialize(self) -> None:
        """Start with the first space."""
        self._current.trials, self._current.final_store = self.trials, self.final_store
        self._current.initialize()

    def change(self, space: Searchspace, defaults: Mapping[str, Any]) -> None:
        """Go on in another space.

        Args:
            space: What may be tried from now on.
            defaults: Values that the trials so far had for parameters that are new.
        """
        self._changes += 1
        self.space, self._defaults = space, dict(defaults)
        self._first = len(self.trials)
        self._current = self._all[self._changes]
        self._set_up(self._current, derived_seed(self._seed, "space", self._changes))
        self._current.initialize()
        self._learn([*self._past, *self.final_store])

    @property
    def _left(self) -> int | None:
        return None if self.num_trials is None else max(0, self.num_trials - self._first)

    def learn_from(self, trials: Sequence[Trial]) -> None:
        """Learn from earlier experiments, now and after each change."""
        self._past = tuple(trials)
        self._current.learn_from(trials)

    def _learn(self, trials: Sequence[Trial]) -> None:
        ended = (trial for trial in trials if trial.state in (TrialState.COMPLETED, TrialState.STOPPED))
        fitting = [one for trial in ended if (one := fitted(trial, self.space, self._defaults)) is not None]
        if fitting:
            self._current.learn_from(fitting)

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return what the present optimizer suggests, in the numbers of the experiment."""
        inner = self._current
        self._notice()
        inner.num_trials = self._left
        after = None if trial is None or trial.number < self._first else inner.trials.get(trial.number - self._first)
        answer = inner.get_suggestion(after)
        if answer is None or answer == IDLE or not self._first:
            return answer
        answer = as_suggestion(answer)
        return msgspec.structs.replace(
            answer,
            resume=None if answer.resume is None else answer.resume + self._first,
            copy_checkpoint_of=None if answer.copy_checkpoint_of is None else answer.copy_checkpoint_of + self._first,
        )

    def _notice(self) -> None:
        """Show the present optimizer the trials of its space that were begun since the last call."""
        inner = self._current
        while self._first and (number := self._first + len(inner.trials)) in self.trials:
            inner.trials[number - self._first] = self._shifted(self.trials[number])

    def _shifted(self, trial: Trial) -> Trial:
        return msgspec.structs.replace(trial, number=trial.number - self._first) if self._first else trial

    def observe(self, trial: Trial) -> None:
        """Show a trial to the present optimizer; one of an earlier space as something to learn from."""
        self._notice()
        if trial.number < self._first:
            self._learn([trial])
            return
        shifted = self._shifted(trial)
        if self._first:
            self._current.trials[shifted.number] = shifted
            if shifted.state.is_final:
                self._current.final_store.append(shifted)
        self._current.observe(shifted)

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        """Ask the present optimizer; a trial of an earlier space goes on to its end."""
        self._notice()
        self.judged_by = self._current.judged_by or type(self._current).__name__
        if trial.number < self._first:
            return Decision.CONTINUE
        if not self._first:
            return self._current.judge(trial, step, trials)
        shifted = self._shifted(trial)
        self._current.trials[shifted.number] = shifted
        return self._current.judge(
            shifted, step, [self._shifted(other) for other in trials if other.number >= self._first]
        )

    def finalize_experiment(self, trials: Sequence[Trial]) -> None:
        """Let the present optimizer look back at the trials of its space."""
        self._current.finalize_experiment([self._shifted(trial) for trial in trials if trial.number >= self._first])

    @property
    def wants_every_report(self) -> bool:
        """Whether one of the optimizers wants to see each report."""
        return any(inner.wants_every_report for inner in self._all)


def fitted(trial: Trial, space: Searchspace, defaults: Mapping[str, Any]) -> Trial | None:
    """Return a trial as one of another space, without what its optimizer noted; `None` if it does not lie there."""
    missing = {name: value for name, value in defaults.items() if name not in trial.params}
    params = {**trial.params, **missing}
    if not space.contains(params):
        return None
    return msgspec.structs.replace(trial, params=space.validate(params), number=-1, info={})
