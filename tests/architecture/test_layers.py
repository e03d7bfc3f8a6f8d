"""Imports point down: no cycles, no sideways or upward imports, libraries only where they belong."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from architecture import layers
from architecture.import_graph import Module, find_cycles, read_package
from architecture.layer_table import PAGE, with_tables

SOURCE = Path(__file__).resolve().parents[2] / "src" / layers.PACKAGE


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    return read_package(SOURCE)


def expect_none(mistakes: list[str]) -> None:
    """Fail with every mistake on a line of its own."""
    if mistakes:
        pytest.fail("\n".join(mistakes), pytrace=False)


def test_no_module_imports_itself_through_others(modules: dict[str, Module]) -> None:
    expect_none([" and ".join(cycle) + " import each other" for cycle in find_cycles(modules)])


def test_imports_point_down(modules: dict[str, Module]) -> None:
    expect_none(layers.direction_mistakes(modules))


def test_libraries_stay_in_their_own_files(modules: dict[str, Module]) -> None:
    expect_none(layers.library_mistakes(modules, sys.stdlib_module_names))


def test_no_import_hides_in_a_function(modules: dict[str, Module]) -> None:
    expect_none(layers.deferred_mistakes(modules))


def test_only_the_command_line_prints(modules: dict[str, Module]) -> None:
    prints = [
        f"{module.file}:{node.lineno}"
        for module in modules.values()
        if layers.room_of(module.name) not in {"cli", "demo"}
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert prints == []


def test_long_files_are_listed_with_a_reason(modules: dict[str, Module]) -> None:
    too_long = {module.file for module in modules.values() if module.lines > layers.LOOK_TWICE}
    assert too_long == set(layers.LONG_FILES)


def test_rooms_state_their_job(modules: dict[str, Module]) -> None:
    silent = [
        module.file
        for module in modules.values()
        if module.file.endswith("__init__.py") and not ast.get_docstring(module.tree)
    ]
    assert silent == []


def test_the_tables_hold_nothing_that_is_gone(modules: dict[str, Module]) -> None:
    imports = [item for module in modules.values() for item in module.imports]
    imported = {item.target.partition(".")[0] for item in imports}
    deferred = {(item.file, item.target) for item in imports if item.deferred}
    assert set(layers.LIBRARIES) - imported == set()
    assert set(layers.DEFERRED) - deferred == set()


def test_the_page_on_architecture_shows_these_layers() -> None:
    text = PAGE.read_text()
    assert with_tables(text) == text, "run `make layer-table`, or python tests/architecture/layer_table.py"
