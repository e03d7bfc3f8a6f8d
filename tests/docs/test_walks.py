"""The walks through the code in docs/architecture.md name files and functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "cargobike"
PLACE = re.compile(r"`((?:\w+/)*\w+\.py)(?::([\w.]+))?`")


def places() -> list[tuple[str, str]]:
    walks = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Three walks")[2]
    return PLACE.findall(walks)


def names_in(path: Path) -> set[str]:
    """Return the functions, classes and methods that a file defines."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return names


def test_every_place_on_a_walk_exists() -> None:
    files = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")]
    missing = []
    for file, name in places():
        found = [path for path in files if path == file or path.endswith("/" + file)]
        if not found or (name and not any(name in names_in(SOURCE / path) for path in found)):
            missing.append(f"{file}:{name}" if name else file)
    assert missing == []


def test_the_walks_are_long_enough_to_be_some() -> None:
    assert len(places()) > 40
