"""BOHB: the model learns from the highest level of training that enough trials got to."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from cargobike.core.records import Params, Trial, TrialState
from cargobike.search.models.foresight import Foresight
from cargobike.search.models.sampler import AutoSampler, ModelSampler
from cargobike.search.optimizers.bohb import BOHB
from cargobike.search.optimizers.hyperband import Hyperband
from cargobike.search.spaces.space import Searchspace
from cargobike.testing.drive import drive

LINE = Searchspace(x=("DOUBLE", [0.0, 1.0]))


def ready(sampler: ModelSampler, space: Searchspace = LINE, direction: str = "min") -> ModelSampler:
    sampler.setup(space, direction="min" if direction == "min" else "max", rng=random.Random(4))
    return sampler


def show(sampler: ModelSampler, resource: int, centre: float, count: int) -> None:
    """Tell of trials all over the line, the better the closer to a centre."""
    for index in range(count):
        x = (index + 0.5) / count
        sampler.observe(Trial({"x": x}, number=index), resource, abs(x - centre))


def typical(sampler: ModelSampler) -> float:
    return statistics.median(float((sampler.suggest() or {})["x"]) for _ in range(30))


def test_the_highest_level_with_enough_trials_is_believed() -> None:
    sampler = ready(ModelSampler(random_share=0.0))
    show(sampler, 1, 0.1, 40)
    assert abs(typical(sampler) - 0.1) < 0.15
    show(sampler, 3, 0.9, 5)
    assert abs(typical(sampler) - 0.1) < 0.15
    show(sampler, 3, 0.9, 20)
    assert abs(typical(sampler) - 0.9) < 0.15


def test_some_draws_stay_random() -> None:
    def spread(share: float) -> float:
        sampler = ready(ModelSampler(random_share=share))
        show(sampler, 1, 0.1, 40)
        show(sampler, 3, 0.1, 10)
        return statistics.stdev(float((sampler.suggest() or {})["x"]) for _ in range(60))

    assert spread(0.0) < spread(0.5) < spread(1.0)


def test_what_has_not_come_back_is_kept_away_from() -> None:
    sampler = ready(ModelSampler(random_share=0.0))
    show(sampler, 1, 0.5, 40)
    first = statistics.mean(abs(float((sampler.suggest() or {})["x"]) - 0.5) for _ in range(30))
    later = statistics.mean(abs(float((sampler.suggest() or {})["x"]) - 0.5) for _ in range(30))
    assert later > first


@pytest.mark.parametrize("strange", [float("nan"), float("inf"), float("-inf")])
def test_scores_that_are_no_numbers_count_as_bad(strange: float) -> None:
    sampler = ready(ModelSampler(random_share=0.0), direction="max")
    for index in range(40):
        x = (index + 0.5) / 40
        sampler.observe(Trial({"x": x}, number=index), 1, strange if x > 0.5 else 1.0)
    assert typical(sampler) < 0.5


def test_a_finite_space_is_used_up_without_repetition() -> None:
    sampler = ready(ModelSampler(startup=3), Searchspace(a=("INTEGER", [1, 4]), b=["x", "y"]))
    seen: list[Params] = []
    while (params := sampler.suggest()) is not None:
        seen.append(params)
        sampler.observe(Trial(params, number=len(seen)), 1, float(params["a"]))
    assert len(seen) == len({repr(params) for params in seen}) == 8


def test_parameters_from_elsewhere_are_passed_over() -> None:
    sampler = ready(ModelSampler(startup=1, random_share=0.0))
    sampler.observe(Trial({"z": 1}, number=0), 1, 0.0)
    assert LINE.contains(sampler.suggest() or {})


def test_it_finds_better_trials_than_hyperband() -> None:
    space = Searchspace(x=("DOUBLE", [0.0, 1.0]), y=("DOUBLE", [0.0, 1.0]), z=("DOUBLE", [0.0, 1.0]))

    def curve(params: Params) -> list[float]:
        loss = sum((float(value) - 0.7) ** 2 for value in params.values())
        return [loss + 1 / epoch for epoch in range(1, 10)]

    def typical_regret(kind: type[Hyperband]) -> float:
        results = []
        for seed in range(5):
            optimizer = kind(resource_max=9, variant="promotion")
            found = drive(optimizer, curve, space=space, num_trials=50, direction="min", seed=seed, workers=3)
            values = [trial.value for trial in found.trials if trial.state is TrialState.COMPLETED]
            results.append(min(value for value in values if value is not None) - 1 / 9)
        return statistics.median(results)

    assert typical_regret(BOHB) < typical_regret(Hyperband)


class EagerSampler(ModelSampler):
    """Makes its model before the first suggestion."""

    @property
    def _useful_from(self) -> int:
        return 0


class EagerAutoSampler(AutoSampler):
    """Makes its model before the first suggestion."""

    @property
    def _useful_from(self) -> int:
        return 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("late", "eager"), [(ModelSampler, EagerSampler), (AutoSampler, EagerAutoSampler)])
def test_a_model_that_is_made_late_suggests_the_same(
    late: type[ModelSampler], eager: type[ModelSampler], seed: int
) -> None:
    def suggestions(kind: type[ModelSampler]) -> list[object]:
        chance, sampler = random.Random(seed), kind()
        space = Searchspace(x=("DOUBLE", [0, 1]), kind=["a", "b"] if seed % 2 else ("DOUBLE", [0, 1]))
        sampler.setup(space, direction="max", rng=random.Random(seed))
        trials: list[Trial] = []
        for number in range(40):
            params = sampler.suggest()
            assert params is not None
            trials.append(Trial(params, number=number, state=TrialState.COMPLETED, value=params["x"]))
            for trial in chance.sample(trials, min(len(trials), chance.randint(0, 2))):
                sampler.observe(trial, chance.choice((1, 1, 3)), chance.choice((trial.params["x"], math.nan)))
        return [trial.params for trial in trials]

    assert suggestions(late) == suggestions(eager)


@pytest.mark.parametrize(("ends", "is_led"), [(5, False), (6, True)])
def test_too_few_ends_do_not_lead_to_new_trials(ends: int, is_led: bool) -> None:
    sampler, sobol, foresight = AutoSampler(), ready(ModelSampler(startup=10**6)), Foresight()
    ready(sampler)
    sampler.foresight, sampler.ends_first = foresight, 6
    suggested = []
    for number in range(16):
        params = sampler.suggest()
        assert params is not None
        suggested.append(params)
        loss = abs(params["x"] - 0.3)
        trial = Trial(params, number=number, state=TrialState.COMPLETED, value=loss)
        trial.curve.add(1, loss)
        foresight.note(number, [loss])
        sampler.observe(trial, 1, loss)
        if number < ends:
            foresight.note_end(number, loss, 1)
            sampler.observe(trial, 3, loss)
    assert (suggested != [sobol.suggest() for _ in suggested]) is is_led
