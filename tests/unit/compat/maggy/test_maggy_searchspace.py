"""Maggy's search space: what its tests and notebooks do with one."""

from __future__ import annotations

import json
import pickle
import random

import pytest

from cargobike.compat.maggy import Searchspace


def test_a_space_is_made_and_read() -> None:
    sp = Searchspace(kernel=("INTEGER", [2, 8]), pool=("integer", [2, 8]))
    sp.add("dropout", ("DOUBLE", [0.01, 0.99]))
    sp.add("act", ("CATEGORICAL", ["relu", "elu"]))
    sp.add("batch", ("Discrete", [16, 32]))
    assert sp.names() == {
        "kernel": "INTEGER",
        "pool": "INTEGER",
        "dropout": "DOUBLE",
        "act": "CATEGORICAL",
        "batch": "DISCRETE",
    }
    assert sp.kernel == [2, 8]
    assert sp.get("dropout") == [0.01, 0.99]
    assert sp.get("nothing", 7) == 7
    assert sp.keys() == ["kernel", "pool", "dropout", "act", "batch"]
    assert sp.values()[3] == ("CATEGORICAL", ["relu", "elu"])
    assert "pool" in sp
    assert next(iter(sp.items())) == {"name": "kernel", "type": "INTEGER", "values": [2, 8]}
    assert json.loads(sp.json())["batch"] == ["DISCRETE", [16, 32]]
    assert Searchspace(**sp.to_dict()) == sp
    assert pickle.loads(pickle.dumps(sp)) == sp


def test_random_values_lie_in_the_space() -> None:
    sp = Searchspace(lr=("DOUBLE", [0.1, 0.2]), n=("INTEGER", [1, 3]), act=("CATEGORICAL", ["a", "b"]))
    drawn = sp.get_random_parameter_values(50, random.Random(1))
    assert len(drawn) == 50
    assert all(sp.as_space().contains(params) for params in drawn)
    assert {params["n"] for params in drawn} == {1, 2, 3}


def test_values_become_numbers_and_come_back() -> None:
    sp = Searchspace(lr=("DOUBLE", [0.0, 10.0]), n=("INTEGER", [1, 5]), act=("CATEGORICAL", ["a", "b", "c"]))
    assert sp.transform([2.5, 3, "c"]) == [0.25, 0.5, 2]
    assert sp.transform([2.5, 3, "b"], normalize_categorical=True) == [0.25, 0.5, 0.5]
    assert sp.inverse_transform([0.25, 0.5, 2]) == [2.5, 3, "c"]
    assert sp.inverse_transform([0.25, 0.5, 0.5], normalize_categorical=True) == [2.5, 3, "b"]
    assert sp.list_to_dict([2.5, 3, "c"]) == {"lr": 2.5, "n": 3, "act": "c"}


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        (("DOUBLE", [5, 1]), AssertionError, "must be less than"),
        (("DOUBLE", [1, 2, 3]), AssertionError, "a lower and an upper bound"),
        (("INTEGER", [1.5, 2]), ValueError, "need to be integer"),
        (("DOUBLE", ["a", 2]), ValueError, "need to be integer or float"),
        (("DOUBEL", [1, 2]), ValueError, "Did you mean 'DOUBLE'"),
        (("DISCRETE", []), ValueError, "cannot be empty"),
        (("DISCRETE", [1], 3), ValueError, "length two"),
        ("DISCRETE", ValueError, "not an appropriate tuple"),
    ],
)
def test_mistakes_raise_what_maggy_raised(spec: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Searchspace(x=spec)


def test_a_name_is_given_once_and_may_be_the_name_of_a_method() -> None:
    sp = Searchspace(x=("DOUBLE", [0, 1]), values=("DISCRETE", ["one", "two", "one"]))
    with pytest.raises(ValueError, match="reserved"):
        sp.add("x", ("DOUBLE", [0, 1]))
    assert sp.get("values") == ["one", "two", "one"]
    assert sp.as_space().size is None
    assert sp.values()[1] == ("DISCRETE", ["one", "two", "one"])
    with pytest.raises(AttributeError, match="no parameter and no method 'y'"):
        sp.y  # noqa: B018
