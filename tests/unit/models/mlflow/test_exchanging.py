"""Versions that leave as folders of MLflow and come back, through the door and the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from cargobike import models
from cargobike.core.errors import InvalidInputError, NotFoundError, UntrustedError
from cargobike.models.commands.models import models as commands

POINTS = np.random.default_rng(7).normal(size=(40, 3))


def test_data_comes_back_without_trust(tmp_path: Path) -> None:
    model = LogisticRegression().fit(POINTS, POINTS[:, 0] > 0)
    version = models.register(
        "sides", model, example=POINTS[:2], metrics={"accuracy": 0.9}, description="Left or right."
    )
    folder = models.export_mlflow("sides", tmp_path / "folder")
    document = yaml.safe_load((folder / "MLmodel").read_text())
    assert document["metadata"]["cargobike"]["metrics"] == {"accuracy": 0.9}
    assert (folder / "requirements.txt").read_text().startswith("cargobike==")
    assert "scikit-learn==" in (folder / "requirements.txt").read_text()
    back = models.import_mlflow(folder, "again")
    assert back.reference == "again:1"
    assert back.is_imported
    assert back.fingerprint == version.fingerprint
    assert (back.signature, back.example) == (version.signature, version.example)
    assert models.get("again").predict(POINTS) == model.predict(POINTS).tolist()
    assert back.verify() == []


def test_code_comes_back_with_trust_only(tmp_path: Path) -> None:
    models.register("double", lambda rows: [2 * row for row in rows], example=[1.0])
    back = models.import_mlflow(models.export_mlflow("double:1", tmp_path / "folder"), "double")
    assert back.reference == "double:2"
    with pytest.raises(UntrustedError, match=r"double:2 was brought in from .*folder"):
        models.get("double").predict([2.0])
    assert models.get("double").predict([2.0], trust=True) == [4.0]


def test_the_command_line_does_the_same(tmp_path: Path) -> None:
    models.register("double", lambda rows: [2 * row for row in rows])
    folder = str(tmp_path / "folder")
    done = CliRunner().invoke(commands, ["export", "double", folder])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(commands, ["import", folder, "other"])
    assert done.exit_code == 0, done.output
    assert "other:1 (python" in done.output
    assert "has to be trusted first" in done.output
    assert '"is_imported": true' in CliRunner().invoke(commands, ["import", folder, "other", "--json"]).output


def test_what_cannot_be_exchanged_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    models.register("notes", files=tmp_path / "file")
    with pytest.raises(InvalidInputError, match="notes:1 holds files and cannot predict"):
        models.export_mlflow("notes", tmp_path / "folder")
    with pytest.raises(NotFoundError):
        models.export_mlflow("absent", tmp_path / "folder")
    with pytest.raises(InvalidInputError, match="holds no MLmodel file"):
        models.import_mlflow(tmp_path, "notes")
    models.register("double", lambda rows: rows)
    with pytest.raises(InvalidInputError, match="is not empty"):
        models.export_mlflow("double", tmp_path)
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / "MLmodel").write_text("flavors: {python_function: {}}")
    (hostile / "a\\b").write_text("")
    with pytest.raises(InvalidInputError, match="holds files that cannot be kept"):
        models.import_mlflow(hostile, "hostile")
    with pytest.raises(NotFoundError):
        models.get("hostile")
