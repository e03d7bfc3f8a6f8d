from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.serving.kubernetes.render import render
from cargobike.serving.kubernetes.writing import write
from support.cluster_requests import asked


class Model:
    """As much of a kept model as an image needs."""

    requirements = "# Python 3.11.7 on Debian x86_64\nnumpy==2.4.0\n"

    def copy_to(self, project: ProjectFolder) -> None:
        file = project.root / "models" / "digits" / "3" / "manifest.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")


def written(folder: Path) -> list[str]:
    model: Any = Model()
    files = write(folder, render(asked()), model, target="kubernetes", extras=("serving",))
    return [file.name for file in files]


def test_the_folder_has_all_that_the_image_needs(tmp_path: Path) -> None:
    folder = tmp_path / "ship"
    assert written(folder) == ["kubernetes.yaml", "Dockerfile", "requirements.txt"]
    assert len(list(yaml.safe_load_all((folder / "kubernetes.yaml").read_text()))) == 5
    assert (folder / "requirements.txt").read_text() == "numpy==2.4.0\n"
    copied = re.findall(r"^COPY (?:--\S+ )?(\S+)", (folder / "Dockerfile").read_text(), re.MULTILINE)
    assert all((folder / name).exists() for name in copied)
    assert (folder / "project" / "models" / "digits" / "3" / "manifest.json").exists()
    assert (folder / "project" / "experiments").is_dir(), "a project is made of it without writing"
    assert {f"!{name.rstrip('/')}" for name in copied} == {
        line for line in (folder / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }


def test_a_folder_is_written_again_and_a_strangers_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "ship"
    written(folder)
    assert written(folder)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(InvalidInputError, match=r"mine is not empty, and not from here"):
        written(tmp_path / "mine")
