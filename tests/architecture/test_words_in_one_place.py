"""Names that several rooms share are spelled in one file each."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from architecture import layers
from architecture.import_graph import Module, read_package

SOURCE = Path(__file__).resolve().parents[2] / "src" / layers.PACKAGE


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    return read_package(SOURCE)


def spelled_elsewhere(modules: dict[str, Module], home: str, is_meant: Callable[[str], bool]) -> list[str]:
    """Return a sentence for each literal that is meant and stands outside its home; docstrings do not count."""
    places = [
        (module.file, f"{module.file}:{line} spells {text!r}")
        for module in modules.values()
        for line, text in _literals(module.tree)
        if is_meant(text)
    ]
    assert any(file == home for file, _ in places)
    return [sentence for file, sentence in places if file != home]


def _literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    remarks = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in remarks:
            yield node.lineno, node.value


def test_environment_variables_are_spelled_in_settings_alone(modules: dict[str, Module]) -> None:
    is_variable = re.compile(r"\bCARGOBIKE_[A-Z]").search
    assert spelled_elsewhere(modules, "core/settings.py", lambda text: bool(is_variable(text))) == []
