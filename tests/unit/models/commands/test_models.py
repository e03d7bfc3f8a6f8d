"""`cargobike models`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cargobike import models
from cargobike.cli.app import app
from cargobike.core.errors import CargobikeError


def run(*words: str, input: str | None = None) -> Result:
    return CliRunner().invoke(app, ["models", *words], input=input)


def said(*words: str) -> str:
    done = run(*words)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def answer(*words: str) -> Any:
    return json.loads(said(*words, "--json"))


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    (tmp_path / "predict_here.py").write_text("def answer(rows):\n    return [2 * row for row in rows]\n")
    (tmp_path / "rows.json").write_text("[1.0, 2.0]")
    for accuracy in (0.9, 0.8):
        said(
            "register", "digits", "--model", f"{tmp_path}/predict_here.py:answer", "--metric", f"accuracy={accuracy}",
            "--example", f"{tmp_path}/rows.json", "--tag", "small", "--description", "Doubles.",
        )  # fmt: skip
    return tmp_path


def test_models_are_listed_and_shown(registry: Path) -> None:
    assert "digits:2" in said("ls")
    assert [one["version"] for one in answer("ls", "digits")] == [2, 1]
    shown = said("show", "digits:1")
    assert "accuracy  0.9" in shown
    assert "takes    input: FP64" in shown
    assert "verified" in shown
    assert answer("show", "digits:1")["problems"] == []
    compared = answer("compare", "digits:1", "digits:2")
    assert [one["accuracy"] for one in compared] == [0.9, 0.8]
    assert "same content" in said("compare", "digits:1", "digits:2")
    for file in (registry / "models" / "digits" / "files").rglob("model.pkl"):
        file.write_bytes(b"x")
    assert run("verify", "digits").exit_code == 1
    assert run("show", "digits").exit_code == 1


def test_versions_are_promoted_tagged_noted_and_removed(registry: Path) -> None:
    assert answer("promote", "digits:1", "champion", "--when", "accuracy >= champion.accuracy")["before"] is None
    refused = run("promote", "digits:2", "champion", "--when", "accuracy >= champion.accuracy")
    assert refused.exit_code == 1
    assert "accuracy = 0.8, champion.accuracy = 0.9" in " ".join(refused.output.split())
    assert answer("tag", "digits", "good", "--remove", "small")["tags"] == ["good"]
    assert "Looked at it." in said("note", "digits", "Looked at it.")
    (registry / "card.md").write_text("# Ours\n")
    assert said("card", "digits", "--from", str(registry / "card.md")) == "# Ours\n"
    assert said("card", "digits", "--reset").startswith("# digits:2")
    assert run("rm", "digits:1", "--yes").exit_code == 1
    assert answer("rm", "digits", "--keep", "1", "--yes")["removed"] == []
    assert answer("rm", "digits@champion", "--yes")["removed"] == ["digits@champion"]
    assert run("rm", "digits:1", input="n\n").exit_code == 1
    assert answer("rm", "digits", "--keep", "1", "--yes")["removed"] == ["digits:1"]
    assert [one.version for one in models.list("digits")] == [2]


def test_versions_are_exported_and_imported(registry: Path) -> None:
    said("export", "digits:1", str(registry / "digits.zip"))
    assert "has to be trusted first" in said("import", str(registry / "digits.zip"), "borrowed")
    assert models.get("borrowed").is_imported


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("show", "digist"), "Did you mean 'digits'"),
        (("register", "digits", "--model", "nowhere.py:x"), "There is no file nowhere.py"),
        (("register", "digits", "--model", "os"), "write module:name or file.py:name"),
        (("register", "digits", "--model", "json:dmps"), "Did you mean 'dumps'"),
        (("register", "digits", "--metric", "accuracy"), "is no NAME=VALUE"),
        (("register", "digits", "--model", "json:dumps", "--example", "nowhere"), "cannot be read as JSON"),
        (("rm", "digits", "--yes"), "name a version"),
        (("rm", "digits:1", "--json"), "give --yes as well"),
        (("compare", "digits:1"), "give at least two versions"),
    ],
)
def test_mistakes_are_explained(registry: Path, words: tuple[str, ...], expected: str) -> None:
    done = run(*words)
    assert done.exit_code != 0
    shown = " ".join(f"{done.output} {done.exception if isinstance(done.exception, CargobikeError) else ''}".split())
    assert expected in shown.replace(" │ │ ", " ")
