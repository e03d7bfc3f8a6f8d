"""The checks of this folder find what they are for: each is shown a small package with one mistake."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from architecture import layers
from architecture.import_graph import Module, find_cycles, read_package


def package(root: Path, files: dict[str, str]) -> dict[str, Module]:
    for name, text in files.items():
        path = root / "cargobike" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_package(root / "cargobike")


@pytest.mark.parametrize(
    ("file", "statement", "mistake"),
    [
        ("core/ids.py", "import cargobike.search.grid", "upward"),
        ("core/ids.py", "from cargobike.search import grid", "upward"),
        ("core/ids.py", "from ..search import grid", "upward"),
        ("core/ids.py", "from cargobike import __version__", "upward"),
        ("store/journal.py", "from cargobike.search.grid import Grid", "sideways"),
        ("store/journal.py", "if TYPE_CHECKING:\n    from cargobike.search.grid import Grid", "sideways"),
        ("store/journal.py", "def f():\n    from cargobike.search.grid import Grid", "sideways"),
        ("training/torch.py", "from cargobike.analysis import scores", "sideways"),
        ("experiments/trial/program.py", "from cargobike.experiments.asking import goals", "is not below"),
        ("experiments/shed/spade.py", "from cargobike.experiments.asking import goals", "not in the table of inner"),
        ("cli/demo.py", "from cargobike.testing import engines", "for tests only"),
        ("cli/demo.py", "from cargobike.shed import spade", "'shed' is not in the layer table"),
        ("shed/spade.py", "", "'shed' is not in the layer table"),
    ],
)
def test_a_wrong_direction_is_found(tmp_path: Path, file: str, statement: str, mistake: str) -> None:
    rooms = ("search/grid.py", "analysis/scores.py", "testing/engines.py", "experiments/asking/goals.py")
    files = dict.fromkeys(("__init__.py", *rooms), "")
    mistakes = layers.direction_mistakes(package(tmp_path, files | {file: statement}))
    assert len(mistakes) == 1
    assert mistake in mistakes[0]


@pytest.mark.parametrize(
    ("file", "statement"),
    [
        ("search/random.py", "from cargobike.search.grid import Grid"),
        ("search/random.py", "from cargobike.core.records import Trial"),
        ("trial.py", "from cargobike.experiments.trial.context import current"),
        ("experiment.py", "from cargobike.experiments import front"),
        ("demo/command.py", "from cargobike import experiment"),
        ("testing/engines.py", "from cargobike import experiment"),
        ("ui/pages.py", "from cargobike.store import index"),
        ("core/ids.py", "import json"),
    ],
)
def test_a_right_direction_is_let_pass(tmp_path: Path, file: str, statement: str) -> None:
    rooms = (
        "search/grid.py",
        "core/records.py",
        "experiments/trial/context.py",
        "experiments/front.py",
        "store/index.py",
    )
    files = dict.fromkeys(("experiment.py", *rooms), "")
    assert layers.direction_mistakes(package(tmp_path, files | {file: statement})) == []


def test_a_cycle_is_found_through_a_type_checking_import(tmp_path: Path) -> None:
    modules = package(
        tmp_path,
        {
            "core/a.py": "from cargobike.core.b import B",
            "core/b.py": "from cargobike.core import c",
            "core/c.py": "if TYPE_CHECKING:\n    from cargobike.core.a import A",
            "core/d.py": "from cargobike.core.a import A",
        },
    )
    assert find_cycles(modules) == [["cargobike.core.a", "cargobike.core.b", "cargobike.core.c"]]


def test_a_library_outside_its_files_is_found(tmp_path: Path) -> None:
    modules = package(tmp_path, {"core/a.py": "import msgspec", "search/b.py": "import zmq, left_pad, os.path"})
    mistakes = layers.library_mistakes(modules, sys.stdlib_module_names)
    assert [mistake.split(":")[0] for mistake in mistakes] == ["search/b.py", "search/b.py"]
    assert "'left_pad' is not in the table" in mistakes[1]


def test_an_import_inside_a_function_is_found(tmp_path: Path) -> None:
    modules = package(tmp_path, {"core/a.py": "class A:\n    def f(self):\n        import json\n\nimport os"})
    mistakes = layers.deferred_mistakes(modules)
    assert len(mistakes) == 1
    assert mistakes[0].startswith("core/a.py:3 imports json inside a function")
