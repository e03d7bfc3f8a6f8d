"""Which libraries workers should have ready: installed ones that the function or the modules around it import."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cargobike.experiments.asking.function import find_train
from cargobike.experiments.asking.libraries import libraries_needed


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in [name for name in set(sys.modules) - before if name.startswith("mine")]:
        del sys.modules[name]


def needed(project: Path, text: str, **others: str) -> set[str]:
    for name, source in {"mine_train": text, **others}.items():
        (project / f"{name}.py").write_text(source)
    return set(libraries_needed(find_train(importlib.import_module("mine_train").train)))


def test_imports_at_the_top_and_inside_functions_count(project: Path) -> None:
    text = "import numpy as np\n\ndef train(x):\n    import msgspec.json\n    return x\n"
    assert needed(project, text) == {"numpy", "msgspec.json"}


def test_what_own_modules_import_counts_and_they_do_not(project: Path) -> None:
    text = "import mine_model\n\ndef train(x):\n    return x\n"
    assert needed(project, text, mine_model="import numpy\n") == {"numpy"}


def test_what_only_a_type_checker_imports_does_not_count(project: Path) -> None:
    text = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import numpy\nelse:\n    import msgspec\n\n"
        "def train(x):\n    return x\n"
    )
    assert needed(project, text) == {"msgspec"}


def test_neither_python_itself_nor_what_is_missing_counts(project: Path) -> None:
    text = "import json\n\ndef train(x):\n    import no_such_library\n    return x\n"
    assert needed(project, text) == set()


def test_a_slow_companion_is_made_ready_where_the_source_shows_its_use(project: Path) -> None:
    text = "def train(x):\n    import torch\n    return torch.optim.SGD\n"
    assert needed(project, text) == {"torch", "torch._dynamo"}


def test_keras_waits_for_a_function_that_chooses_its_backend(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    text = (
        "def train(x):\n    import os\n    os.environ['KERAS_BACKEND'] = 'jax'\n    import keras, numpy\n    return x\n"
    )
    assert needed(project, text) == {"numpy"}
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert set(libraries_needed(find_train(sys.modules["mine_train"].train))) == {"numpy", "keras"}
