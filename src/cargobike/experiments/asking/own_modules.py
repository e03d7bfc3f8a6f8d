"""The user's own modules around a train function, for machines that do not have their files."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from cargobike.core.installed import is_in_library
from cargobike.core.package import PACKAGE_FOLDER
from cargobike.core.source_code import parse_module

_NOT_OWN = (*{sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")}, PACKAGE_FOLDER + os.sep)
_MOST_BYTES = 32 << 20


def own_modules() -> dict[str, tuple[str, str, bool]]:
    """Return the sources of all modules that are loaded and not installed, and of those that they import.

    Returns:
        For each name its source, its file, and whether it is a package.
    """
    modules: dict[str, tuple[str, str, bool]] = {}
    waiting = [name for name, module in list(sys.modules.items()) if name != "__main__" and _is_own(module)]
    main = sys.modules.get("__main__")
    waiting += list(imported_by(source_of(getattr(main, "__file__", None))))
    room = _MOST_BYTES
    while waiting:
        name = waiting.pop()
        if name in modules:
            continue
        file, is_package = file_of(name)
        source = source_of(file)
        if file is None or (not source and not is_package):
            continue
        room -= len(source)
        if room < 0:
            break
        modules[name] = (source, file, is_package)
        waiting += [parent for parent in (name.rpartition(".")[0],) if parent]
        waiting += imported_by(source)
    return modules


def _is_own(module: object) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(module, ModuleType) and isinstance(file, str) and is_own_file(file)


def is_own_file(file: str) -> bool:
    """Tell whether a file is Python source of the user's own."""
    return file.endswith(".py") and not _is_installed(file)


def _is_installed(file: str) -> bool:
    """Tell whether a file belongs to Python, a library or Cargobike."""
    path = os.path.abspath(file)
    return path.startswith(_NOT_OWN) or is_in_library(path)


def file_of(name: str) -> tuple[str | None, bool]:
    """Return the file of one of the user's own modules, `None` for any other; and whether it is a package."""
    try:
        spec = getattr(sys.modules.get(name), "__spec__", None) or importlib.util.find_spec(name)
    except Exception:  # noqa: BLE001 - looking for a module imports its package, which may raise anything
        return None, False
    if spec is None:
        return None, False
    is_package = spec.submodule_search_locations is not None
    if spec.origin is None and is_package:  # a folder without __init__.py
        folders = [str(folder) for folder in spec.submodule_search_locations or ()]
        own = any(not _is_installed(folder) for folder in folders)
        return (os.path.join(folders[0], "__init__.py") if own and folders else None), True
    return (spec.origin if spec.origin and is_own_file(spec.origin) else None), is_package


def source_of(file: str | None) -> str:
    """Return the text of a Python file, empty if it cannot be read."""
    if not file or not file.endswith(".py"):
        return ""
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def imported_by(source: str) -> Iterator[str]:
    """Yield what a source imports, top-level or inside functions, as far as it may be the user's own."""
    try:
        tree = parse_module(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _may_be_own(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level and _may_be_own(node.module):
            yield node.module
            if file_of(node.module)[1]:  # only a package has modules in it; looking in another would import it
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _may_be_own(name: str) -> bool:
    top = name.partition(".")[0]
    return top not in sys.stdlib_module_names and top != "cargobike" and file_of(top)[0] is not None
