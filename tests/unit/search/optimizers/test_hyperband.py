"""Hyperband: brackets in the right proportions, each of which halves on its own."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from cargobike.core.records import Direction, Params, Suggestion, Trial, TrialState
from cargobike.search.optimizers.hyperband import Hyperband, bracket_shares
from cargobike.search.optimizers.registry import resolve_optimizer
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.drive import Drive, drive

SPACE = Searchspace(x=("DOUBLE", [0.0, 1.0]))


def curve_of(length: int) -> Any:
    return lambda params: [params["x"] * (1 - 0.7**step) for step in range(1, length + 1)]


def run(optimizer: Hyperband, length: int = 27, num_trials: int = 98, workers: int = 3) -> Drive:
    return drive(optimizer, curve_of(length), space=SPACE, num_trials=num_trials, at_most=num_trials, workers=workers)


def brackets(result: Drive) -> Counter[int]:
    return Counter(trial.info["bracket"] for trial in result.trials)


def test_shares_are_those_of_the_original() -> None:
    assert bracket_shares(4, 3) == pytest.approx([27 / 49, 12 / 49, 6 / 49, 4 / 49])
    assert bracket_shares(1, 3) == [1.0]


def test_trials_are_spread_over_the_brackets_from_the_start() -> None:
    result = run(Hyperband(resource_max=27, variant="stopping"))
    assert brackets(result) == {0: 54, 1: 24, 2: 12, 3: 8}
    assert Counter(trial.info["bracket"] for trial in result.trials[:8]) == {0: 4, 1: 2, 2: 1, 3: 1}


@pytest.mark.parametrize("variant", ["promotion", "stopping"])
def test_each_bracket_begins_to_compare_at_its_own_level(variant: Any) -> None:
    result = run(Hyperband(resource_max=27, variant=variant))
    for bracket, shortest in enumerate((1, 3, 9, 27)):
        lengths = [len(trial.curve) for trial in result.trials if trial.info["bracket"] == bracket]
        assert min(lengths) == shortest
        assert set(lengths) <= {1, 3, 9, 27}
    never_judged = [trial for trial in result.trials if trial.info["bracket"] == 3]
    assert {trial.state for trial in never_judged} == {TrialState.COMPLETED}


@pytest.mark.parametrize(("resource_max", "count"), [(3, 2), (1, 1)])
def test_a_trial_knows_its_bracket_where_there_are_several(resource_max: int, count: int) -> None:
    result = run(Hyperband(resource_max=resource_max, variant="stopping"), length=resource_max, num_trials=12)
    assert {trial.info.get("bracket") for trial in result.trials} == ({0, 1} if count == 2 else {None})


def test_where_the_function_ends_is_learned() -> None:
    result = run(Hyperband(variant="stopping"), length=9)
    late = Counter(trial.info["bracket"] for trial in result.trials[50:])
    assert set(late) <= {0, 1, 2}, "with 9 steps there are rungs at 1 and 3"


def test_a_longer_function_gets_more_brackets() -> None:
    result = run(Hyperband(variant="stopping"), length=200, num_trials=150)
    assert max(brackets(result)) >= 4


class Noting:
    """A sampler that remembers what it was shown."""

    def setup(self, space: Searchspace, *, direction: Direction, rng: random.Random) -> None:
        self.space, self.rng, self.left = space, rng, 20
        self.seen: list[tuple[int, int, float]] = []

    def suggest(self) -> Params | None:
        self.left -= 1
        return self.space.sample(self.rng) if self.left >= 0 else None

    def observe(self, trial: Trial, resource: int, value: float) -> None:
        self.seen.append((trial.number, resource, value))


@pytest.mark.parametrize("variant", ["promotion", "stopping"])
def test_a_sampler_sees_every_level_once_and_may_end_the_search(variant: Any) -> None:
    sampler = Noting()
    result = run(Hyperband(resource_max=9, variant=variant, sampler=sampler), length=9)
    assert len(result.trials) == 20
    assert result.exhausted
    assert len({(number, resource) for number, resource, _ in sampler.seen}) == len(sampler.seen)
    levels = {(trial.number, level) for trial in result.trials for level in (1, 3, 9) if len(trial.curve) >= level}
    judged_from = {trial.number: (1, 3, 9)[trial.info["bracket"]] for trial in result.trials}
    assert {(number, resource) for number, resource, _ in sampler.seen} == {
        (number, level) for number, level in levels if level >= judged_from[number]
    }
    for number, resource, value in sampler.seen:
        assert value == result.trials[number].curve.values[resource - 1]


def test_it_is_found_by_name_and_starts_in_the_most_eager_bracket() -> None:
    optimizer = resolve_optimizer("hyperband")
    optimizer.setup(SPACE, num_trials=10, direction="min", seed=1)
    optimizer.initialize()
    first = optimizer.get_suggestion()
    assert isinstance(first, Suggestion)
    assert first.info["bracket"] == 0
