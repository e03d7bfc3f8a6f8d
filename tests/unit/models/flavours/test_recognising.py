"""Which flavour is taken for what, and what is said of things that are no models."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from cargobike.core.errors import CargobikeError, InvalidInputError, MissingLibraryError
from cargobike.models.flavours.flavour import Flavour, Given, Saved
from cargobike.models.flavours.registry import load, recognise, save
from support.scripts import environment

LIGHT = """
import json, sys
from cargobike.models.flavours.registry import recognise, save, load
from pathlib import Path
def add(rows):
    return [sum(row) for row in rows]
saved = save(add, Path(sys.argv[1]) / "model")
answers = load(saved, Path(sys.argv[1]) / "model")([[1, 2], [3, 4]])
print(json.dumps([answers, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


class Doubling:
    def predict(self, rows: list[Any]) -> list[Any]:
        return [2 * row for row in rows]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (lambda rows: rows, "python"),
        (Doubling, "python"),
        (Doubling(), "python"),
        (torch.nn.Linear(2, 1), "torch"),
        (LogisticRegression(), "sklearn"),
    ],
)
def test_what_a_model_is_shows_in_its_class(model: Any, name: str) -> None:
    assert recognise(model) == name


@pytest.mark.parametrize("model", [3, None, [1, 2], {"a": 1}, object()])
def test_what_is_no_model_is_refused_with_what_can_be_given(model: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no model of a known kind. Give a function .* torch, .*sklearn"):
        save(model, tmp_path / "model")


def test_an_unknown_flavour_or_file_or_a_full_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"there is no flavour 'pyhton'.*Did you mean 'python'"):
        save(lambda rows: rows, tmp_path / "model", flavour="pyhton")
    with pytest.raises(InvalidInputError, match="no file of a known kind"):
        save("model.docx", tmp_path / "model")
    (tmp_path / "model" / "file").touch()
    with pytest.raises(InvalidInputError, match="is not empty"):
        save(lambda rows: rows, tmp_path / "model")


def test_a_method_of_an_estimator_says_what_predicts(tmp_path: Path) -> None:
    points = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = LogisticRegression().fit(points, [0, 0, 1, 1])
    saved = save(model.predict_proba, tmp_path / "model")
    assert saved.flavour == "sklearn"
    answers = load(saved, tmp_path / "model")([[0.0], [3.0]])
    np.testing.assert_allclose(answers, model.predict_proba([[0.0], [3.0]]))


def test_functions_load_no_framework(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, str(tmp_path)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    answers, modules = json.loads(done.stdout)
    assert answers == [3, 7]
    assert {"torch", "sklearn", "keras", "jax", "onnxruntime", "pandas"} & set(modules) == set()


class Growth:
    def __init__(self, rate: float) -> None:
        self.rate = rate


class GrowthFlavour(Flavour):
    def recognises(self, model: Any) -> bool:
        return isinstance(model, Growth)

    def save(self, given: Given, folder: Path) -> Saved:
        (folder / "rate").write_text(str(given.model.rate))
        return Saved(flavour="growth")

    def load(self, saved: Saved, folder: Path) -> Any:
        rate = float((folder / "rate").read_text())
        return lambda rows: [rate * row for row in rows]


def offer(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    points = [EntryPoint("growth", where, "cargobike.flavours")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)


def test_a_flavour_of_another_package_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, f"{__name__}:GrowthFlavour")
    saved = save(Growth(2.0), tmp_path / "model")
    assert load(saved, tmp_path / "model")([1.0, 3.0]) == [2.0, 6.0]


def test_a_flavour_of_another_package_that_is_broken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, f"{__name__}:Growth")
    with pytest.raises(InvalidInputError, match=r"'growth' stands for .* which is not a Flavour"):
        save(Growth(2.0), tmp_path / "a", flavour="growth")
    offer(monkeypatch, f"{__name__}:Absent")
    with pytest.raises(CargobikeError, match=r"registered as .*Absent by an installed package"):
        save(Growth(2.0), tmp_path / "b", flavour="growth")


def test_a_library_that_is_missing_is_named_with_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "cargobike.models.flavours.onnx", raising=False)
    monkeypatch.setattr("sys.meta_path", [Without("onnxruntime"), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    with pytest.raises(MissingLibraryError, match=r"flavour 'onnx' needs onnxruntime.*pip install 'cargobike\[onnx\]'"):
        load(Saved(flavour="onnx"), tmp_path)


class Without:
    """Hides a library."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == self.name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
