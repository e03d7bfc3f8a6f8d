"""Which modules travel with a train function: those that were written here, and no library."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cargobike.experiments.asking.own_modules import own_modules


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path; what is imported from it is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_module_comes_with_what_it_imports_even_inside_a_function(project: Path) -> None:
    write(
        project,
        mine_train="import mine_model\n\ndef train(x):\n    from mine_late import scale\n    return scale(x)\n",
        mine_model="SIZE = 3\n",
        mine_late="def scale(x):\n    return 2 * x\n",
        mine_unused="raise SystemExit\n",
    )
    importlib.import_module("mine_train")
    modules = own_modules()
    assert {name for name in modules if name.startswith("mine")} == {"mine_train", "mine_model", "mine_late"}
    assert modules["mine_model"] == ("SIZE = 3\n", str(project / "mine_model.py"), False)


def test_packages_come_with_their_parents(project: Path) -> None:
    write(project, mine_package__deep__leaf="X = 1\n", mine_train="from mine_package.deep import leaf\n")
    (project / "mine_package" / "__init__.py").write_text("")
    importlib.import_module("mine_train")
    modules = own_modules()
    assert [name for name in sorted(modules) if name.startswith("mine_package")] == [
        "mine_package",
        "mine_package.deep",
        "mine_package.deep.leaf",
    ]
    assert modules["mine_package"][2]
    assert modules["mine_package.deep"][2], "a folder without __init__.py is a package too"
    assert not modules["mine_package.deep.leaf"][2]


def test_libraries_stay_where_they_are(project: Path) -> None:
    write(project, mine_train="import numpy, msgspec.json, json, cargobike.trial\n")
    importlib.import_module("mine_train")
    tops = {name.partition(".")[0] for name in own_modules()}
    assert tops.isdisjoint({"numpy", "msgspec", "json", "cargobike"})


def test_libraries_of_another_environment_stay_too(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "other" / "lib" / "site-packages"
    write(elsewhere, mine_library__tools="X = 1\n")
    (elsewhere / "mine_library" / "__init__.py").write_text("from . import tools\n")
    monkeypatch.syspath_prepend(str(elsewhere))
    write(project, mine_train="import mine_library\n")
    importlib.import_module("mine_train")
    assert "mine_train" in own_modules()
    assert not [name for name in own_modules() if name.startswith("mine_library")]


def test_a_module_is_not_imported_in_order_to_find_it(project: Path) -> None:
    write(project, mine_train="def train(x):\n    from mine_heavy import X\n", mine_heavy="raise SystemExit(3)\n")
    importlib.import_module("mine_train")
    assert {"mine_train", "mine_heavy"} <= own_modules().keys()
    assert "mine_heavy" not in sys.modules


def test_a_package_that_cannot_be_imported_here_is_left_out(project: Path) -> None:
    write(project, mine_broken__part="X = 1\n", mine_train="def train(x):\n    from mine_broken.part import X\n")
    (project / "mine_broken" / "__init__.py").write_text("raise AssertionError('not on this system')\n")
    importlib.import_module("mine_train")
    modules = own_modules()
    assert "mine_train" in modules
    assert "mine_broken.part" not in modules


def test_what_cannot_be_read_is_left_out(project: Path) -> None:
    write(project, mine_train="import mine_strange\n", mine_strange="X = 1\n")
    importlib.import_module("mine_train")
    (project / "mine_strange.py").write_bytes(b"\xff\xfe nonsense")
    assert "mine_strange" not in own_modules()
    (project / "mine_train.py").write_text("this is not Python (")
    assert own_modules()["mine_train"][0] == "this is not Python (", "who imports it is told the mistake there"
