"""Search spaces, settings and words that people write, and what is recorded of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from cargobike.core.asked import Named
from cargobike.core.goals import read_constraints
from cargobike.core.layout import ProjectFolder
from cargobike.experiments.asking.recipe import RECIPE, read_recipe
from cargobike.experiments.asking.remote_source import load_function
from cargobike.search.optimizers.registry import restore_optimizer
from cargobike.search.spaces import constraints
from cargobike.search.spaces.formats import as_space, read_space
from cargobike.search.spaces.space import Searchspace
from cargobike.store.files.remote import Segment
from cargobike.store.index.opening import index_url
from faults.fuzzing.target import Target

_SPACE: dict[str, Any] = {
    "lr": {"double": [1e-4, 1e-1], "scale": "log"},
    "layers": {"integer": [1, 5], "step": 2},
    "optimizer": ["sgd", "adam"],
    "momentum": {"double": [0.0, 0.9], "step": 0.1, "when": {"optimizer": "sgd"}},
}
_TUPLES: dict[str, Any] = {"x": ["DOUBLE", [0, 1]], "y": ["INTEGER", [1, 9]], "z": ["CATEGORICAL", ["a", "b"]]}
_SAGEMAKER = {
    "ParameterRanges": {
        "ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0.1", "MaxValue": "1", "ScalingType": "Auto"}],
        "IntegerParameterRanges": [{"Name": "n", "MinValue": "1", "MaxValue": "4"}],
        "CategoricalParameterRanges": [{"Name": "c", "Values": ["a", "b"]}],
    },
    "Strategy": "Bayesian",
}
_CLOUDML = {
    "trainingInput": {
        "hyperparameters": {
            "goal": "MAXIMIZE",
            "maxTrials": 4,
            "params": [
                {"parameterName": "lr", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1, "scaleType": "UNIT_LOG_SCALE"}
            ],
        }
    }
}
_OPTIMIZERS = (b'["asha",{"min_steps":1,"reduction":3}]', b'["tpe",{}]', b'["bohb",{}]', b'["pbt",{"population":4}]')
_NOTEBOOK = {"cells": [{"cell_type": "code", "source": ["def train(x):\n", "    return x\n"]}], "nbformat": 4}


_CONSTRAINTS = (
    b"lr * layers < 0.2\nnot (lr >= 0.1 or layers == 3)",
    b"optimizer in ['sgd', \"adam\"] and 1 < layers <= 4",
    b"abs(lr - 0.1) ** 2 // 3 % 2 != max(layers, 2, -1) / 0\n`odd name` <= momentum",
)


def space_targets(folder: Path) -> Iterator[Target]:
    """Yield the readers of what people write."""
    folder.mkdir(parents=True)
    documents = tuple(
        json.dumps(one).encode() for one in (_SPACE, {"num_trials": 3, "space": _SPACE}, _SAGEMAKER, _CLOUDML)
    )
    yield Target("space-object", _use_space, (*documents[:2], json.dumps(_TUPLES).encode()), "json", weight=60)
    yield Target("space-description", _use_description, _descriptions(), "json", weight=60)
    yield Target("space-json", lambda data: _read(folder / "space.json", data), documents, "json", weight=20)
    yaml = b"num_trials: 3\nspace:\n  lr: {double: [1e-4, 0.1], scale: log}\n  act: &a [relu, tanh]\n  other: *a\n"
    yield Target("space-yaml", lambda data: _read(folder / "space.yaml", data), (yaml, *documents), "text", weight=6)
    yield Target("constraints", _read_constraints, (b"latency_ms <= 50", b"a < 1e3\nb >= -2"), "text", weight=15)
    yield Target("space-constraints", _judge_constraints, _CONSTRAINTS, "text", weight=30)
    yield Target("optimizer", _make_optimizer, _OPTIMIZERS, "json", weight=5)
    yield Target(
        "notebook", lambda data: _load(folder / "n.ipynb", data), (json.dumps(_NOTEBOOK).encode(),), "json", weight=5
    )
    yield _settings(folder / "settings")
    yield _recipes(folder / "recipe")
    yield Target("segment", _parse_segment, (b"000000000000000-000000000000100.jsonl",), "text", weight=10)


def _judge_constraints(data: bytes) -> None:
    """Read constraints between parameters, and judge parameters by those that can be read."""
    space = Searchspace({**_SPACE, "odd name": [1, 2.5, None, "x"]})
    params = {"lr": 0.01, "layers": 3, "optimizer": "adam", "odd name": None}
    for text in _text(data).split("\n"):
        mistakes: list[str] = []
        for constraint in constraints.read_constraints([text], space.parameters, mistakes):
            constraint.holds(params)
            constraint.broken_by(params)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _object(data: bytes) -> Any:
    """Return what a program might pass: any plain data."""
    try:
        return json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return _text(data[:2000])


def _use_space(data: bytes) -> None:
    space = as_space(_with_tuples(_object(data)))
    if isinstance(space, Searchspace):
        _use(space)


def _with_tuples(given: Any) -> Any:
    """Turn pairs that begin with a type into tuples, as programs write them."""
    if not isinstance(given, dict):
        return given
    return {key: tuple(item) if _is_typed(item) else item for key, item in given.items()}


def _is_typed(item: Any) -> bool:
    return isinstance(item, list) and len(item) > 1 and isinstance(item[0], str) and item[0].isupper()


def _use(space: Searchspace) -> None:
    """Do with a space what a search does: draw, encode, decode, describe, read again."""
    drawn = space.sample(Random(0))
    space.validate(drawn)
    space.from_unit(space.to_unit(drawn))
    again = Searchspace.from_description(json.loads(json.dumps(space.describe())))
    assert again.names == space.names
    repr(space)


def _use_description(data: bytes) -> None:
    _use(Searchspace.from_description(_object(data)))


def _descriptions() -> tuple[bytes, ...]:
    return tuple(json.dumps(_described(one)).encode() for one in (_SPACE, {"a": [1, 2], "b": ["x", "y"]}))


def _described(given: dict[str, Any]) -> list[dict[str, Any]]:
    return Searchspace(given).describe()


def _read(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    read_space(path)


def _read_constraints(data: bytes) -> None:
    read_constraints(_text(data).split("\n"))


def _make_optimizer(data: bytes) -> None:
    given = _object(data)
    if isinstance(given, list) and len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], dict):
        restore_optimizer(Named(given[0], settings=given[1]))


def _load(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    load_function(f"{path}:surely_not_there")


def _settings(folder: Path) -> Target:
    folder.mkdir()
    project = ProjectFolder(folder)

    def run(data: bytes) -> None:
        project.settings.write_bytes(data)
        index_url(project)

    return Target(
        "settings", run, (b'[index]\nurl = "postgresql://me@host/db"\n', b"[index]\nother = 1\n"), "text", weight=20
    )


def _recipes(folder: Path) -> Target:
    folder.mkdir()

    def run(data: bytes) -> None:
        (folder / RECIPE).write_bytes(data)
        read_recipe(folder)

    return Target("recipe", run, _recipe_examples(), "json", weight=20)


def _recipe_examples() -> tuple[bytes, ...]:
    params = {"lr": 0.1, "layers": 1, "optimizer": "adam"}
    search = {"space": _described(_SPACE), "optimizer": {"name": "random"}, "num_trials": 3, "seed": 1}
    asked = {"name": "a", "function": "train", "search": search, "aim": {"direction": "max", "metric": "score"}}
    past = [{"params": params, "state": "completed", "value": 1.0, "curve": [[1, 0.5], [2, "nan"]]}]
    recipe = {"version": 1, "cargobike": "1.0", "asked": asked, "names": ["lr"], "past": past, "start_points": [params]}
    alone = {"version": 1, "cargobike": "1.0", "asked": {**asked, "search": {"params": {"x": 1}}}, "names": ["x"]}
    return json.dumps(recipe).encode(), json.dumps(alone).encode()


def _parse_segment(data: bytes) -> None:
    Segment.parse(_text(data))
