"""Puts what came by value with the train function where pickle looks for it: into the module of that name.

Else a train function could not pickle objects of the script's own classes (`torch.save(model)`, process pools, RPC):
pickle writes a name down only if it leads to the very same object.
"""

from __future__ import annotations

import functools
import sys
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any


def expose(function: Any) -> None:
    """Put a function that was loaded by value, and everything that it refers to, into its module."""
    while isinstance(function, functools.partial):
        function = function.func
    owner = getattr(function, "__self__", function)
    kind = owner if isinstance(owner, type) else type(owner)
    plain = getattr(function, "__func__", function)
    namespace = getattr(plain, "__globals__", None) or getattr(vars(kind).get("__call__"), "__globals__", {})
    _fill(namespace.get("__name__"), namespace)
    if kind.__module__ == "__main__":
        _fill("__main__", {kind.__name__: kind})


def _fill(name: object, names: dict[str, Any]) -> None:
    if not isinstance(name, str):
        return
    module = sys.modules.get(name)
    if module is None:
        module = sys.modules[name] = _Part(name)
        module.__file__ = names.get("__file__")
    if vars(module) is not names:  # it was imported, and is what it says
        vars(module).update({key: value for key, value in names.items() if not key.startswith("__")})


class _Part(ModuleType):
    """A module of which only what the function refers to has come along; the rest is in its file, if that is here."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            return getattr(self._whole(), name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    @functools.cache  # noqa: B019 - a module lives as long as its process
    def _whole(self) -> ModuleType:
        for finder in sys.meta_path:
            spec = finder.find_spec(self.__name__, None)
            if spec is not None and spec.loader is not None:
                module = module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
        return ModuleType(self.__name__)
