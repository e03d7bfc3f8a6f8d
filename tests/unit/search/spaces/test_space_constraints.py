"""Constraints between parameters: what may be written, what they mean, and what a space makes of them."""

from __future__ import annotations

import copy
import json
import pickle
import random
from typing import Any

import pytest

from cargobike.core.errors import SpaceError
from cargobike.search.optimizers.gridsearch import GridSearch
from cargobike.search.spaces import space as space_module
from cargobike.search.spaces.formats import read_space
from cargobike.search.spaces.space import Searchspace

LEAVES: dict[str, Any] = {"low": ("INTEGER", [1, 9]), "high": ("INTEGER", [1, 9])}


def mixed(*constraints: Any) -> Searchspace:
    return Searchspace(
        {
            "a": ("INTEGER", [0, 4]),
            "x": ("DOUBLE", [0.0, 1.0]),
            "act": ["relu", "gelu", None],
            "flag": [True, False],
            "weight-decay": ("DOUBLE", [0.0, 1.0]),
            "warmup": ("INTEGER", [1, 5], {"when": {"flag": True}}),
        },
        constraints=constraints,
    )


BESIDE: dict[str, Any] = {"a": 2, "x": 0.5, "act": "relu", "flag": True, "weight-decay": 0.1, "warmup": 3}
ABSENT = {name: value for name, value in BESIDE.items() if name != "warmup"} | {"flag": False}


@pytest.mark.parametrize(
    ("text", "params", "holds"),
    [
        ("a < 3", BESIDE, True),
        ("a < 2", BESIDE, False),
        ("1 < a <= 2", BESIDE, True),
        ("2 < a < 4", BESIDE, False),
        ("a * x + 1 < 2.01", BESIDE, True),
        ("a ** 2 - 4 == 0", BESIDE, True),
        ("-a < -1 and a // 2 == 1 and a % 2 == 0", BESIDE, True),
        ("a / 2 >= 1.5", BESIDE, False),
        ("abs(a - 4) == 2 and max(a, x) == 2 and min(a, x) <= 0.5", BESIDE, True),
        ("act in ['relu', 'gelu']", BESIDE, True),
        ("act not in ('relu',)", BESIDE, False),
        ("act is None or act == 'relu'", BESIDE, True),
        ("act != 'relu'", BESIDE, False),
        ("flag", BESIDE, True),
        ("not flag", BESIDE, False),
        ("flag == 1 or a < 2", BESIDE, False),
        ("`weight-decay` < x", BESIDE, True),
        ("act != '`weight-decay`'", BESIDE, True),
        ("a / (a - 2) > 0 or a == 2", BESIDE, False),  # what cannot be computed does not hold
        ("a == 2 or a / (a - 2) > 0", BESIDE, True),
        ("warmup < 2", BESIDE, False),
        ("warmup < 2", ABSENT, True),
        ("not warmup < 2", ABSENT, True),
        ("warmup < 2 and a < 2", ABSENT, False),
        ("warmup < 2 or a > 2", ABSENT, True),
        ("max(warmup, a) < 1", ABSENT, True),
    ],
)
def test_a_constraint_means_what_it_says(text: str, params: dict[str, Any], holds: bool) -> None:
    space = mixed(text)
    assert space.contains(params) is holds
    assert mixed().contains(params), "without the constraint these lie in the space"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a <", "is not an expression"),
        ("a", "'a' is neither true nor false; compare it with something"),
        ("a + 1", "is neither true nor false"),
        ("__import__('os').system('true') == 0", "is not allowed; allowed are comparisons"),
        ("a.real < 3", "'a.real' is not allowed"),
        ("a[0] < 3", "is not allowed"),
        ("[a for a in (1, 2)] == 3", "is not allowed"),
        ("(lambda: 1)() < a", "is not allowed"),
        ("a < (b := 3)", "is not allowed"),
        ("f'{a}' == '2'", "is not allowed"),
        ("pow(a, 2) < 3", "is not allowed"),
        ("abs(a, x) < 3", "give one number"),
        ("max(a, key=3) < 3", "give numbers"),
        ("a < b'x'", "have no order"),
        ("a == 3j", "3j is not allowed"),
        ("a in act", "after `in` comes a list of values"),
        ("act < 3", r"act \(NoneType or text\) and 3 \(number\) have no order"),
        ("act * 2 == 3", "act is not a number"),
        ("wramup < 3", "'wramup' is not a parameter of this space. Did you mean 'warmup'"),
        ("1 < 2", "names no parameter; there are a, x, act"),
        ("a < 3" + " " * 1000 + "and a < 2", "is longer than 1000 characters"),
        ("(" * 300 + "a" + ")" * 300 + " < 3", "nested too deeply|is not an expression|too many nested"),
        (lambda params: True, "a function cannot be kept in a journal or read from a file; write an expression"),
        (3, "must be text, such as 'a < b'; a parameter of the name 'constraints' goes into a dict"),
    ],
)
def test_what_is_no_constraint_is_refused(text: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        mixed(text)


def test_all_mistakes_are_listed_at_once() -> None:
    with pytest.raises(SpaceError) as caught:
        Searchspace(a=("DUOBLE", [0, 1]), constraints=["a < 0.5", "b < 1"])
    assert len(caught.value.mistakes) == 2, "the wrong type and the unknown name, and nothing that follows from them"


def test_numbers_cannot_grow_without_end() -> None:
    """A tower of powers ends as an overflow, which does not hold, not in an endless computation."""
    assert mixed("a < 3 or 9 ** 9 ** 9 ** 9 > 1").contains(BESIDE)
    assert not mixed("a < 2 or 9 ** 9 ** 9 ** 9 > 1").contains(BESIDE)


def test_what_breaks_a_constraint_is_said() -> None:
    space = Searchspace(LEAVES, constraints="low < high")
    with pytest.raises(SpaceError, match="low < high: does not hold for low=5, high=3"):
        space.validate({"low": 5, "high": 3})
    assert space.validate({"low": 3, "high": 5}) == {"low": 3, "high": 5}


def test_draws_are_even_where_constraints_hold() -> None:
    space = Searchspace(LEAVES, constraints="low < high")
    rng = random.Random(1)
    drawn = [tuple(space.sample(rng).values()) for _ in range(3600)]
    assert all(low < high for low, high in drawn)
    counts = [drawn.count(pair) for pair in set(drawn)]
    assert len(counts) == 36
    assert min(counts) > 50, "each of 36 pairs is drawn about 100 times"


def test_a_space_without_constraints_draws_as_it_did() -> None:
    """Searches that were begun before there were constraints repeat their answers."""
    free, held = Searchspace(LEAVES), Searchspace(LEAVES, constraints="low >= 1")
    assert [free.sample(random.Random(seed)) for seed in range(20)] == [
        held.sample(random.Random(seed)) for seed in range(20)
    ]


def test_what_is_counted_keeps_the_constraints() -> None:
    space = Searchspace(LEAVES, act=["relu", "gelu"], constraints="low < high")
    assert space.size == space.grid_size() == 72
    walked = list(space.grid())
    assert len(walked) == 72
    assert all(params["low"] < params["high"] for params in walked)
    assert Searchspace(a=("INTEGER", [1, 10**6]), b=("INTEGER", [1, 10**6]), constraints="a < b").size is None


def test_any_place_leads_to_one_that_keeps_the_constraints() -> None:
    space = Searchspace(LEAVES, x=("DOUBLE", [0.0, 1.0]), constraints=["low < high", "x < 0.1"])
    for vector in ([0.9, 0.1, 0.05], [0.5, 0.5, 0.9], [1.0, 0.0, 1.0]):
        assert space.try_unit(vector) is None
        assert space.contains(space.from_unit(vector))
    kept = {"low": 2, "high": 8, "x": 0.05}
    assert space.from_unit(space.to_unit(kept)) == space.try_unit(space.to_unit(kept)) == kept


def test_a_narrow_space_is_still_drawn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where draws keep missing, the way from the last of them to a known place is taken."""
    space = Searchspace(x=("DOUBLE", [0.0, 1.0]), y=("DOUBLE", [0.0, 1.0]), constraints="abs(x - y) < 0.002")
    monkeypatch.setattr(space_module, "_REDRAWN", 1)
    rng = random.Random(3)
    drawn = [space.sample(rng) for _ in range(50)]
    assert all(space.contains(params) for params in drawn)
    assert len({params["x"] for params in drawn}) > 10


@pytest.mark.parametrize(
    ("specs", "constraint"),
    [
        (LEAVES, "low > high + 9"),
        ({"x": ("DOUBLE", [0.0, 1.0]), "y": ("DOUBLE", [0.0, 1.0])}, "x + y == 1"),
        ({"a": ("INTEGER", [1, 10**6]), "b": ("INTEGER", [1, 10**6])}, "a == b"),
    ],
)
def test_a_space_in_which_nothing_is_found_is_refused(specs: dict[str, Any], constraint: str) -> None:
    with pytest.raises(SpaceError, match="nothing in this search space keeps its constraints") as caught:
        Searchspace(specs, constraints=constraint)
    assert f"{constraint}: holds in 0 of 10000 draws" in caught.value.mistakes
    assert "compute it in the train function" in str(caught.value)


def test_the_single_combination_of_a_small_space_is_found() -> None:
    space = Searchspace(a=("INTEGER", [1, 200]), b=("INTEGER", [1, 200]), constraints=["a + b == 400"])
    assert space.sample(random.Random(0)) == {"a": 200, "b": 200}
    assert space.size == 1


def test_a_grid_that_misses_what_is_allowed_is_refused() -> None:
    space = Searchspace(x=("DOUBLE", [0.0, 1.0], {"points": 2}), constraints=["x > 0.2", "x < 0.8"])
    with pytest.raises(SpaceError, match=r"no combination of this grid keeps the constraints x > 0\.2, x < 0\.8"):
        GridSearch().count_trials(space)


def test_adding_a_parameter_keeps_the_constraints_or_the_space_as_it_was() -> None:
    space = Searchspace(LEAVES, constraints="low < high")
    space.add("x", ("DOUBLE", [0.0, 1.0]))
    assert space.constraints == ("low < high",)
    with pytest.raises(SpaceError, match="declared twice"):
        space.add("x", ("DOUBLE", [0.0, 1.0]))
    assert space.names == ("low", "high", "x")


def test_constraints_survive_journals_pickles_and_copies() -> None:
    space = mixed("a < 3", "`weight-decay` < x", "a + warmup < 7")
    again = Searchspace.from_description(json.loads(json.dumps(space.describe())))
    assert again == space == pickle.loads(pickle.dumps(space)) == copy.deepcopy(space)
    assert set(again.constraints) == set(space.constraints)
    assert space != mixed("a < 3"), "spaces with other constraints are other spaces"
    assert eval(repr(space), {"Searchspace": Searchspace}) == space
    assert Searchspace(space.to_dict(), constraints=space.constraints) == space


def test_a_file_may_hold_constraints() -> None:
    text = "space:\n  low: {integer: [1, 9]}\n  high: {integer: [1, 9]}\nconstraints: [low < high]\n"
    space = read_space(text).space
    assert isinstance(space, Searchspace)
    assert space.constraints == ("low < high",)
    with pytest.raises(SpaceError, match="'hihg' is not a parameter of this space"):
        read_space(text.replace("low < high", "low < hihg"))
    with pytest.raises(SpaceError, match="low > high \\+ 9: holds in 0 of 10000 draws"):
        read_space(text.replace("low < high", "low > high + 9"))


def test_a_parameter_may_still_be_called_constraints() -> None:
    space = Searchspace({"constraints": ["few", "many"]}, constraints="constraints != 'many'")
    assert space.sample(random.Random(1)) == {"constraints": "few"}
    assert eval(repr(space), {"Searchspace": Searchspace}) == space
