"""Differential evolution: a small population, whose members are replaced one by one by better mixtures of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Params, Suggestion, Trial
from cargobike.core.values.kinds import unfit
from cargobike.search.models.standing import LAST, Standing, standing
from cargobike.search.optimizers.optimizer import Suggested
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.spaces.encoding import Encoding, Floats

_WEIGHTS = (0.3, 0.9)
"""Between which the weight of a difference is drawn: large ones explore, small ones refine."""
_SURPRISE = 0.05
"""How often a choice that the whole population agrees on is drawn anew, so that none is lost for good."""
FEWEST = 4
"""One who is challenged and three to mix."""
_TRIES = 10
"""Mixtures that may turn out to have been tried before a random draw takes their place."""

_BROKEN = 10
"""Mixtures that may break constraints before the nearest place that keeps them is taken."""


@dataclass(slots=True)
class Member:
    """One place in the population.

    Attributes:
        genes: A complete row; where a parameter does not exist, a gene is kept for the day when it does.
        stands: How good it is.
    """

    genes: Floats
    stands: Standing


class DifferentialEvolution(RandomSearch):
    """Keeps a population of good trials and tries mixtures: a member, pulled to the best, plus a difference of two.

    Asynchronous: there are no generations. Whenever a worker is free, the next place of the population is challenged
    by a mixture of other members, and the better of the two keeps the place. A challenger that fails is
    forgotten; a place whose first trial failed gets another random one.

    Use it where a model does not pay: cheap trials by the thousand, scores that jump, many parameters.

    Args:
        population: How many places there are, at least 4. More explore longer: 10 suit some hundred trials.
        crossover: Share of the genes that a challenger takes from the mixture, the rest from the member it challenges.
    """

    name: ClassVar[str] = "de"
    handles_objectives: ClassVar[bool] = False

    def __init__(self, population: int = 10, crossover: float = 0.9) -> None:
        super().__init__()
        mistakes = unfit(
            ("population", population, lambda number: number >= FEWEST, f"a mixture needs {FEWEST} members at least"),
            ("crossover", crossover, lambda number: 0 <= number <= 1, "must lie in [0, 1]"),
        )
        if mistakes:
            raise InvalidInputError("this differential evolution cannot be made:", mistakes)
        self.population = population
        self.crossover = crossover

    def initialize(self) -> None:
        """Start with an empty population."""
        super().initialize()
        self._encoding = Encoding(self.space)
        self._mixer = Mixer(self._encoding, self.crossover, np.random.default_rng(self.rng.getrandbits(64)))
        self._members: list[Member | None] = [None] * self.population
        self._next = 0
        self._empty = list(range(self.population))

    def observe(self, trial: Trial) -> None:
        """Give the trial the place it challenged if it beats the holder."""
        if not trial.state.is_final:
            return
        place = trial.info.get("place")
        row = self._encoding.try_row(trial.params)
        if not isinstance(place, int) or not 0 <= place < self.population:
            place = self._weakest()
        stands = standing(trial, self.direction)
        holder = self._members[place]
        if row is None or stands == LAST:
            if holder is None and place not in self._empty:
                self._empty.append(place)
            return
        if holder is None or stands <= holder.stands:
            self._members[place] = Member(self._mixer.fill(row), stands)

    def learn_from(self, trials: Sequence[Trial]) -> None:
        """Begin with the best trials of earlier experiments as the population."""
        super().learn_from(trials)
        scored = [(standing(trial, self.direction), self._encoding.try_row(trial.params)) for trial in trials]
        scored.sort(key=lambda pair: pair[0])
        for stands, row in scored:
            if row is not None and stands != LAST and self._empty:
                self._members[self._empty.pop(0)] = Member(self._mixer.fill(row), stands)

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return a member of the first population, or a challenger; `None` when nothing is left to try."""
        if self.num_trials is not None and self._suggested >= self.num_trials:
            return None
        place, by, params = self._next_place(), "random", None
        if self._members[place] is not None:
            params, by = self._challenger(place), "mixture"
        if params is None:
            params, by = self._draw(), "random"
        if params is None:
            return None
        self._suggested += 1
        return Suggestion(params=params, info={"by": by, "place": place})

    def _next_place(self) -> int:
        """Return an empty place, or the next of those that can be challenged, in turns."""
        if self._empty:
            return self._empty.pop(0)
        held = sum(member is not None for member in self._members)
        for _ in range(self.population):
            place, self._next = self._next, (self._next + 1) % self.population
            if held < FEWEST or self._members[place] is not None:
                break
        return place

    def _weakest(self) -> int:
        def badness(place: int) -> Standing:
            member = self._members[place]
            return LAST if member is None else member.stands

        return max(range(self.population), key=badness)

    def _challenger(self, place: int) -> Params | None:
        """Return a mixture that was not tried before, or `None`."""
        holder = self._members[place]
        others = [m for position, m in enumerate(self._members) if m is not None and position != place]
        if holder is None or len(others) < FEWEST - 1:
            return None
        best = min([holder, *others], key=lambda member: member.stands)
        for _ in range(_TRIES):
            params = self._mixer.mixture(holder.genes, best.genes, [other.genes for other in others])
            if self._remember(params):
                return params
        return None


class Mixer:
    """Mixes rows: a member, pulled to the best, plus a weighted difference of two others.

    Args:
        encoding: Says what the columns are.
        crossover: Share of the genes that a challenger takes from the mixture.
        generator: Source of randomness.
    """

    def __init__(self, encoding: Encoding, crossover: float, generator: np.random.Generator) -> None:
        self._encoding = encoding
        self._crossover = crossover
        self._generator = generator

    def fill(self, row: Floats) -> Floats:
        """Return complete genes: random ones where a parameter does not exist."""
        return np.where(np.isnan(row), self._generator.random(len(row)), row)

    def mixture(self, holder: Floats, best: Floats, others: Sequence[Floats]) -> Params:
        """Return the parameters of a challenger that keeps the constraints; there must be three others at least."""
        for _ in range(_BROKEN):
            row = self._mixed(holder, best, others)
            params = self._encoding.try_params(row)
            if params is not None:
                return params
        return self._encoding.params(row)

    def _mixed(self, holder: Floats, best: Floats, others: Sequence[Floats]) -> Floats:
        chosen = self._generator.choice(len(others), size=3, replace=False)
        start, first, second = (others[index] for index in chosen)
        if self._generator.random() < 0.5:
            start = holder
        genes = self._cross(holder, self._mix(start, best, first, second))
        row: Floats = self._encoding.settle(genes[None, :])[0]
        return row

    def _mix(self, start: Floats, best: Floats, first: Floats, second: Floats) -> Floats:
        pull, weight = self._generator.random(), self._generator.uniform(*_WEIGHTS)
        mixed = start + pull * (best - start) + weight * (first - second)
        # Bounced: a gene that leaves the range comes to lie between where it started and the border.
        draws = self._generator.random((3, len(start)))
        mixed = np.where(mixed < 0.0, start * draws[0], mixed)
        mixed = np.where(mixed > 1.0, start + (1.0 - start) * draws[0], mixed)
        # Choices have no distance: where the two differ any value may come up, and now and then where they agree.
        choice = np.where(draws[1] < pull, best, start)
        choice = np.where(draws[2] < np.where(first != second, weight, _SURPRISE), draws[0], choice)
        return np.where(self._encoding.is_choice, choice, mixed)

    def _cross(self, own: Floats, mixed: Floats) -> Floats:
        taken = self._generator.random(len(own)) < self._crossover
        if len(own):
            taken[self._generator.integers(len(own))] = True
        return np.where(taken, mixed, own)
