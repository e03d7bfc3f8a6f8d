from __future__ import annotations

import subprocess
import sys

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Trial
from cargobike.search.optimizers.gridsearch import GridSearch
from cargobike.search.optimizers.listed import Listed
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.optimizers.randomsearch import RandomSearch
from cargobike.search.optimizers.registry import OPTIMIZERS, optimizer_names, resolve_optimizer


class NeedsMore(RandomSearch):
    def __init__(self, eta: int, *, rungs: int, extra: int = 0) -> None:
        super().__init__()


class Half(AbstractOptimizer):
    def initialize(self) -> None: ...


class Duck:
    def initialize(self) -> None: ...
    def get_suggestion(self, trial: Trial | None = None) -> Suggested: ...


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("random", RandomSearch),
        ("randomsearch", RandomSearch),
        ("Random_Search", RandomSearch),
        (" GRID-search ", GridSearch),
        ("grid", GridSearch),
        (RandomSearch, RandomSearch),
    ],
)
def test_names_and_classes_give_new_optimizers(given: object, kind: type) -> None:
    first, second = resolve_optimizer(given), resolve_optimizer(given)
    assert type(first) is kind
    assert first is not second


def test_an_object_is_taken_as_it_is() -> None:
    optimizer = Listed([{"a": 1}])
    assert resolve_optimizer(optimizer) is optimizer


@pytest.mark.parametrize("name", OPTIMIZERS.own)
def test_every_entry_of_the_table_leads_to_an_optimizer_of_that_name(name: str) -> None:
    assert getattr(OPTIMIZERS.find(name), "name", None) == name
    assert name in optimizer_names()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("radnom", r"no optimizer 'radnom'; known are ablation, asha, auto, .*Did you mean 'random'\?"),
        ("zzz", "known are ablation"),
        ("Bayesian", "is 'tpe' or 'auto' here"),
        ("optuna", "OptunaOptimizer"),
        ("none", "for one run with fixed values pass params="),
        ("", "for one run with fixed values pass params="),
        (None, "for one run with fixed values pass params="),
        (False, "for one run with fixed values pass params="),
        (5, "optimizer=5 is not an optimizer; give one of ablation"),
        (dict, "is not an optimizer"),
        (NeedsMore, r"cannot be made without eta, rungs; give an object: optimizer=NeedsMore\(eta=…, rungs=…\)"),
        ("listed", r"Listed\(params=…\)"),
        (Half, "lacks the methods get_suggestion"),
        (AbstractOptimizer, "lacks the methods get_suggestion, initialize"),
        (Duck, "make it a subclass of AbstractOptimizer"),
        (Duck(), "Duck has the methods of an optimizer"),
    ],
)
def test_what_is_no_optimizer_is_refused(given: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        resolve_optimizer(given)


def test_modules_of_optimizers_are_imported_when_asked_for() -> None:
    code = (
        "import sys; from cargobike.search.optimizers.registry import resolve_optimizer; "
        "assert 'cargobike.search.optimizers.gridsearch' not in sys.modules; resolve_optimizer('grid'); "
        "assert 'cargobike.search.optimizers.gridsearch' in sys.modules; assert 'pytest' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
