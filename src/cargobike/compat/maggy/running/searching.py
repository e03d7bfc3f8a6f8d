"""Maggy's searches as searches of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cargobike import experiment
from cargobike.compat.maggy.optimizer import GP, TPE, Asha, GridSearch, RandomSearch, SingleRun
from cargobike.compat.maggy.optimizer.abstractoptimizer import AbstractOptimizer as Theirs
from cargobike.compat.maggy.optimizer.built_in import BuiltIn
from cargobike.compat.maggy.running.calling import BUDGET, HPARAMS, Called
from cargobike.compat.maggy.running.driven import Driven
from cargobike.compat.maggy.running.results import as_dict
from cargobike.compat.maggy.running.stopping import Policy, rules_of
from cargobike.compat.maggy.searchspace import Searchspace
from cargobike.compat.placing import placement
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.search.optimizers.budgeted import Budgeted
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.spaces.space import Searchspace as Space

_NAMED: dict[str, type[BuiltIn]] = {
    "randomsearch": RandomSearch,
    "gridsearch": GridSearch,
    "asha": Asha,
    "tpe": TPE,
    "gp": GP,
    "none": SingleRun,
}
_MOST_BUDGET = 2**31


class OptimizerTypeError(InvalidInputError, TypeError):
    """What was given is no optimizer, or does not go with the space: Maggy raised a TypeError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search as Maggy's versions agree on it.

    Attributes:
        searchspace: What to search; nothing for a function without parameters.
        optimizer: A name or an object.
        direction: `"max"` or `"min"`, in any case.
        num_trials: How many trials.
        name: A name for people.
        description: A sentence for people.
        key: What the number to optimize is called.
        es_policy: What stops trials early.
        es_interval: At which steps it is asked.
        es_min: After how many trials it is asked.
        objects: What the configuration holds for the train function.
    """

    searchspace: Searchspace | None = None
    optimizer: Any = None
    direction: str | None = "max"
    num_trials: int = 1
    name: str = ""
    description: str = ""
    key: str = "metric"
    es_policy: Any = "median"
    es_interval: int = 1
    es_min: int = 10
    objects: Mapping[str, Any] = field(default_factory=dict)


def run_search(train_fn: Callable[..., Any], asked: Search, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Search a train function, and return what Maggy returned.

    Args:
        train_fn: The user's function.
        asked: What was asked for.
        ours: Arguments of our own `launch` that were given besides.
    """
    if asked.num_trials < 1:
        raise InvalidInputError(f"num_trials={asked.num_trials!r}: the number of trials should be greater than zero.")
    direction = (asked.direction or "max").lower()
    said: dict[str, Any] = {
        "name": asked.name or "",
        "description": asked.description or "",
        "metric": asked.key,
        **placement(ours),
    }
    space = _space_of(asked.searchspace)
    if not space.keys():
        called = Called(train_fn, asked.key, asked.objects)
        return as_dict(experiment.launch(called, params={}, repeats=asked.num_trials, **said), direction)
    called = Called(train_fn, asked.key, asked.objects, taken=(*space.keys(), BUDGET))
    optimizer, own_space, num_trials = translate(asked.optimizer, space, asked.num_trials, called)
    result = experiment.launch(
        called,
        own_space,
        optimizer=optimizer,
        num_trials=num_trials,
        direction="min" if direction == "min" else _as_max(direction),
        early_stop=_rules(asked, called) or None,
        **said,
    )
    return as_dict(result, direction)


def _rules(asked: Search, called: Called) -> list[Policy]:
    """Return what stops trials early: nothing if no trial can broadcast, or too few for a comparison."""
    rules = rules_of(asked.es_policy, asked.es_min, asked.es_interval)
    return rules if called.takes_reporter and asked.num_trials > asked.es_min + 1 else []


def translate(
    optimizer: Any, searchspace: Searchspace, num_trials: int, called: Called
) -> tuple[AbstractOptimizer | str | None, Space, int | None]:
    """Return the optimizer of ours, the space that it searches, and how many trials it may have."""
    chosen = _named(optimizer) if isinstance(optimizer, str) else optimizer
    if isinstance(chosen, type) and issubclass(chosen, Theirs | AbstractOptimizer):
        chosen = chosen()
    space = searchspace.as_space()
    if chosen is None or isinstance(chosen, str | AbstractOptimizer):
        return chosen, space, num_trials
    if not isinstance(chosen, Theirs):
        raise OptimizerTypeError(
            f"optimizer={optimizer!r} ({type(optimizer).__name__}): give a name such as 'randomsearch', or an instance "
            "of maggy.optimizer.AbstractOptimizer."
        )
    if isinstance(chosen, SingleRun):
        raise OptimizerTypeError("optimizer='none' has nothing to search: the searchspace has to be empty or None.")
    if type(chosen) in _NAMED.values() and isinstance(chosen, BuiltIn):
        return _built_in(chosen, searchspace, num_trials, called)
    if called.takes_budget and BUDGET not in searchspace:
        space = searchspace.as_space(**{BUDGET: ("INTEGER", [0, _MOST_BUDGET])})
    return Driven(chosen, searchspace), space, num_trials


def _built_in(
    chosen: BuiltIn, searchspace: Searchspace, num_trials: int, called: Called
) -> tuple[AbstractOptimizer, Space, int | None]:
    budgeted: Budgeted | None = None
    if chosen.pruner is not None:
        budgeted = chosen.pruner.budgeted(chosen.sampler())
    elif isinstance(chosen, Asha) and called.takes_budget:
        budgeted = chosen.budgeted(num_trials)
    if budgeted is not None:
        if not called.takes_budget:
            raise OptimizerTypeError(
                f"A pruner says how long to train: give the train function a parameter {BUDGET!r} (or {HPARAMS!r}, in "
                "which it is)."
            )
        budgets = budgeted.budgets
        spec = ("DISCRETE", list(budgets)) if len(budgets) > 1 else ("CATEGORICAL", list(budgets))
        return budgeted, searchspace.as_space(**{BUDGET: spec}), None
    whole_grid = isinstance(chosen, GridSearch)
    return chosen.own(), searchspace.as_space(), None if whole_grid else num_trials


def _named(name: str) -> Any:
    """Return what a name of Maggy's stands for; other names are ours."""
    kind = _NAMED.get(name.lower())
    return name if kind is None else kind()


def _space_of(given: Any) -> Searchspace:
    if given is None:
        return Searchspace()
    if isinstance(given, Space):
        return Searchspace.of(given)
    if isinstance(given, Mapping):
        return Searchspace(**given)
    if not isinstance(given, Searchspace):
        raise InvalidInputError(
            f"searchspace={given!r} ({type(given).__name__}): give an instance of maggy.Searchspace."
        )
    return given


def _as_max(direction: str) -> Any:
    if direction != "max":
        raise InvalidInputError(
            f"direction={direction!r}; allowed are 'max' and 'min'.{nearest(direction, ('max', 'min'))}"
        )
    return "max"
