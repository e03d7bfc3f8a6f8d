"""Models and servings by the names of hops, without processes."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from cargobike import models, project
from cargobike.compat.hops import model, serving
from cargobike.compat.hops.names import stores
from cargobike.compat.hops.translating.files import ProjectFiles
from cargobike.compat.hsml import servings
from cargobike.errors import DeploymentError, InvalidInputError, NotFoundError

SCRIPT = "class Predict:\n    def predict(self, inputs):\n        return [2 * row[0] for row in inputs]\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    project.use(tmp_path / "Football")
    folder = tmp_path / "iris"
    folder.mkdir()
    (folder / "iris.py").write_text(SCRIPT)
    return folder


def test_versions_and_the_best_of_them(files: Path) -> None:
    for accuracy in (0.7, 0.9, 0.8):
        path = model.export(str(files), "IrisClassifier", metrics={"accuracy": accuracy})
    assert path.endswith("/Models/IrisClassifier/3")
    best = model.get_best_model("IrisClassifier", "accuracy", model.Metric.MAX)
    assert (best["name"], best["version"], best["metrics"]) == ("IrisClassifier", 2, {"accuracy": 0.9})
    assert model.get_best_model("IrisClassifier", "accuracy", model.Metric.MIN)["version"] == 1
    assert model.get_model("IrisClassifier", 3)["version"] == 3
    with pytest.raises(model.ModelNotFound, match="loss"):
        model.get_best_model("IrisClassifier", "loss", model.Metric.MIN)
    with pytest.raises(model.ModelNotFound, match="no model"):
        model.get_model("Other")
    with pytest.raises(InvalidInputError, match=r"there are Metric\.MAX and Metric\.MIN"):
        model.get_best_model("IrisClassifier", "accuracy", "most")
    with pytest.raises(ValueError, match="accuracy"):
        model.export(str(files), "IrisClassifier", metrics={"accuracy": "good"})


def test_a_number_can_be_overwritten(files: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    serving.export(str(files), "mnist", 1)
    with pytest.raises(InvalidInputError, match="has a version 1 already"):
        serving.export(str(files), "mnist", 1)
    (files / "more.txt").write_text("new")
    serving.export(str(files), "mnist", 1, overwrite=True)
    monkeypatch.chdir(tmp_path)
    folder = model.download_model("mnist", 1)
    assert folder == str(tmp_path / "mnist" / "1")
    assert Path(folder, "more.txt").read_text() == "new"
    assert len(models.list("mnist")) == 2
    with pytest.raises(InvalidInputError, match="say overwrite=True"):
        model.download_model("mnist", 1)
    assert model.download_model("mnist", 1, overwrite=True) == folder


def test_files_of_the_project_can_be_exported(files: Path) -> None:
    ProjectFiles().storage.write("Resources/net/weights.bin", b"12")
    assert model.export("Resources/net", "net").endswith("Models/net/1")
    assert [one.path for one in models.get("net").files if "weights" in one.path] == ["model/weights.bin"]


@pytest.mark.parametrize("order", ["new", "by name", "old", "script"])
def test_both_orders_of_arguments_say_the_same(files: Path, order: str) -> None:
    path = model.export(str(files), "iris").rpartition("/")[0]
    if order == "new":
        serving.create_or_update("IrisServing", path, "PYTHON", 1, predictor="iris.py")
    elif order == "by name":
        serving.create_or_update(
            serving_name="IrisServing", model_path=path, model_server="PYTHON", predictor=f"{path}/1/iris.py"
        )
    elif order == "old":
        serving.create_or_update(f"{path}/1/iris.py", "IrisServing", serving_type="PYTHON", model_version=1)
    else:
        serving.create_or_update(
            artifact_path=str(files / "iris.py"), serving_name="IrisServing", serving_type="PYTHON"
        )
    assert serving.exists("IrisServing")
    assert (serving.get_id("IrisServing"), serving.get_status("IrisServing")) == (1, "Stopped")
    assert serving.get_type("IrisServing") == "PYTHON"
    if order != "script":
        assert (serving.get_model_name("IrisServing"), serving.get_version("IrisServing")) == ("iris", 1)
    reference = servings.get("IrisServing").predictor
    assert models.get(reference).predict([{"inputs": [[2], [3]]}]) == [[4, 6]]
    assert [one.name for one in serving.get_all()] == ["IrisServing"]
    assert serving.get_kafka_topic("IrisServing") is None
    with pytest.raises(DeploymentError, match="not being served"):
        serving.make_inference_request("IrisServing", {"inputs": [[1]]})
    serving.delete("IrisServing")
    assert not serving.exists("IrisServing")


def test_what_cannot_be_served_says_why(files: Path) -> None:
    with pytest.raises(InvalidInputError, match="the name 'my-serving' has other characters"):
        serving.create_or_update("my-serving", "Models/iris", "PYTHON")
    with pytest.raises(NotFoundError, match=r"There is no model 'iris': model\.export"):
        serving.create_or_update("Iris", "Models/iris", "TENSORFLOW")
    model.export(str(files), "iris")
    with pytest.raises(InvalidInputError, match=r"iris\.py, of which none says how it predicts"):
        serving.create_or_update("Iris", "Models/iris", "TENSORFLOW")
    with pytest.raises(InvalidInputError, match="is no path of a model"):
        serving.create_or_update("Iris", "Resources/iris", "TENSORFLOW")
    with pytest.raises(NotFoundError, match="There is no deployment 'Iris'"):
        serving.start("Iris")
    with pytest.raises(InvalidInputError, match="verb=':guess' was given"):
        serving.make_inference_request("Iris", {}, ":guess")


@pytest.mark.parametrize("old", [one.old for one in stores.TRANSLATIONS])
def test_each_name_of_the_stores_is_there(old: str) -> None:
    module, _, name = old.removeprefix("hops.").partition(".")
    assert hasattr(importlib.import_module(f"cargobike.compat.hops.{module}"), name)
    translation = next(one for one in stores.TRANSLATIONS if one.old == old)
    assert translation.new or translation.remark
