"""What cannot work is refused before anything starts, with what to do about it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cargobike import Resources, Searchspace, experiment
from cargobike.core.errors import FunctionError, InvalidInputError, SignatureError, SpaceError
from cargobike.engines.local.engine import LocalEngine


def train(lr: float, layers: int = 2) -> float:
    return lr * layers


def nothing_was_started(folder: Path) -> bool:
    return not list(folder.rglob("journal.jsonl"))


def test_the_nearest_name_is_suggested(tmp_path: Path) -> None:
    space = Searchspace(learning_rate=("DOUBLE", [0.1, 1]), layer=("INTEGER", [1, 2]))
    with pytest.raises(SignatureError) as caught:
        experiment.launch(train, space, num_trials=1)
    text = str(caught.value)
    assert "'learning_rate' is given, but the function has no such parameter. Did you mean 'lr'?" in text
    assert "Did you mean 'layers'?" in text
    assert "'lr' is needed by the function, but not given" in text
    assert isinstance(caught.value, TypeError)
    assert nothing_was_started(tmp_path)


def test_a_conditional_parameter_needs_a_default(tmp_path: Path) -> None:
    space = Searchspace(
        kind=("CATEGORICAL", ["sgd", "adam"]),
        momentum=("DOUBLE", [0, 1], {"when": {"kind": "sgd"}}),
    )

    def needs(kind: str, momentum: float) -> float:
        return momentum

    def copes(kind: str, momentum: float | None = None) -> float:
        assert (momentum is None) == (kind == "adam")
        return 1.0

    with pytest.raises(SignatureError, match="'momentum' is given only sometimes: give it a default"):
        experiment.launch(needs, space, num_trials=2)
    assert nothing_was_started(tmp_path)
    result = experiment.launch(copes, space, num_trials=8, seed=1, quiet=True)
    assert result.counts == {"completed": 8}
    assert {"momentum" in trial.params for trial in result.trials} == {True, False}


def test_sets_that_differ_need_a_default_too() -> None:
    with pytest.raises(SignatureError, match="'lr' is given only sometimes"):
        experiment.launch(train, [{"lr": 1}, {"layers": 2}])
    result = experiment.launch(train, [{"lr": 1, "layers": 5}, {"lr": 2}], quiet=True)
    assert [trial.value for trial in result.trials] == [5.0, 4.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"space": {"lr": [1]}, "params": {"lr": 1}}, "Both a space and params", id="both"),
        pytest.param({}, "nothing to try", id="neither"),
        pytest.param({"space": Searchspace(lr=("DOUBLE", [0, 1]))}, "give num_trials", id="how many"),
        pytest.param({"space": {"lr": [1]}, "num_trials": 0}, "at least 1, 0 was given", id="no trials"),
        pytest.param({"space": {"lr": [1]}, "num_trials": 2.5}, "whole number", id="half a trial"),
        pytest.param({"space": {"lr": [1]}, "workers": -1}, "workers must be a whole number", id="no workers"),
        pytest.param({"space": {"lr": [1]}, "isolation": "frsh"}, "Did you mean 'fresh'", id="isolation"),
        pytest.param({"space": {"lr": [1]}, "direction": "maximize"}, "Did you mean 'max'", id="direction"),
        pytest.param({"space": {"lr": [1]}, "durability": "disk"}, "'process' and 'power'", id="durability"),
        pytest.param({"space": {"lr": [1]}, "working_directory": "here"}, "'trial' and 'launch'", id="directory"),
        pytest.param({"space": {"lr": [1]}, "engine": "locale"}, "Did you mean 'local'", id="engine"),
        pytest.param({"space": {"lr": [1]}, "optimizer": "randomserch"}, "Did you mean 'randomsearch'", id="optimizer"),
        pytest.param({"params": {"lr": 1}, "optimizer": "randomsearch"}, "listed already", id="optimizer for one run"),
        pytest.param({"space": {"lr": [1]}, "trial_timeout_s": 0}, "trial_timeout_s must be above 0", id="trial time"),
        pytest.param({"space": {"lr": [1]}, "timeout_s": -1}, "timeout_s must be above 0", id="time"),
        pytest.param({"space": {"lr": [1]}, "timeout_s": "soon"}, '"1h30m"; .soon. was given', id="no time"),
        pytest.param(
            {"space": {"lr": [1]}, "n_trials": 3}, "'n_trials': here it is called 'num_trials'", id="Optuna's"
        ),
        pytest.param({"space": {"lr": [1]}, "mode": "max"}, "'mode': here it is called 'direction'", id="Ray's"),
        pytest.param({"space": {"lr": [1]}, "num_trails": 3}, "Did you mean 'num_trials'", id="misspelt"),
        pytest.param(
            {"space": {"lr": [1]}, "optimizer": "bayesian"}, "is 'tpe' or 'auto' here", id="other's optimizer"
        ),
        pytest.param({"space": {"lr": [1]}, "resources": {"cpu": 1}}, "Did you mean 'cpus'", id="resources"),
        pytest.param({"space": {"lr": [1]}, "resources": Resources(cpus=0)}, "cpus=0; give a whole", id="no cores"),
        pytest.param(
            {"space": Searchspace(lr=("DOUBLE", [0, 1])), "num_trials": 1, "start_points": {"lr": 0.5}},
            "give a list of dicts",
            id="one start point",
        ),
        pytest.param({"space": {"lr": [1]}, "early_stop": 5}, "is not a stop rule", id="stop rule"),
        pytest.param({"space": {"lr": [1]}, "max_failures": -1}, "max_failures must be", id="failures"),
        pytest.param({"space": {"lr": [1]}, "seed": "7"}, "seed must be a whole number", id="seed"),
        pytest.param({"space": {"lr": [1]}, "callbacks": [print]}, "on_facts", id="callback"),
        pytest.param({"params": {"lr": object()}}, "plain data", id="no plain data"),
        pytest.param({"space": {"lr": [object()]}}, "lr", id="no plain data in a space"),
        pytest.param(
            {"space": {"lr": [1]}, "engine": LocalEngine(gpus=("0",)), "resources": Resources(gpus=2)},
            "there is room for 0",
            id="GPUs",
        ),
    ],
)
def test_arguments_that_cannot_be_used(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=message):
        experiment.launch(train, **arguments)
    assert nothing_was_started(tmp_path)


def test_several_bad_choices_are_named_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        experiment.launch(train, {"lr": [1]}, isolation="no", durability="no")  # type: ignore[arg-type]
    assert len(caught.value.mistakes) == 2


def test_a_bad_space_is_refused_with_all_its_mistakes() -> None:
    with pytest.raises(SpaceError) as caught:
        experiment.launch(train, {"lr": ("DOUBLE", [0, 1], "log"), "layers": ("INTEGER", [5, 1])}, num_trials=1)
    assert len(caught.value.mistakes) >= 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(3, "train must be a function", id="number"),
        pytest.param(0.9, "without calling it", id="result of a call"),
        pytest.param("nowhere.py:train", "is not a Python file", id="no file"),
        pytest.param("train", "names no function", id="no colon"),
    ],
)
def test_what_is_no_function(given: Any, message: str) -> None:
    with pytest.raises(FunctionError, match=message):
        experiment.launch(given, {"lr": [1]})


def test_a_file_without_that_function_or_with_an_error_in_it(tmp_path: Path) -> None:
    (tmp_path / "good_file.py").write_text("def train_it(lr):\n    return lr\n")
    (tmp_path / "bad_file.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(FunctionError, match="Did you mean 'train_it'"):
        experiment.launch(f"{tmp_path}/good_file.py:trian_it", {"lr": [1]})
    with pytest.raises(FunctionError, match="No module named 'nothing_of_that_name'"):
        experiment.launch(f"{tmp_path}/bad_file.py:train", {"lr": [1]})


def _with_lock() -> Callable[..., Any]:
    guard = threading.Lock()

    def locked(lr: float) -> float:
        with guard:
            return lr

    return locked


def _with_file() -> Callable[..., Any]:
    file = open(os.devnull, "w")  # noqa: SIM115 - an open file is what this is about

    def writing(lr: float) -> float:
        return lr + file.write("x")

    return writing


class _Holding:
    def __init__(self) -> None:
        self.socket = threading.Lock()

    def train(self, lr: float) -> float:
        return lr


@pytest.mark.parametrize(
    ("make", "names"),
    [
        pytest.param(_with_lock, ["'guard'", "lock"], id="lock"),
        pytest.param(_with_file, ["'file'", "TextIOWrapper"], id="open file"),
        pytest.param(lambda: _Holding().train, ["'socket'", "lock"], id="attribute"),
    ],
)
def test_what_cannot_travel_is_named(make: Callable[[], Any], names: list[str], tmp_path: Path) -> None:
    function = make()
    with pytest.raises(FunctionError, match="cannot be sent to a worker") as caught:
        experiment.launch(function, {"lr": [1]})
    for name in names:
        assert name in str(caught.value)
    assert "inside the function instead" in str(caught.value)
    assert nothing_was_started(tmp_path)
    for cell in getattr(function, "__closure__", None) or ():
        if hasattr(cell.cell_contents, "close"):
            cell.cell_contents.close()
