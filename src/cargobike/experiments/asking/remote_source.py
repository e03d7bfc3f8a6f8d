"""Train functions in notebooks, and in files that lie anywhere: `s3://team/train.py:train`, `hdfs://…/search.ipynb`."""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import cloudpickle

from cargobike.core.errors import FunctionError, MissingLibraryError, nearest
from cargobike.core.source_code import code_of_notebook, parse_module
from cargobike.experiments.asking.importing import importing
from cargobike.store.files.storages import open_storage

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_DEFAULT = "train"


def load_function(reference: str) -> Callable[..., Any]:
    """Return the function that a reference names, or `train` if it names none.

    From a notebook everything is run that defines something (imports, functions, classes, values). Bare expressions are
    not: they plot, print, or launch the very experiment that the function is loaded for.

    Raises:
        FunctionError: If there is no such file or function, or the code fails.
    """
    location, name = _split(reference)
    source = _read(location)
    try:
        tree = parse_module(code_of_notebook(source) if location.endswith(".ipynb") else source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FunctionError(f"{location} cannot be read as Python: {error}") from error
    if location.endswith(".ipynb"):
        tree.body = [statement for statement in tree.body if not _only_does_something(statement)]
        source = ast.unparse(tree)
    module = ModuleType(re.sub(r"\W", "_", PurePosixPath(location).stem))
    module.__file__ = location
    linecache.cache[location] = (len(source), None, source.splitlines(keepends=True), location)
    sys.modules.setdefault(module.__name__, module)
    if not _URL.match(location):
        sys.path.insert(
            0, str(Path(location).expanduser().resolve().parent)
        )  # so that it can import the files beside it
    with importing(location):
        exec(compile(source, location, "exec"), vars(module))  # noqa: S102 - it is the user's own code, as with any import
    names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    function = getattr(module, name, None)
    if not callable(function):
        raise FunctionError(
            f"{location} has no function {name!r}; it has {', '.join(names) or 'none'}.{nearest(name, names)}"
        )
    cloudpickle.register_pickle_by_value(module)
    return function  # type: ignore[no-any-return]


def _split(reference: str) -> tuple[str, str]:
    location, _, name = reference.rpartition(":")
    if not name.isidentifier():
        location, name = reference, _DEFAULT
    if not location.endswith((".py", ".ipynb")):
        raise FunctionError(f'{reference!r} names no Python file or notebook; write "s3://bucket/file.py:function"')
    return location, name


def _read(location: str) -> str:
    try:
        if not _URL.match(location):
            return Path(location).expanduser().read_text(encoding="utf-8")
        scheme, _, rest = location.partition("://")
        folder, _, name = rest.rpartition("/")
        data = open_storage(f"{scheme}://{folder}").read(name)
        if data is None:
            raise FileNotFoundError("there is no such file")
        return data.decode("utf-8")
    except MissingLibraryError:
        raise
    except (OSError, ValueError) as error:
        raise FunctionError(f"{location!r} cannot be read: {error}") from error


def _only_does_something(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return True
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    called = (ast.unparse(node.func) for node in ast.walk(statement.value) if isinstance(node, ast.Call))
    return any(re.fullmatch(r"(cargobike\.)?experiment\.\w+|launch", name) for name in called)
