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


FILES = {
    "journal.jsonl",
    "snapshot.json",
    "payload.msgpack",
    "function.py",
    "sources.zip",
    "requirements.lock",
    "git.diff",
    "index.sqlite",
    "settings.toml",
    "project-key",
    "remote-url",
    "stdout.log",
    "stderr.log",
}
"""Files that only the layout names."""

LISTS_OF_FILES = ("store/files/uploading.py", "store/history/archive.py")
"""What is sent or packed, by names that are relative to an experiment and may lie elsewhere."""


def test_files_of_a_project_are_spelled_in_the_layout_alone(modules: dict[str, Module]) -> None:
    mistakes = spelled_elsewhere(modules, "core/layout.py", lambda text: text.rpartition("/")[2] in FILES)
    assert [mistake for mistake in mistakes if not mistake.startswith(LISTS_OF_FILES)] == []


def test_only_the_layout_knows_how_deep_an_experiment_lies(modules: dict[str, Module]) -> None:
    climbing = [
        f"{module.file}:{node.lineno}"
        for module in modules.values()
        if module.file not in {"core/layout.py", "experiments/trial/context.py"}
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith(".root.parent.parent")
    ]
    assert climbing == []
