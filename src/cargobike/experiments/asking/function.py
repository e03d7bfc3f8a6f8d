"""Finds a train function, and checks it against the parameters that it will get."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cargobike.core.errors import FunctionError, SignatureError, nearest
from cargobike.experiments.asking.importing import load_from_file
from cargobike.experiments.trial.command import Program
from cargobike.experiments.trial.command.arguments import ALL_PARAMETERS, SURROUNDINGS

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
        while isinstance(function, functools.partial) or _is_shell(function):
            function = function.func if isinstance(function, functools.partial) else function.__wrapped__
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


def _is_shell(function: Any) -> bool:
    """Tell whether an object only stands around a function, as `functools.update_wrapper` notes it."""
    return not inspect.isroutine(function) and not inspect.isclass(function) and "__wrapped__" in _vars_of(function)


def _vars_of(thing: object) -> dict[str, Any]:
    """Return the attributes that an object itself has."""
    return getattr(thing, "__dict__", {})


def find_train(train: object) -> Train:
    """Accept a callable or `"file.py:function"`."""
    if isinstance(train, str):
        train = _load_elsewhere(train) if "://" in train or ".ipynb" in train else load_from_file(train)
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


def _title(train: TrainFunction) -> str:
    if isinstance(train, Program):
        return train.title
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
    wanted = list(names)
    if isinstance(train.function, Program):
        _check_places(train.function, wanted)
        return
    parameters = _parameters(train.function)
    if parameters is None:
        return
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
        elif name in parameters and parameters[name].kind is kinds.POSITIONAL_ONLY:
            mistakes.append(f"{name!r} is positional-only, and parameters are given by name: remove the `/` behind it")
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


def _check_places(program: Program, names: Collection[str]) -> None:
    """Make sure that a command line has a place for each parameter, and a parameter for each place."""
    free = [name for name in program.places if name not in (*names, *SURROUNDINGS)]
    mistakes = [
        f"{name!r} is given, but nothing in the command stands for it: write {{{name}}} where it belongs, "
        f"or {{flags}} or {{overrides}} for all parameters.{nearest(name, free)}"
        for name in names
        if name not in program.places and not program.takes_any
    ]
    for name in free:
        if name in ALL_PARAMETERS:
            mistakes.append(f"{{{name}}} stands for all parameters only as an argument of its own")
        else:
            mistakes.append(
                f"{{{name}}} is in the command, but there is no such parameter; "
                f"braces that mean themselves are doubled: {{{{{name}}}}}"
            )
    if mistakes:
        raise SignatureError(f"The parameters do not fit the command {program!r}:", mistakes)
