"""Takes a train function from a Python file, whatever else the file does when it is imported."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from cargobike.core.errors import FunctionError, nearest
from cargobike.core.source_code import parse_module

log = logging.getLogger(__name__)

_importing: list[str] = []


class LaunchedOnImport(BaseException):
    """A file launches an experiment while it is imported for one; not an error, so that no file catches it."""


def stop_launch_on_import() -> None:
    """End the import of a file that launches an experiment itself, for what stands before the launch is what counts.

    Raises:
        LaunchedOnImport: If this is called by a file that is being imported for its train function.
    """
    if _importing:
        raise LaunchedOnImport(_importing[-1])


@contextlib.contextmanager
def importing(file: str) -> Iterator[None]:
    """While entered, a file is run for its train function; it may fail, and end where it launches an experiment.

    Raises:
        FunctionError: If the file fails.
    """
    _importing.append(file)
    try:
        yield
    except LaunchedOnImport:
        log.warning(
            "%s launches an experiment when it is imported; that, and what follows it, was left out. Put it under "
            '`if __name__ == "__main__":`.',
            file,
        )
    except (Exception, SystemExit) as error:
        raise FunctionError(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        _importing.pop()


def load_from_file(reference: str) -> Callable[..., Any]:
    """Return the function that `"file.py:function"` names.

    The file that is running as the main program is not imported again: its function is taken as it is. If a file
    launches an experiment when it is imported, the import ends there, and what was defined before is used.

    Raises:
        FunctionError: If there is no such file or function, or the file cannot be imported.
    """
    path_text, _, name = reference.rpartition(":")
    path = Path(path_text).expanduser()
    if not path_text or not name:
        raise FunctionError(f"{reference!r} names no function; {_how_to_name(reference.rstrip(':'))}")
    if path.suffix != ".py" or not path.is_file():
        raise FunctionError(f"{path_text!r} is not a Python file; looked in {Path.cwd()}")
    module = _main_program(path, name) or _imported(path, path_text)
    names = [key for key, value in vars(module).items() if inspect.isfunction(value)]
    if not callable(getattr(module, name, None)):
        raise FunctionError(
            f"{path_text} has no function {name!r}; it has {', '.join(names) or 'none'}.{nearest(name, names)}"
        )
    function: Callable[..., Any] = getattr(module, name)
    return function


def functions_in(path: Path) -> dict[str, str]:
    """Return the functions that a file defines, each with the first line of its docstring; the file is not run."""
    try:
        tree = parse_module(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"))
    return {node.name: (ast.get_docstring(node) or "").partition("\n")[0] for node in functions}


def _how_to_name(file: str) -> str:
    names = list(functions_in(Path(file).expanduser()))
    if not names:
        return 'write "file.py:function"'
    return f"write {' or '.join(repr(f'{file}:{name}') for name in names[:5])}"


def _main_program(path: Path, name: str) -> ModuleType | None:
    """Return the main program, if it is this file and has come as far as the function."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    is_it = file is not None and Path(file).exists() and path.samefile(file)
    return main if is_it and callable(getattr(main, name, None)) else None


def _imported(path: Path, path_text: str) -> ModuleType:
    module_name = _module_name(path)
    spec = importlib.util.spec_from_file_location(module_name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    is_first = sys.path[:1] == [folder]  # from an earlier launch
    if not is_first:
        sys.path.insert(0, folder)
    sys.modules[module_name] = module
    try:
        with importing(path_text):
            spec.loader.exec_module(module)
    except FunctionError:
        del sys.modules[module_name]
        if not is_first:
            del sys.path[0]
        raise
    cloudpickle.register_pickle_by_value(module)
    return module


def _module_name(path: Path) -> str:
    """Return the name that the file would be imported by, or another one if a different module has that name."""
    loaded = getattr(sys.modules.get(path.stem), "__file__", None)
    is_taken = path.stem in sys.modules and (loaded is None or Path(loaded).resolve() != path.resolve())
    return f"{path.stem}_of_{path.resolve().parent.name}" if is_taken else path.stem
