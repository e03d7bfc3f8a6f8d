"""A program as a person wrote it: a script or a notebook, and what it expects to find without saying so."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cargobike.core.errors import InvalidInputError
from cargobike.core.source_code import code_of_notebook, parse_module

SPARK_NAMES: Final = frozenset({"spark", "sc", "sqlContext"})
"""What notebooks on a Spark cluster find defined."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that can be run.

    Attributes:
        path: Where it is.
        code: Its Python; of a notebook the cells, without lines for the notebook's program itself.
        expects: Names of `SPARK_NAMES` that it uses and does not define.
    """

    path: Path
    code: str
    expects: frozenset[str]


def read_program(name: str) -> Program:
    """Read a script or a notebook.

    Raises:
        InvalidInputError: If there is no such file, or it is not Python.
    """
    path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InvalidInputError(f"{name} cannot be read: {why}. Give a script (.py) or a notebook (.ipynb).") from error
    try:
        code = code_of_notebook(text) if path.suffix == ".ipynb" else text
        tree = parse_module(code)
    except (SyntaxError, ValueError) as error:
        raise InvalidInputError(f"{name} is not Python: {error}") from error
    return Program(path, code, _free_names(tree) & SPARK_NAMES)


def _free_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that are read somewhere and bound nowhere, whatever the scope: none too few of them."""
    read, bound = set(), set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name):
                bound.add(name)
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=asname):
                bound.add(asname or name.partition(".")[0])
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                return frozenset()
            case _:
                pass
    return frozenset(read - bound)
