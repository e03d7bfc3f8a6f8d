from __future__ import annotations

import json
import pickle
import random
from typing import Any

import pytest

from cargobike.core.errors import SpaceError
from cargobike.search.spaces.space import Searchspace


def a_space() -> Searchspace:
    return Searchspace(
        lr=("DOUBLE", [1e-4, 1e-1], "log"),
        layers=("INTEGER", [1, 5]),
        act=("CATEGORICAL", ["relu", "gelu"]),
        batch=("DISCRETE", [32, 64, 128]),
    )


def test_parameters_are_kept_as_declared() -> None:
    space = a_space()
    assert space.names == ("lr", "layers", "act", "batch")
    assert list(space) == ["lr", "layers", "act", "batch"]
    assert len(space) == 4
    assert "lr" in space
    assert "rl" not in space
    lr = space.parameters["lr"]
    assert (lr.type, lr.low, lr.high, lr.scale, lr.step) == ("DOUBLE", 1e-4, 1e-1, "log", None)
    assert space["batch"].values == (32, 64, 128)


def test_types_and_scales_are_read_in_any_case() -> None:
    space = Searchspace(a=("double", [1, 2], "LOG"), b=("Integer", [1, 2], "reverse_log"))
    assert space == Searchspace(a=("DOUBLE", [1, 2], "log"), b=("INTEGER", [1, 2], "reverse-log"))


def test_every_notation_says_the_same() -> None:
    spelled = Searchspace(
        opt=("CATEGORICAL", ["sgd", "adam"]),
        m=("DOUBLE", [0.0, 0.9], "linear", {"step": 0.1, "points": 3, "when": {"opt": "sgd"}}),
    )
    built = Searchspace(
        opt=Searchspace.categorical(["sgd", "adam"]),
        m=Searchspace.double(0.0, 0.9, step=0.1, points=3, when={"opt": ["sgd"]}),
    )
    mapped = Searchspace(
        opt=["sgd", "adam"],
        m={"double": [0.0, 0.9], "step": 0.1, "points": 3, "when": {"opt": "sgd"}},
    )
    added = Searchspace()
    added.add("opt", spelled["opt"])
    added.add("m", spelled["m"])
    assert spelled == built == mapped == added == Searchspace(spelled.to_dict())


def test_numpy_values_become_plain_python() -> None:
    np = pytest.importorskip("numpy")
    space = Searchspace(
        a=("DISCRETE", np.linspace(0, 1, 3)),
        b=("INTEGER", [np.int64(1), np.int64(4)]),
        c=("CATEGORICAL", [np.float32(0.5), np.bool_(True)]),
        d=range(3),
    )
    assert space["a"].values == (0.0, 0.5, 1.0)
    assert {type(value) for value in space["a"].values} == {float}
    assert repr(space["b"].low) == "1"
    assert space["c"].values == (0.5, True)
    assert space["d"].values == (0, 1, 2)
    assert space.validate({"a": np.float64(0.5), "b": np.int32(2), "c": True, "d": 1})["b"] == 2


@pytest.mark.parametrize("name", ["self", "add", "names", "sample", "specs", "grid", "not a name", "__init__", "ü"])
def test_any_name_will_do(name: str) -> None:
    space = Searchspace({name: ("INTEGER", [1, 3])})
    space.add("other", [1, 2])
    assert space.names == (name, "other")
    assert set(space.sample(random.Random(0))) == {name, "other"}
    assert eval(repr(space), {"Searchspace": Searchspace}) == space


def test_a_keyword_may_be_called_self() -> None:
    assert Searchspace(self=[1, 2], specs=[3, 4]).names == ("self", "specs")


def test_equality_sees_order_and_kind_of_value() -> None:
    assert a_space() == a_space()
    assert Searchspace(a=[1], b=[2]) != Searchspace(b=[2], a=[1])
    assert Searchspace(a=("CATEGORICAL", [True])) != Searchspace(a=("CATEGORICAL", [1]))
    assert a_space() != "space"


def test_a_space_survives_pickle_and_json() -> None:
    space = Searchspace(
        sizes=("CATEGORICAL", [(64, 64), (128,), None, True, 1, "x"]),
        drop=("DOUBLE", [0, 0.5], {"step": 0.1, "when": {"sizes": [(64, 64), True]}}),
    )
    assert pickle.loads(pickle.dumps(space)) == space
    described = json.loads(json.dumps(space.describe()))
    assert Searchspace.from_description(described) == space
    assert Searchspace.from_description(described)["sizes"].values[0] == (64, 64)


def test_a_failed_add_leaves_the_space_as_it_was() -> None:
    space = a_space()
    for name, spec in [
        ("lr", [1]),
        ("new", ("DOUBLE", [2, 1])),
        ("new", ("DOUBLE", [0, 1], {"when": {"no": 1}})),
    ]:
        with pytest.raises(SpaceError):
            space.add(name, spec)
    assert space == a_space()


BAD: list[tuple[Any, str]] = [
    (("FLOAT", [0, 1]), r"unknown type 'FLOAT'.*Did you mean 'DOUBLE'\?"),
    (("INTEGR", [0, 1]), r"Did you mean 'INTEGER'\?"),
    (("relu", "gelu"), r"write a list: \['relu', 'gelu'\]"),
    ((1, 5), "is not a specification"),
    ((), "is not a specification"),
    (("DOUBLE",), "is not a specification"),
    (("DOUBLE", [0, 1], "log", {}, 3), "is not a specification"),
    (5, r"\[5\] for a fixed value"),
    ("relu", r"\['relu'\] for a fixed value"),
    (None, "is not a specification"),
    (("DOUBLE", 5), "is not a list"),
    (("DOUBLE", []), "two ends"),
    (("DOUBLE", [1, 2, 3]), "two ends"),
    (("DOUBLE", [2, 1]), "upside down: low 2.0 is above high 1.0"),
    (("INTEGER", [3, 3]), "range is empty"),
    (("DOUBLE", [0, 1], "log"), "log scale needs low above 0, not 0.0"),
    (("DOUBLE", [-1, 1], "log"), "log scale needs low above 0"),
    (("DOUBLE", [-1, 0.5], "reverse-log"), "reverse-log scale needs"),
    (("DOUBLE", [0, 1], "lgo"), r"unknown scale 'lgo'.*Did you mean 'log'\?"),
    (("DOUBLE", [0, 1], "logarithmic"), r"Did you mean 'log'\?"),
    (("DOUBLE", [0, 1], 7), "7 cannot stand here"),
    (("DOUBLE", [0, 1], "log", "log"), "cannot stand here"),
    (("DOUBLE", [1, 2], "log", {"scale": "linear"}), "scale is given twice"),
    (("DOUBLE", [0, float("inf")]), "inf is not a finite number"),
    (("DOUBLE", [float("nan"), 1]), "nan is not a finite number"),
    (("DOUBLE", [-1.7e308, 1.7e308]), "wider than a float"),
    (("DOUBLE", [False, True]), "must be a number, not False"),
    (("DOUBLE", ["a", 1]), "must be a number, not 'a'"),
    (("INTEGER", [0.5, 3]), "whole number, not 0.5"),
    (("INTEGER", [0, 2**60]), r"beyond ±2\*\*53"),
    (("INTEGER", [0, 10], {"step": 0.5}), "step of INTEGER must be a whole number"),
    (("DOUBLE", [0, 1], {"step": 0}), "step must be a number above 0"),
    (("DOUBLE", [0, 1], {"step": -1}), "step must be a number above 0"),
    (("DOUBLE", [0, 1], {"step": True}), "step must be a number above 0"),
    (("DOUBLE", [0, 1], {"step": 2}), "step 2.0 is larger than the range"),
    (("DOUBLE", [0, 1], {"stpe": 2}), r"unknown option 'stpe'.*Did you mean 'step'\?"),
    (("DOUBLE", [0, 1], {"points": 0}), "points=0"),
    (("DOUBLE", [0, 1], {"points": True}), "points=True"),
    (("CATEGORICAL", []), "no value to choose from"),
    (("CATEGORICAL", ["a", "b", "a"]), "'a' is listed twice"),
    (("DISCRETE", [1, 1.0]), "1.0 is listed twice"),
    (("DISCRETE", [1, "a"]), "DISCRETE takes numbers, not 'a'; use CATEGORICAL"),
    (("DISCRETE", [1, True]), "DISCRETE takes numbers, not True"),
    (("CATEGORICAL", [[1, 2]]), r"write a tuple: \(1, 2\)"),
    (("CATEGORICAL", [{"a": 1}]), "is not plain data"),
    (("CATEGORICAL", [object()]), "is not plain data"),
    (("CATEGORICAL", [float("nan")]), "not a finite number"),
    (("CATEGORICAL", ["a"], "log"), "fits only DOUBLE and INTEGER"),
    (["DOUBLE", [0, 1]], r"write a tuple: \('DOUBLE', \[0, 1\]\)"),
    ({"float": [0, 1]}, r"exactly one of the keys.*Did you mean 'DOUBLE'\?"),
    ({"double": [0, 1], "integer": [0, 1]}, "exactly one of the keys"),
    (("DOUBLE", [0, 1], {"when": "act"}), "must be a dict such as"),
    (("DOUBLE", [0, 1], {"when": {"act": []}}), "can never hold"),
    (("DOUBLE", [0, 1], {"when": {"atc": "relu"}}), r"depends on 'atc'.*Did you mean 'act'\?"),
    (("DOUBLE", [0, 1], {"when": {"act": "rleu"}}), "never has: 'rleu' is not one of 'relu', 'gelu'"),
    (("DOUBLE", [0, 1], {"when": {"lr": 0.1}}), "'lr', which is continuous"),
    (("DOUBLE", [0, 1], {"when": {"bad": 0}}), "bad: depends on itself"),
]


@pytest.mark.parametrize(("spec", "message"), BAD)
def test_a_bad_parameter_is_refused(spec: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Searchspace(act=["relu", "gelu"], lr=("DOUBLE", [0, 1]), bad=spec)


def test_all_mistakes_of_all_parameters_come_at_once() -> None:
    specs = {f"p{index}": spec for index, (spec, _) in enumerate(BAD)} | {
        "": [1],
        "act": ["relu"],
        "lr": ("DOUBLE", [0, 1]),
    }
    with pytest.raises(SpaceError) as caught:
        Searchspace(specs, p0=[1])
    text = str(caught.value)
    assert all(f"p{index}: " in text for index in range(len(BAD) - 1))
    assert "a parameter's name must be a string" in text
    assert "p0: declared twice" in text
    assert isinstance(caught.value, ValueError)


def test_one_parameter_reports_range_scale_and_condition_together() -> None:
    with pytest.raises(SpaceError) as caught:
        Searchspace(x=("DOUBLE", [2, 1], "lag", {"step": 0, "when": {"y": 1}}))
    assert len(caught.value.mistakes) == 4


def test_circles_are_refused_and_named() -> None:
    with pytest.raises(SpaceError, match="a, b, c: depend on each other in a circle") as caught:
        Searchspace(
            a=("INTEGER", [0, 1], {"when": {"c": 1}}),
            b=("INTEGER", [0, 1], {"when": {"a": 1}}),
            c=("INTEGER", [0, 1], {"when": {"b": 1}}),
            outside=("INTEGER", [0, 1], {"when": {"a": 1}}),
        )
    assert "outside" not in str(caught.value)


def test_a_space_is_not_made_of_a_list() -> None:
    with pytest.raises(SpaceError, match="names and specifications"):
        Searchspace([("lr", [1])])  # type: ignore[arg-type]


def nested() -> Searchspace:
    return Searchspace(
        momentum=("DOUBLE", [0.0, 0.9], {"step": 0.3, "when": {"opt": "sgd"}}),
        opt=["sgd", "adam", "none"],
        nesterov=("CATEGORICAL", [True, False], {"when": {"momentum": [0.3, 0.6]}}),
        beta=("DISCRETE", [0.9, 0.99], {"when": {"opt": ["adam"]}}),
    )


def test_conditions_may_look_forward_and_nest() -> None:
    space = nested()
    drawn = space.get_random_parameter_values(300, random.Random(1))
    assert {params["opt"] for params in drawn} == {"sgd", "adam", "none"}
    for params in drawn:
        assert ("momentum" in params) == (params["opt"] == "sgd")
        assert ("beta" in params) == (params["opt"] == "adam")
        assert ("nesterov" in params) == (params.get("momentum") in (0.3, 0.6))
        assert list(params) == [name for name in space.names if name in params]
    assert space.active_names({"opt": "sgd", "momentum": 0.3}) == ("momentum", "opt", "nesterov")
    assert space.active_names({"opt": "none", "momentum": 0.3}) == ("opt",)


def test_validate_tells_everything_that_is_wrong() -> None:
    space = nested()
    with pytest.raises(SpaceError) as caught:
        space.validate({"opt": "adam", "momentum": 0.3, "betta": 0.9})
    assert caught.value.mistakes == (
        "'betta' is not a parameter of this space. Did you mean 'beta'?",
        "momentum: does not exist here, only when opt is 'sgd'",
        "beta: is missing",
    )


def test_what_hangs_on_a_wrong_value_is_not_judged() -> None:
    with pytest.raises(SpaceError) as caught:
        nested().validate({"opt": "sdg", "momentum": 0.3})
    assert caught.value.mistakes == ("opt: 'sdg' is not one of 'sgd', 'adam', 'none'",)


def test_validate_returns_values_as_the_space_would_have_suggested_them() -> None:
    space = Searchspace(a=("DOUBLE", [0, 2]), b=("INTEGER", [0, 9]), c=("DOUBLE", [0, 1], {"step": 0.1}))
    clean = space.validate({"c": 0.1 + 0.2, "b": 3.0, "a": 1})
    assert repr(clean) == "{'a': 1.0, 'b': 3, 'c': 0.3}"


@pytest.mark.parametrize(
    "params",
    [
        {"a": 1.1, "b": 0, "c": True},
        {"a": 0.5, "b": 0.5, "c": True},
        {"a": 0.5, "b": True, "c": True},
        {"a": "0.5", "b": 0, "c": True},
        {"a": 0.5, "b": 0, "c": 1},
        {"a": 0.5, "b": 0},
        {},
        {"a": 0.5, "b": 0, "c": True, "d": 0},
        {"a": float("nan"), "b": 0, "c": True},
        {"a": [0.5], "b": 0, "c": True},
    ],
)
def test_contains_is_strict(params: dict[str, Any]) -> None:
    space = Searchspace(a=("DOUBLE", [0, 1]), b=("INTEGER", [0, 9]), c=("CATEGORICAL", [True, False]))
    assert space.contains({"a": 0.5, "b": 0, "c": True})
    assert not space.contains(params)


def test_unit_vectors_are_checked() -> None:
    space = a_space()
    with pytest.raises(SpaceError, match="has 1 numbers, the space 4"):
        space.from_unit([0.5])
    with pytest.raises(SpaceError, match="NaN"):
        space.from_unit([0.5, 0.5, float("nan"), 0.5])
    assert space.from_unit([-1, 2, 0.1, 0.9]) == {"lr": 1e-4, "layers": 5, "act": "relu", "batch": 128}


def test_a_parameter_that_comes_alive_takes_the_middle() -> None:
    space = Searchspace(opt=["sgd", "adam"], momentum=("DOUBLE", [0, 1], {"when": {"opt": "sgd"}}))
    assert space.to_unit({"opt": "adam"}) == [0.75, None]
    assert space.from_unit([0.25, None]) == {"opt": "sgd", "momentum": 0.5}


def test_neighbours_in_number_are_neighbours_in_the_unit_interval() -> None:
    space = Searchspace(batch=("DISCRETE", [128, 32, 64]))
    units = [space.to_unit({"batch": batch})[0] for batch in (32, 64, 128)]
    assert units == sorted(units, key=lambda unit: unit or 0)
    assert [params["batch"] for params in space.grid()] == [128, 32, 64]
