"""Ask and tell: an optimizer for people who own their loop."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping

from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.records import IDLE, Decision, Direction, Params, Suggestion, Trial, TrialState, best_of
from cargobike.core.values.kinds import read_count, read_mapping, read_text
from cargobike.core.values.numbers import read_metrics, read_number, read_whole
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.registry import resolve_optimizer
from cargobike.search.spaces.space import Searchspace, Spec


class Search:
    """An optimizer in your own loop: ask what to try, try it wherever you like, tell what came of it.

    Ask as often as you like before telling: that is how to run several trials at once. Everything stays in this
    process and nothing is written; `experiment.launch` does both and starts the workers too.

    Args:
        space: What may be tried: a `Searchspace`, or a dict from which one is made.
        optimizer: A name, a class or an object, as for `experiment.launch`.
        direction: `"max"` or `"min"`.
        seed: The same seed and the same calls give the same suggestions; random if not given, and kept in `seed`.
        num_trials: How many trials will be asked for, if that is known; some optimizers plan with it.

    Example:
        >>> search = Search({"x": ("DOUBLE", [-1.0, 1.0])}, direction="min", seed=1)
        >>> for _ in range(20):
        ...     trial = search.ask()
        ...     search.tell(trial, trial.params["x"] ** 2)
        >>> search.best.value < 0.1
        True
    """

    def __init__(
        self,
        space: Searchspace | Mapping[str, Spec],
        optimizer: str | AbstractOptimizer | type[AbstractOptimizer] = "tpe",
        *,
        direction: Direction = "max",
        seed: int | None = None,
        num_trials: int | None = None,
    ) -> None:
        if direction not in ("max", "min"):
            raise InvalidInputError(f"direction={direction!r}: must be 'max' or 'min'")
        if space is None:
            raise InvalidInputError('There is nothing to try: give a space, such as {"x": ("DOUBLE", [0, 1])}.')
        if num_trials is not None:
            num_trials = read_count("num_trials", num_trials, least=1)
        self.space = space if isinstance(space, Searchspace) else Searchspace(space)
        self.direction: Direction = direction
        self.seed = random.SystemRandom().randrange(2**31) if seed is None else read_count("seed", seed)
        self.optimizer = resolve_optimizer(optimizer)
        self.optimizer.setup(self.space, num_trials=num_trials, direction=direction, seed=self.seed)
        self.optimizer.initialize()
        self.trials: list[Trial] = []
        """Every trial asked for, in order."""
        self.is_done = False
        """Whether there is nothing left to try, and never will be."""
        self._limit = self.optimizer.num_trials
        self._milestones: dict[int, Suggestion] = {}
        self._last: Trial | None = None

    @property
    def best(self) -> Trial | None:
        """The completed trial with the best value, `None` while there is none."""
        return best_of(self.trials, self.direction)

    def ask(self) -> Trial | None:
        """Return a trial to run: a new one, or one that a report had paused.

        Returns:
            A trial; `None` if there is nothing to try, for good if `is_done`, else until another trial is told.
        """
        if self.is_done:
            return None
        answer = self.optimizer.get_suggestion(self._last)
        self._last = None
        if answer is None or answer == IDLE:
            self.is_done = answer is None
            return None
        if isinstance(answer, Trial):
            answer = Suggestion(params=answer.params, info=answer.info)
        elif isinstance(answer, dict):
            answer = Suggestion(params=answer)
        assert isinstance(answer, Suggestion)
        if answer.resume is not None:
            trial = self.trials[answer.resume]
            trial.info |= answer.info
        elif self._limit is not None and len(self.trials) >= self._limit:
            self.is_done = all(trial.state is not TrialState.PAUSED for trial in self.trials)
            return None
        else:
            trial = self._new(answer.params, answer)
        trial.attempts += 1
        trial.state = TrialState.RUNNING
        self._milestones[trial.number] = answer
        return trial

    def tell(
        self,
        trial: Trial | int,
        value: float | None = None,
        *,
        metrics: Mapping[str, float] | None = None,
        error: str | BaseException | None = None,
    ) -> None:
        """Say what came of a trial: its score, or why it failed.

        Args:
            trial: The trial or its number.
            value: The score; may be NaN or infinite, which never wins.
            metrics: Other numbers to keep with it.
            error: Why there is no score; any text, or an exception, makes the trial a failed one.

        Raises:
            InvalidInputError: If both or none of `value` and `error` are given, or the trial has ended already.
            NotFoundError: If there is no such trial.
        """
        told = self._open(trial)
        if (value is None) == (error is None):
            raise InvalidInputError(f"tell of trial {told.number}: give either value=… or error=…")
        score = None if value is None else read_number(value, "value")
        named = read_metrics(read_mapping("metrics", metrics or {}, "{'loss': 0.3}"))
        reason = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error
        told.error = None if reason is None else read_text("error", reason)
        told.metrics, told.value = named, score
        self._end(told, TrialState.FAILED if error is not None else TrialState.COMPLETED)

    def report(self, trial: Trial | int, value: float, step: int) -> Decision:
        """Say how far a running trial has come, for optimizers that stop or pause trials on the way.

        Args:
            trial: The trial or its number.
            value: The score so far.
            step: How far it has come, counted as the train function does, such as epochs.

        Returns:
            `Decision.CONTINUE`; `Decision.STOP`: the trial has ended, do not tell it; `Decision.PAUSE`: keep its state,
            `ask` may return the trial again, to go on from there.

        Raises:
            InvalidInputError: If the trial has ended already.
            NotFoundError: If there is no such trial.
        """
        told = self._open(trial)
        told.curve.add(read_whole(step), read_number(value, "value"))
        milestones = self._milestones[told.number].milestones
        if not (self.optimizer.wants_every_report or milestones == "every" or step in milestones):
            return Decision.CONTINUE
        shown = self._show(told)
        decision = self.optimizer.judge(shown, step, list(self.optimizer.trials.values()))
        if decision is not Decision.CONTINUE:
            self._end(told, TrialState.STOPPED if decision is Decision.STOP else TrialState.PAUSED)
        return decision

    def add(self, params: Params, value: float) -> Trial:
        """Add a trial that was not asked for, such as one that was run before.

        Raises:
            SpaceError: If the parameters do not lie in the space.
        """
        score = read_number(value, "value")
        trial = self._new(self.space.validate(params), Suggestion(params=params))
        trial.value = score
        self._end(trial, TrialState.COMPLETED)
        return trial

    def _new(self, params: Params, suggestion: Suggestion) -> Trial:
        trial = Trial(params, number=len(self.trials), info=dict(suggestion.info))
        self.trials.append(trial)
        self._show(trial)
        return trial

    def _open(self, trial: Trial | int) -> Trial:
        number = trial.number if isinstance(trial, Trial) else trial
        if type(number) is not int:
            raise InvalidInputError(f"a trial, or its number, is needed; {number!r} was given")
        if not 0 <= number < len(self.trials):
            raise NotFoundError(f"there is no trial {number}; {len(self.trials)} have been asked for", wanted=number)
        known = self.trials[number]
        if isinstance(trial, Trial) and trial.params != known.params:
            raise InvalidInputError(
                f"this trial {number} has the parameters {trial.params}, and trial {number} of this search "
                f"{known.params}: it was asked from another search, or changed"
            )
        if known.state is not TrialState.RUNNING:
            raise InvalidInputError(f"trial {number} is not running but {known.state}")
        return known

    def _end(self, trial: Trial, state: TrialState) -> None:
        trial.state = state
        shown = self._show(trial)
        if state.is_final:
            self.optimizer.final_store.append(shown)
        self.optimizer.observe(shown)
        self._last = shown

    def _show(self, trial: Trial) -> Trial:
        """Give the optimizer a copy, which does not change behind its back."""
        shown = copy.copy(trial)
        shown.params, shown.curve = copy.deepcopy(trial.params), copy.deepcopy(trial.curve)
        self.optimizer.trials[trial.number] = shown
        return shown
