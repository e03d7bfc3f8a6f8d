"""Reads Python source into a tree, in any number of threads at once.

CPython 3.11 counts the depth of the tree in a place that all threads share: when two build one at the same time, either
may end with a `SystemError` although its source is fine (fixed in 3.12). Code of users may do it beside ours, so a lock
alone is not enough.
"""

from __future__ import annotations

import ast
import threading
import time
from typing import Final

_TRIES: Final = 20
_turns = threading.Lock()


def parse_module(source: str | bytes) -> ast.Module:
    """Return the tree of a file's content.

    Raises:
        SyntaxError: If it is not Python.
        ValueError: If it holds a null byte.
    """
    tree = _parse(source, "exec")
    assert isinstance(tree, ast.Module)
    return tree


def parse_expression(source: str) -> ast.Expression:
    """Return the tree of an expression, with the same exceptions."""
    tree = _parse(source, "eval")
    assert isinstance(tree, ast.Expression)
    return tree


def code_of_notebook(text: str) -> str:
    """Return the Python of a notebook's cells, without what is meant for the notebook's program itself.

    Raises:
        ValueError: If it is not a notebook.
    """
    import json  # noqa: PLC0415 - for notebooks only, and every search space loads this module

    notebook = json.loads(text)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise ValueError("it is not a notebook: it has no list of cells")
    code: list[str] = []
    for cell in cells:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        lines = ("".join(map(str, source)) if isinstance(source, list) else str(source)).splitlines()
        if lines and lines[0].startswith("%%"):
            continue
        code += [line for line in lines if not line.lstrip().startswith(("%", "!"))] + [""]
    return "\n".join(code)


def _parse(source: str | bytes, mode: str) -> ast.AST:
    for tries_left in range(_TRIES - 1, -1, -1):
        try:
            with _turns:
                return ast.parse(source, mode=mode)
        except SystemError:
            if not tries_left:
                raise
            time.sleep(0.001)  # for the thread that was building a tree too
    raise AssertionError("unreachable")
