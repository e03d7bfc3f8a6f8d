from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pytest

from cargobike import experiment
from cargobike.core.errors import FunctionError
from cargobike.experiments.asking.function import find_train

CELLS = [
    ("code", "%matplotlib inline\nimport math\nFACTOR = 2\n"),
    ("markdown", "# not code"),
    ("code", "%%bash\nexit 1"),
    ("code", "!pip list\ndef train(x):\n    return math.floor(x) * FACTOR\n"),
    ("code", "from cargobike import experiment\nresult = experiment.launch(train, {'x': [1]})\nprint(result.best)\n"),
    ("code", "raise_if_run()"),
]


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    cells = [{"cell_type": kind, "source": text.splitlines(keepends=True)} for kind, text in CELLS]
    path = tmp_path / "search it.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    return path


def test_a_function_of_a_notebook_is_found_and_nothing_else_is_run(notebook: Path) -> None:
    assert find_train(f"{notebook}:train").function(3.5) == 6
    assert find_train(str(notebook)).function(1.2) == 2


def test_a_notebook_may_lie_anywhere(notebook: Path) -> None:
    with fsspec.open("memory://team/notebook.ipynb", "wt") as file:
        file.write(notebook.read_text())
    result = experiment.launch("memory://team/notebook.ipynb:train", {"x": [1, 2]}, workers=1, quiet=True)
    assert [trial.value for trial in result.trials] == [2.0, 4.0]


def test_a_file_may_lie_anywhere() -> None:
    with fsspec.open("memory://team/code.py", "wt") as file:
        file.write("def run(x):\n    return -x\n")
    assert find_train("memory://team/code.py:run").function(2) == -2


def test_what_cannot_be_found_is_said(notebook: Path) -> None:
    with pytest.raises(FunctionError, match=r"has no function 'trian'.*Did you mean 'train'"):
        find_train(f"{notebook}:trian")
    with pytest.raises(FunctionError, match="cannot be read"):
        find_train("memory://team/nothing.py:train")
    with pytest.raises(FunctionError, match="names no Python file or notebook"):
        find_train("memory://team/data.csv:train")
    notebook.write_text("not json")
    with pytest.raises(FunctionError, match="cannot be read as Python"):
        find_train(f"{notebook}:train")
