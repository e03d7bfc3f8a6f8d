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


@pytest.mark.parametrize(
    "text",
    [
        "def train(x):\n    if x == 'net':\n        import numpy\n    return x\n",
        "def train(x):\n    match x:\n        case 'net':\n            import numpy\n    return x\n",
        "def train(x):\n    if x == 'net':\n        return net(x)\n    return x\n\ndef net(x):\n    import numpy\n",
        "def train(x):\n    return x\n\ndef plot(x):\n    import numpy\n",
        "import mine_model\n\ndef train(x):\n    return mine_model.SIZE\n",
        "def train(x):\n    return x\n\nif __name__ == '__main__':\n    import numpy\n",
    ],
    ids=["branch", "case", "call in a branch", "another function", "another module", "main"],
)
def test_what_may_never_be_run_does_not_count(project: Path, text: str) -> None:
    other = "SIZE = 3\n\ndef build(x):\n    import numpy\n"
    assert needed(project, f"import msgspec\n\n{text}", mine_model=other) == {"msgspec"}


@pytest.mark.parametrize(
    "text",
    [
        "def train(x):\n    return net(x)\n\ndef net(x):\n    import numpy\n",
        "def train(x):\n    return Net().fit(x)\n\nclass Net:\n    def fit(self, x):\n        import numpy\n",
        "def train(x):\n    for _ in range(3):\n        with open(x):\n            import numpy\n",
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n\ndef train(x):\n    return x\n",
        "import mine_model\n\ndef train(x):\n    return mine_model.build(x)\n",
        "def make():\n    import numpy\n\n    def train(x):\n        return x\n\n    return train\n\ntrain = make()\n",
        "train = lambda x: help_it(x)\n\ndef help_it(x):\n    import numpy\n",
    ],
    ids=["function", "class", "loop", "try", "own module", "closure", "lambda"],
)
def test_what_the_function_calls_counts(project: Path, text: str) -> None:
    assert needed(project, text, mine_model="def build(x):\n    import numpy\n") == {"numpy"}


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


def test_a_library_may_say_where_it_is_by_a_path(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project / "site-packages" / "by_path"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(folder.parent))
    spec = importlib.import_module("by_path").__spec__
    assert spec is not None
    spec.origin, spec.submodule_search_locations = None, [folder]  # type: ignore[list-item] # as Transformers does
    assert needed(project, "import by_path\n\ndef train(x):\n    return by_path\n") == {"by_path"}
