"""Halving for functions that are told how long to train: the best of many short trainings are given longer ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from cargobike.core.errors import InvalidInputError, SpaceError, nearest
from cargobike.core.records import IDLE, Params, Suggestion, Trial, TrialState
from cargobike.core.values.kinds import is_number
from cargobike.search.models.rungs import Rung, levels_of
from cargobike.search.models.sampler import RandomSampler, Sampler
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.spaces.parameter import Parameter
from cargobike.search.spaces.space import Searchspace
from cargobike.search.spaces.values import NotPlainError

_MOST_RUNGS = 20


class Bracket(msgspec.Struct, frozen=True):
    """One course of halving.

    Attributes:
        counts: How many trials get each budget, the smallest budget first.
        budgets: The budgets.
    """

    counts: tuple[int, ...]
    budgets: tuple[int, ...]


class Budgeted(AbstractOptimizer):
    """Successive halving over a parameter of the train function that says how long to train.

    `ASHA` and `Hyperband` look at what a function reports, and pause it. This one is for functions that take the length
    of the training as an argument: a trial is run with a small budget, and one of the best among those is run again, as
    a new trial, with a larger one. It begins with the checkpoint of the trial before, if that has saved any. A trial
    with a larger budget starts as soon as enough smaller ones have ended; none waits for a whole round.

    Args:
        brackets: Which budgets there are, and how many trials get each.
        reduction_factor: One in so many is given the next budget.
        parameter: Which parameter is the budget; the space holds it, with all budgets.
        sampler: Where new parameters come from; random draws by default.

    Raises:
        InvalidInputError: If something cannot be used; lists all mistakes.
    """

    name: ClassVar[str] = "budgeted"

    def __init__(
        self,
        brackets: Sequence[Bracket],
        reduction_factor: float,
        *,
        parameter: str = "budget",
        sampler: Sampler | None = None,
    ) -> None:
        self.brackets = tuple(brackets)
        self.reduction_factor = reduction_factor
        self.parameter = parameter
        self.sampler: Sampler = sampler or RandomSampler()
        self._check()
        self.preset_num_trials = sum(sum(bracket.counts) for bracket in self.brackets)

    def _check(self) -> None:
        mistakes = []
        if not self.brackets:
            mistakes.append("brackets is empty; give at least one Bracket(counts, budgets)")
        if not is_number(self.reduction_factor, lambda number: number > 1):
            mistakes.append(f"reduction_factor={self.reduction_factor!r}: give a number above 1, such as 3")
        for bracket in self.brackets:
            if len(bracket.counts) != len(bracket.budgets) or not bracket.counts:
                mistakes.append(f"{bracket!r}: give as many counts as budgets, and at least one")
            elif any(a >= b for a, b in zip(bracket.budgets, bracket.budgets[1:], strict=False)):
                mistakes.append(f"{bracket!r}: budgets must rise")
            elif min(bracket.counts) < 1:
                mistakes.append(f"{bracket!r}: counts must be at least 1")
        if mistakes:
            raise InvalidInputError("Trials cannot be halved like this:", mistakes)

    @property
    def budgets(self) -> tuple[int, ...]:
        """All budgets, the smallest first: the choices of the parameter in the space."""
        return tuple(sorted({budget for bracket in self.brackets for budget in bracket.budgets}))

    def initialize(self) -> None:
        """Forget everything; raises `SpaceError` if the space does not hold the budgets."""
        there = self.space.parameters.get(self.parameter)
        if there is None or not all(_holds(there, budget) for budget in self.budgets):
            hint = nearest(self.parameter, self.space.names)
            raise SpaceError(f"the space must hold {self.parameter}={list(self.budgets)}, the budgets.{hint}")
        described = [entry for entry in self.space.describe() if entry["name"] != self.parameter]
        self.sampler.setup(Searchspace.from_description(described), direction=self.direction, rng=self.rng)
        self._courses = [_Course(bracket, self.reduction_factor, self) for bracket in self.brackets]
        self._active = 0
        self._nothing_new = False

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Give one of the best a larger budget, the largest first; else start a new one."""
        promoted = next((found for course in self._courses if (found := course.promote()) is not None), None)
        if promoted is None:
            promoted = self._begin()
        if promoted is None:
            return IDLE if self._active else None
        self._active += 1
        return promoted

    def observe(self, trial: Trial) -> None:
        """Enter a trial that ended among those of its budget."""
        if not trial.state.is_final:
            return
        self._active -= 1
        course = self._courses[int(trial.info.get("bracket", 0))]
        course.enter(trial)
        if trial.state is TrialState.COMPLETED and trial.value is not None:
            params = {name: value for name, value in trial.params.items() if name != self.parameter}
            shown = msgspec.structs.replace(trial, params=params)
            self.sampler.observe(shown, int(trial.params[self.parameter]), trial.value)

    def _begin(self) -> Suggestion | None:
        index = next((i for i, course in enumerate(self._courses) if course.has_room), None)
        params = self.sampler.suggest() if index is not None and not self._nothing_new else None
        if index is None or params is None:
            if index is not None:  # a finite space that is used up: those that were started compete for what there is
                self._nothing_new = True
                for course in self._courses:
                    course.close()
                return next((found for course in self._courses if (found := course.promote()) is not None), None)
            return None
        return self._courses[index].begin(index, params)


class _Course:
    """One bracket on its way."""

    def __init__(self, bracket: Bracket, reduction_factor: float, owner: Budgeted) -> None:
        self._bracket = bracket
        self._factor = reduction_factor
        self._parameter = owner.parameter
        self._rungs = [Rung(budget, reduction_factor, owner.direction) for budget in bracket.budgets]
        self._started = [0] * len(self._rungs)
        self._ended = [0] * len(self._rungs)
        self._known: dict[int, Trial] = {}
        self._is_closed = False

    @property
    def has_room(self) -> bool:
        return not self._is_closed and self._started[0] < self._bracket.counts[0]

    def close(self) -> None:
        self._is_closed = True

    def begin(self, index: int, params: Params) -> Suggestion:
        self._started[0] += 1
        return Suggestion(
            params={**params, self._parameter: self._bracket.budgets[0]}, info={"bracket": index, "rung": 0}
        )

    def enter(self, trial: Trial) -> None:
        rung = int(trial.info.get("rung", 0))
        self._ended[rung] += 1
        self._known[trial.number] = trial
        if trial.state is TrialState.COMPLETED and trial.value is not None and math.isfinite(trial.value):
            self._rungs[rung].add(trial.number, trial.value)
            self._rungs[rung].wait(trial.number)

    def promote(self) -> Suggestion | None:
        """Return the next trial with a larger budget, the largest first; `None` if there is none yet."""
        for rung in range(len(self._rungs) - 2, -1, -1):
            number = self._rungs[rung].best_waiting()
            if number is None or self._started[rung + 1] >= self._bracket.counts[rung + 1]:
                continue
            # Those that went on early may not be the best in the end: places are kept for those that come later.
            has_place = self._started[rung + 1] < int(len(self._rungs[rung]) / self._factor)
            if self._is_done(rung) or (has_place and self._rungs[rung].is_promotable(number)):
                return self._again(number, rung + 1)
        return None

    def _is_done(self, rung: int) -> bool:
        """Tell whether no more trials will come to a rung."""
        is_full = self._started[rung] >= self._bracket.counts[rung]
        no_more = self._is_closed if rung == 0 else self._is_done(rung - 1) and not self._may_come(rung)
        return (is_full or no_more) and self._ended[rung] == self._started[rung]

    def _may_come(self, rung: int) -> bool:
        return self._rungs[rung - 1].best_waiting() is not None

    def _again(self, number: int, rung: int) -> Suggestion:
        self._rungs[rung - 1].go_on(number)
        self._started[rung] += 1
        before = self._known[number]
        return Suggestion(
            params={**before.params, self._parameter: self._bracket.budgets[rung]},
            copy_checkpoint_of=number if before.has_checkpoint else None,
            info={**before.info, "rung": rung, "promoted": number},
        )


def halving_bracket(num_trials: int, reduction_factor: float, resource_min: int, resource_max: int) -> Bracket:
    """Return the bracket in which so many trials, longer ones included, get as far as they can.

    There are only as many budgets as enough trials can compete for, and the last one is always `resource_max`.

    Example:
        >>> halving_bracket(7, 2, 1, 4)
        Bracket(counts=(4, 2, 1), budgets=(1, 2, 4))
    """
    levels = [*levels_of(resource_min, reduction_factor, resource_max, _MOST_RUNGS), resource_max]
    first = num_trials
    while sum(counts := _counts(first, reduction_factor, len(levels))) > num_trials:
        first -= 1
    return Bracket(tuple(counts), (*levels[: len(counts) - 1], resource_max))


def hyperband_brackets(min_budget: int, max_budget: int, reduction_factor: int, count: int) -> list[Bracket]:
    """Return the brackets of Hyperband in their order: from many short trainings to few long ones, and again.

    Example:
        >>> hyperband_brackets(1, 9, 3, 2)
        [Bracket(counts=(9, 3, 1), budgets=(1, 3, 9)), Bracket(counts=(3, 1), budgets=(3, 9))]
    """
    rungs = int(math.log(max_budget / min_budget, reduction_factor) + 1e-9) + 1
    budgets = [int(max_budget * float(reduction_factor) ** -level) for level in reversed(range(rungs))]
    brackets = []
    for index in range(count):
        last = rungs - 1 - index % rungs
        first = rungs // (last + 1) * reduction_factor**last
        counts = [max(int(first / reduction_factor**level), 1) for level in range(last + 1)]
        brackets.append(Bracket(tuple(counts), tuple(budgets[-last - 1 :])))
    return brackets


def _holds(parameter: Parameter, value: int) -> bool:
    try:
        return parameter.clean(value) == value
    except NotPlainError:
        return False


def _counts(first: int, reduction_factor: float, most: int) -> list[int]:
    counts = [first]
    while len(counts) < most and int(counts[-1] / reduction_factor) >= 1:
        counts.append(int(counts[-1] / reduction_factor))
    return counts
