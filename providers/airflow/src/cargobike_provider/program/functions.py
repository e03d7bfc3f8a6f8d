"""Runs a plain function of the user."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from cargobike import project
from cargobike.errors import FunctionError

Arguments = dict[str, Any]
Origin = dict[str, Any]


def run_function(arguments: Arguments, _origin: Origin) -> Any:
    """Call a function with plain data, and return what it returns."""
    function = load_function(arguments["function"])
    args, kwargs = arguments["args"], arguments["kwargs"]
    if arguments.get("open_things"):
        args, kwargs = _open_things(args), _open_things(kwargs)
    result = function(*args, **kwargs)
    # A step of a pipeline, called outside of one, is called as the function that it is.
    return result.result() if type(result).__module__.startswith("cargobike.pipelines.") else result


def _open_things(value: Any) -> Any:
    """Return what a task was given with things of the project in the place of references to them."""
    from cargobike.core.registering.steps import Kept, open_kept  # noqa: PLC0415 - only few tasks need it

    if isinstance(value, dict):
        if isinstance(value.get("kind"), str) and isinstance(value.get("id"), str):
            return open_kept(Kept(value["kind"], value["id"]), project.current())
        return {name: _open_things(one) for name, one in value.items()}
    return [_open_things(one) for one in value] if isinstance(value, list) else value


def load_function(reference: str) -> Callable[..., Any]:
    """Return the function that `file.py:function` or `package.module:function` names.

    Raises:
        FunctionError: If there is no such file, module or function; says what there is.
    """
    place, separator, name = reference.rpartition(":")
    if not separator or not place or not name:
        raise FunctionError(
            f'{reference!r} names no function; write "path/file.py:function" or "package.module:function".'
        )
    module = _file(Path(place)) if place.endswith(".py") else _module(place)
    function: Any = module
    for part in name.split("."):
        if not hasattr(function, part):
            names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
            near = difflib.get_close_matches(name, names, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise FunctionError(f"{place} has no {name!r}; its functions are {', '.join(names) or 'none'}.{hint}")
        function = getattr(function, part)
    if not callable(function):
        raise FunctionError(f"{reference} is a {type(function).__name__}, and cannot be called.")
    result: Callable[..., Any] = function
    return result


def _file(path: Path) -> ModuleType:
    """Import a file as a script is run: modules that lie beside it can be imported."""
    path = path.expanduser().absolute()
    if not path.is_file():
        beside = sorted(other.name for other in path.parent.glob("*.py")) if path.parent.is_dir() else []
        hint = f" There is {', '.join(beside[:8])} in that folder." if beside else ""
        raise FunctionError(f"There is no file {path}.{hint}")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    # A name of its own: a file may be called like a module of a library.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FunctionError(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise FunctionError(
                f"{sys.executable} has no module {name!r}. Install it there, name a file (path/file.py:function), or "
                'add its folder to the extra "paths" of the connection.'
            ) from None
        raise
