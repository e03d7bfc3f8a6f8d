"""Finds a train function, and checks it against the parameters that it will get."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from cargobike.core.errors import FunctionError, SignatureError, nearest

_REPORTER = "reporter"
TrainFunction = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Train:
    """A train function and what we know about it.

    Attributes:
        function: The callable itself.
        title: Its name in records, such as `digits.py:train`.
        wants_reporter: Whether it has a parameter named `reporter`.
    """

    function: TrainFunction
    title: str
    wants_reporter: bool

    @property
    def plain(self) -> Any:
        """The plain function inside partials, methods and callable objects, as far as it can be found."""
        function: Any = self.function
        while isinstance(function, functools.partial):
            function = function.func
        if inspect.ismethod(function):
            return function.__func__
        if not inspect.isfunction(function) and not inspect.isclass(function):
            return type(function).__call__
        return function

    def source(self) -> str:
        """Return the function's source, empty if there is none."""
        try:
            return inspect.getsource(self.plain)
        except (OSError, TypeError):
            return ""


def find_train(train: object) -> Train:
    """Accept a callable or `"file.py:function"`."""
    if isinstance(train, str):
        train = _load_elsewhere(train) if "://" in train or ".ipynb" in train else _load(train)
    if not callable(train):
        raise FunctionError(
            f"train must be a function, {train!r} ({type(train).__name__}) was given; "
            'give the function itself, without calling it, or "file.py:function"'
        )
    parameters = _parameters(train)
    wants = parameters is not None and _REPORTER in parameters
    return Train(train, _title(train), wants)


def _load_elsewhere(reference: str) -> TrainFunction:
    from cargobike.experiments.asking.remote_source import load_function  # noqa: PLC0415 - most functions are not elsewhere

    return load_function(reference)


def _load(reference: str) -> TrainFunction:
    path_text, _, name = reference.rpartition(":")
    path = Path(path_text).expanduser()
    if not path_text or not name:
        raise FunctionError(f'{reference!r} names no function; write "file.py:function"')
    if path.suffix != ".py" or not path.is_file():
        raise FunctionError(f"{path_text!r} is not a Python file; looked in {Path.cwd()}")
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
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        if not is_first:
            del sys.path[0]
        raise FunctionError(f"{path_text} cannot be imported: {type(error).__name__}: {error}") from error
    names = [key for key, value in vars(module).items() if inspect.isfunction(value)]
    if not callable(getattr(module, name, None)):
        raise FunctionError(f"{path_text} has no function {name!r}; it has {names}.{nearest(name, names)}")
    cloudpickle.register_pickle_by_value(module)
    function: TrainFunction = getattr(module, name)
    return function


def _module_name(path: Path) -> str:
    """Return the name that the file would be imported by, or another one if a different module has that name."""
    loaded = getattr(sys.modules.get(path.stem), "__file__", None)
    is_taken = path.stem in sys.modules and (loaded is None or Path(loaded).resolve() != path.resolve())
    return f"{path.stem}_of_{path.resolve().parent.name}" if is_taken else path.stem


def _title(train: TrainFunction) -> str:
    function: Any = train
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", type(function).__qualname__)
    module = getattr(function, "__module__", type(function).__module__)
    if module == "__main__":
        file = getattr(sys.modules["__main__"], "__file__", None)
        module = os.path.basename(file) if file else "__main__"
    return f"{module}:{name}"


def _parameters(train: TrainFunction) -> Mapping[str, inspect.Parameter] | None:
    try:
        return inspect.signature(train).parameters
    except (ValueError, TypeError):
        return None  # written in C: whether the parameters fit shows only in the call


def check_signature(train: Train, names: Iterable[str], *, optional_names: Collection[str] = ()) -> None:
    """Make sure that the function can be called with these parameters, before anything starts.

    Args:
        train: The function.
        names: Every parameter that will be given.
        optional_names: Those of them that will not always be given.

    Raises:
        SignatureError: With every name that does not fit, and the nearest one that would.
    """
    parameters = _parameters(train.function)
    if parameters is None:
        return
    wanted = list(names)
    kinds = inspect.Parameter
    named = {
        key
        for key, parameter in parameters.items()
        if parameter.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    }
    takes_any = any(parameter.kind is kinds.VAR_KEYWORD for parameter in parameters.values())
    mistakes = []
    free = [key for key in parameters if key in named and key not in wanted and key != _REPORTER]
    for name in wanted:
        if name == _REPORTER and train.wants_reporter:
            mistakes.append(f"{name!r} is filled by Cargobike and cannot be searched")
        elif name not in named and not takes_any:
            mistakes.append(f"{name!r} is given, but the function has no such parameter.{nearest(name, free)}")
    for key in optional_names:
        if key in named and parameters[key].default is kinds.empty:
            mistakes.append(f"{key!r} is given only sometimes: give it a default value in the function, such as None")
    for key, parameter in parameters.items():
        if key in wanted or key == _REPORTER or parameter.default is not kinds.empty:
            continue
        if parameter.kind is kinds.POSITIONAL_ONLY:
            mistakes.append(f"{key!r} is positional-only, and parameters are given by name")
        elif key in named:
            mistakes.append(f"{key!r} is needed by the function, but not given")
    if mistakes:
        signature = ", ".join(key for key in parameters)
        raise SignatureError(f"The parameters do not fit the function {train.title}({signature}):", mistakes)
