"""Train functions in notebooks, and in files that lie anywhere: `s3://team/train.py:train`, `hdfs://…/search.ipynb`."""

from __future__ import annotations

import ast
import json
import linecache
import re
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import cloudpickle

from cargobike.core.errors import FunctionError, MissingLibraryError, nearest

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_DEFAULT = "train"


def load_function(reference: str) -> Callable[..., Any]:
    """Return the function that a reference names, or `train` if it names none.

    From a notebook everything is run that defines something (imports, functions, classes, values). Bare expressions are
    not: they plot, print, or launch the very experiment that the function is loaded for.

    Raises:
        FunctionError: If there is no such file or function, or the code fails.
    """
    place, name = _split(reference)
    source = _read(place)
    try:
        tree = ast.parse(_code_of_notebook(source) if place.endswith(".ipynb") else source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FunctionError(f"{place} cannot be read as Python: {error}") from error
    if place.endswith(".ipynb"):
        tree.body = [statement for statement in tree.body if not _only_does_something(statement)]
        source = ast.unparse(tree)
    module = ModuleType(re.sub(r"\W", "_", PurePosixPath(place).stem))
    module.__file__ = place
    linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
    sys.modules.setdefault(module.__name__, module)
    if not _URL.match(place):
        sys.path.insert(0, str(Path(place).expanduser().resolve().parent))  # so that it can import the files beside it
    try:
        exec(compile(source, place, "exec"), vars(module))  # noqa: S102 - it is the user's own code, as with any import
    except (Exception, SystemExit) as error:
        raise FunctionError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
    names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    function = getattr(module, name, None)
    if not callable(function):
        raise FunctionError(f"{place} has no function {name!r}; it has {names}.{nearest(name, names)}")
    cloudpickle.register_pickle_by_value(module)
    return function  # type: ignore[no-any-return]


def _split(reference: str) -> tuple[str, str]:
    place, _, name = reference.rpartition(":")
    if not name.isidentifier():
        place, name = reference, _DEFAULT
    if not place.endswith((".py", ".ipynb")):
        raise FunctionError(f'{reference!r} names no Python file or notebook; write "s3://bucket/file.py:function"')
    return place, name


def _read(place: str) -> str:
    try:
        if not _URL.match(place):
            return Path(place).expanduser().read_text(encoding="utf-8")
        try:
            import fsspec  # noqa: PLC0415 - only for files that are elsewhere
        except ImportError as error:
            words = f"{place} is read with fsspec, which is missing: pip install fsspec"
            raise MissingLibraryError(words, name="fsspec") from error
        with fsspec.open(place, "rt", encoding="utf-8") as file:
            text: str = file.read()
            return text
    except (OSError, ValueError) as error:
        raise FunctionError(f"{place!r} cannot be read: {error}") from error
    except ImportError as error:
        raise MissingLibraryError(f"{place} cannot be read: {error}", name=error.name) from error


def _code_of_notebook(text: str) -> str:
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


def _only_does_something(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return True
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    called = (ast.unparse(node.func) for node in ast.walk(statement.value) if isinstance(node, ast.Call))
    return any(re.fullmatch(r"(cargobike\.)?experiment\.\w+|launch", name) for name in called)
