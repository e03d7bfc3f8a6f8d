"""Modules of torch: factories, kinds of numbers, shared weights, several inputs and outputs."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch

from cargobike.core.errors import InvalidInputError, StoreError, UntrustedError
from cargobike.models.flavours.flavour import Saved
from cargobike.models.flavours.registry import load, save
from support.models import Perceptron, Tied, TwoInputs, perceptron


def test_a_factory_that_does_not_fit_is_refused_when_saving(tmp_path: Path) -> None:
    module = perceptron(5)
    with pytest.raises(InvalidInputError, match="The factory does not make what was given"):
        save(module, tmp_path / "a", factory=lambda: perceptron(6))
    with pytest.raises(InvalidInputError, match="makes a Dropout, and a Identity was given"):
        save(torch.nn.Identity(), tmp_path / "b", factory=functools.partial(torch.nn.Dropout, 0.5))
    with pytest.raises(InvalidInputError, match=r"A dict was found instead of a torch.nn.Module"):
        save(module, tmp_path / "h", factory=dict)
    with pytest.raises(InvalidInputError, match="cannot be called"):
        save(module, tmp_path / "c", factory=3)
    with pytest.raises(InvalidInputError, match=r"write it as 'package.module:name'"):
        save(module, tmp_path / "d", factory="perceptron")
    with pytest.raises(InvalidInputError, match=r"torch.nn has no 'Liner'. Did you mean 'Linear'"):
        save(module, tmp_path / "e", factory="torch.nn:Liner")
    with pytest.raises(InvalidInputError, match="cannot be imported here"):
        save(module, tmp_path / "f", factory="absent_module:Net")
    with pytest.raises(InvalidInputError, match=r"must be plain data .*: dtype"):
        save(module, tmp_path / "g", factory=("torch.nn:Linear", {"in_features": 4, "dtype": torch.float32}))


def test_a_name_that_is_no_class_of_modules_is_called_only_if_announced(tmp_path: Path) -> None:
    saved = save(perceptron(5), tmp_path / "model", factory=("support.models:perceptron", {"width": 5}))
    assert saved.runs_code
    assert saved.details["kwargs"] == {"width": 5}
    load(saved, tmp_path / "model")
    with pytest.raises(UntrustedError, match="is no class of modules"):
        load(Saved(flavour="torch", details=saved.details), tmp_path / "model")
    by_class = save(perceptron(5), tmp_path / "other", factory=("support.models:Perceptron", {"width": 5}))
    assert not by_class.runs_code
    hostile = {**by_class.details, "factory": "os:mkdir", "args": [str(tmp_path / "witness")], "kwargs": {}}
    with pytest.raises(UntrustedError):
        load(Saved(flavour="torch", details=hostile), tmp_path / "other")
    assert not (tmp_path / "witness").exists()


def test_weights_of_another_module_are_named(tmp_path: Path) -> None:
    saved = save(perceptron(5), tmp_path / "a", factory=("support.models:Perceptron", {"width": 5}))
    save(torch.nn.Linear(4, 2), tmp_path / "b", factory=lambda: torch.nn.Linear(4, 2))
    (tmp_path / "b" / "weights.safetensors").replace(tmp_path / "a" / "weights.safetensors")
    with pytest.raises(StoreError, match=r"missing in the file: layers.0.weight(.|\n)*unknown to the module: bias"):
        load(saved, tmp_path / "a")
    other = {**saved.details, "kwargs": {"width": 6}}
    save(perceptron(5), tmp_path / "c", factory=lambda: perceptron(5))
    with pytest.raises(StoreError, match="do not fit"):
        load(Saved(flavour="torch", details=other, libraries=("torch",)), tmp_path / "c")


def test_shared_weights_are_kept_once(tmp_path: Path) -> None:
    module = Tied()
    saved = save(module, tmp_path / "model", factory=Tied)
    answers = load(saved, tmp_path / "model")([[1, 2, 3]])
    with torch.no_grad():
        assert answers == module(torch.tensor([[1, 2, 3]])).tolist()


@pytest.mark.parametrize("row", [[1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0]])
def test_whole_numbers_are_numbers_for_models_without_embeddings(row: list[Any], tmp_path: Path) -> None:
    module = perceptron(3).double()
    saved = save(module, tmp_path / "model")
    with torch.no_grad():
        wanted = module(torch.tensor([row], dtype=torch.float64)).tolist()
    assert load(saved, tmp_path / "model")([row]) == wanted


def test_fields_are_arguments_and_several_results_are_named(tmp_path: Path) -> None:
    saved = save(TwoInputs(), tmp_path / "model")
    rows = [{"x": 1.0, "y": [1.0, 2.0]}, {"x": 2.0, "y": [3.0, 4.0]}]
    assert load(saved, tmp_path / "model")(rows) == [
        {"sum": 4.0, "first": 1.0},
        {"sum": 9.0, "first": 3.0},
    ]


def test_dropout_is_off_and_nothing_of_the_module_changes(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Identity())
    assert load(save(module, tmp_path / "model"), tmp_path / "model")([[1.0] * 8]) == [[1.0] * 8]
    assert module.training


def test_a_method_of_a_module_can_predict(tmp_path: Path) -> None:
    module = Perceptron(3)
    saved = save(module.forward, tmp_path / "model")
    assert saved.flavour == "torch"
    assert saved.details["method"] == "forward"
    with pytest.raises(StoreError, match="no method '__class__'"):
        load(
            Saved(flavour="torch", details={**saved.details, "method": "__class__"}, runs_code=True), tmp_path / "model"
        )


def test_scripted_modules_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"torch.export.export"):
        save(torch.jit.script(torch.nn.Linear(1, 1)), tmp_path / "model")
