"""What the process of a step needs, packed when the step is asked for: later its arguments may have changed."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from cargobike.core.errors import InvalidInputError
from cargobike.pipelines.steps.current import Askable
from cargobike.pipelines.values import passing, pickling
from cargobike.pipelines.values.code import fingerprint
from cargobike.pipelines.values.pickling import Promise
from cargobike.workers.runner import is_library


class Packed(NamedTuple):
    """What the process of a step needs."""

    function: bytes
    arguments: bytes
    promises: list[Promise]
    libraries: list[str]
    folder: str
    engine: str


class Packing:
    """Packs steps; each function once, however often it is asked for.

    Args:
        files: What is in the files of the user's modules that steps import, by the names of the modules.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._codes: dict[int, tuple[Askable, str]] = {}
        self._functions: dict[int, tuple[Askable, bytes, list[str]]] = {}

    def code(self, step: Askable) -> str:
        """Return the fingerprint of a step's code, with its modules as they were when the run began."""
        if id(step) not in self._codes:
            self._codes[id(step)] = step, fingerprint(step.function, self._files)
        return self._codes[id(step)][1]

    def pack(self, step: Askable, args: Sequence[Any], kwargs: Mapping[str, Any], promises: list[Promise]) -> Packed:
        """Pack a step and its arguments.

        Raises:
            InvalidInputError: If the function cannot be sent to another process.
        """
        if id(step) not in self._functions:
            try:
                data = pickling.dump(step.function)
            except Exception as error:
                raise InvalidInputError(
                    f"The step {step.name} cannot be sent to a process of its own ({type(error).__name__}: {error}). "
                    "Make such things (locks, open files, connections) inside the function."
                ) from error
            # The step is kept too: the number of an object that is gone is given again.
            self._functions[id(step)] = step, data, _libraries(step.function)
        _, function, libraries = self._functions[id(step)]
        return Packed(
            function, passing.pack(args, kwargs, promises), promises, libraries, os.getcwd(), step.options.engine
        )


def _libraries(function: Callable[..., Any]) -> list[str]:
    """Return the installed libraries that the file of a function has imported, so that all its steps find them.

    So do those that the user's own modules have imported that this file uses: every step would import them again.
    """
    libraries: set[str] = set()
    seen = {"__main__"}
    to_read = [getattr(inspect.unwrap(function), "__globals__", {})]
    while to_read:
        values = list(to_read.pop().values())
        names = {value.__name__ for value in values if isinstance(value, ModuleType)}
        names |= {getattr(value, "__module__", None) or "" for value in values if callable(value)}
        for name in names - seen:
            seen.add(name)
            if name not in sys.modules or name in sys.builtin_module_names:
                continue
            if is_library(name):
                libraries.add(name)
            else:
                to_read.append(vars(sys.modules[name]))
    return sorted(libraries)
