"""Optimizers and stop rules as data, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from cargobike.core.asked import Named
from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Decision, Direction, Trial
from cargobike.search.optimizers import registry
from cargobike.search.optimizers.ablation import Ablation
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.listed import Listed
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.optimizers.optuna_bridge import OptunaOptimizer
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.optimizers.registry import describe_optimizer, optimizer_names, restore_optimizer
from cargobike.search.rules import stop_rules
from cargobike.search.rules.stop_rules import (
    MedianRule,
    PatienceRule,
    PercentileRule,
    TargetReached,
    describe_stop_rule,
    restore_stop_rule,
)
from cargobike.search.spaces.space import Searchspace

SPACE = Searchspace(lr=("DOUBLE", [0.001, 1.0], "log"), shape=[(1, 2), (3,)])
GIVEN: dict[str, dict[str, Any]] = {
    "randomsearch": {"num_trials": 7, "searchspace": SPACE},
    "gridsearch": {"counts": {"lr": 3}},
    "listed": {"params": [{"x": 1, "shape": [1, 2]}, {"x": 2.5}]},
    "auto": {"num_trials": 9},
    "tpe": {"startup": 4, "candidates": 7, "multivariate": False},
    "bohb": {"reduction_factor": 4, "random_share": 0.3},
    "dehb": {"population": 12, "resource_max": 27},
    "de": {"population": 6, "crossover": 0.5},
    "ablation": {"baseline": {"a": 1, "b": True}, "without": {"a": 0, "b": False}, "groups": [("a", "b")]},
    "asha": {"reduction_factor": 4, "resource_max": 3, "variant": "stopping", "searchspace": SPACE},
    "hyperband": {"resource_min": 2, "resource_max": 81},
    "pbt": {"population": 4, "interval": 2, "quantile": 0.5},
}


def _travelled(told: Named) -> Named:
    return msgspec.json.decode(msgspec.json.encode(told), type=Named)


def _kind(name: str) -> type[AbstractOptimizer]:
    return registry._class_of(name)


@pytest.mark.parametrize("name", optimizer_names())
def test_every_registered_optimizer_comes_back_from_its_settings(name: str) -> None:
    pytest.importorskip("optuna")
    given = GIVEN.get(name, {})
    optimizer = _kind(name)(**given)
    told = describe_optimizer(optimizer)
    assert (told.name, told.path) == (name, "")
    for setting, value in given.items():
        assert repr(optimizer.settings[setting]) == repr(value) or setting in ("groups", "without")
        assert setting in told.settings
    again = restore_optimizer(_travelled(told))
    assert type(again) is type(optimizer)
    assert repr(describe_optimizer(again)) == repr(told)
    assert registry.is_told_whole(optimizer, told)


@pytest.mark.parametrize("name", [name for name in optimizer_names() if name not in ("listed", "ablation")])
def test_defaults_are_told_too(name: str) -> None:
    pytest.importorskip("optuna")
    optimizer = _kind(name)()
    assert registry.is_told_whole(optimizer, describe_optimizer(optimizer))


def test_a_space_in_a_setting_is_the_same_after_the_journey() -> None:
    again = restore_optimizer(_travelled(describe_optimizer(RandomSearch(searchspace=SPACE))))
    assert again.preset_space == SPACE


def test_a_setting_that_was_changed_afterwards_is_told_as_it_is() -> None:
    optimizer = ASHA()
    optimizer.reduction_factor = 5
    assert describe_optimizer(optimizer).settings["reduction_factor"] == 5


def test_groups_of_an_ablation_come_back() -> None:
    optimizer = Ablation({"a": 1, "b": 2}, {"a": 0, "b": 0}, groups=[("a", "b")])
    again = restore_optimizer(_travelled(describe_optimizer(optimizer)))
    assert isinstance(again, Ablation)
    assert (again.groups, again._variants) == (optimizer.groups, optimizer._variants)


class OwnSampler:
    def setup(self, space: Searchspace, *, direction: Direction, rng: Any) -> None: ...
    def suggest(self) -> None: ...
    def observe(self, trial: Trial, resource: int, value: float) -> None: ...


class Own(AbstractOptimizer):
    def __init__(self, rate: float, file: object = None) -> None:
        self._rate = rate

    @property
    def file(self) -> object:
        raise RuntimeError("not yet")

    def initialize(self) -> None: ...

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        return None


def test_what_is_no_data_is_told_by_its_class_and_known_to_be_lost() -> None:
    optimizer = ASHA(sampler=OwnSampler())
    told = describe_optimizer(optimizer)
    assert told.settings["sampler"] == f"{__name__}:OwnSampler"
    assert not registry.is_told_whole(optimizer, told)


def test_an_optimizer_of_ones_own_is_told_by_its_class() -> None:
    optimizer = Own(0.5)
    told = describe_optimizer(optimizer)
    assert (told.name, told.path, told.settings) == ("Own", f"{__name__}:Own", {"rate": 0.5})
    assert not registry.is_told_whole(optimizer, told)


def test_an_attribute_that_no_argument_sets_makes_the_description_incomplete() -> None:
    optimizer = RandomSearch()
    optimizer.judges_steps = True
    assert not registry.is_told_whole(optimizer, describe_optimizer(optimizer))


def test_a_sampler_of_optuna_is_told_by_its_class() -> None:
    samplers = pytest.importorskip("optuna").samplers
    told = describe_optimizer(OptunaOptimizer(samplers.RandomSampler()))
    assert told.settings["sampler"].endswith(":RandomSampler")


def test_a_long_list_is_told_by_its_length() -> None:
    optimizer = Listed({"x": float(number)} for number in range(20_000))
    told = describe_optimizer(optimizer)
    assert told.settings["params"].startswith("20000 entries, ")
    assert not registry.is_told_whole(optimizer, told)


def test_settings_that_an_optimizer_does_not_have_any_more_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"tpe\(gone=1\) cannot be made"):
        restore_optimizer(Named("tpe", settings={"gone": 1}))
    with pytest.raises(InvalidInputError, match="no optimizer 'gone'"):
        restore_optimizer(Named("gone"))


RULES = [
    MedianRule(warmup_steps=2, interval=3),
    PercentileRule(10.0, min_trials=2),
    PatienceRule(3, min_delta=0.1),
    TargetReached(0.9),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_every_rule_of_ours_comes_back_from_its_settings(rule: Any) -> None:
    told = describe_stop_rule(rule)
    again = restore_stop_rule(_travelled(told))
    assert type(again) is type(rule)
    assert vars(again) == vars(rule)
    assert stop_rules.is_told_whole(rule, told)


class OwnRule:
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        return Decision.CONTINUE


def test_a_rule_of_ones_own_is_told_by_its_class() -> None:
    told = describe_stop_rule(OwnRule(4))
    assert (told.path, told.settings) == (f"{__name__}:OwnRule", {"limit": 4})
    with pytest.raises(InvalidInputError, match="OwnRule"):
        restore_stop_rule(told)
