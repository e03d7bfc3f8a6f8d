"""Does something to a module once it is there: at once if it is imported already, else when it will be."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

Do = Callable[[ModuleType], object]


def when_imported(name: str, do: Do) -> None:
    """Call a function with a module, now or right after its first import."""
    module = sys.modules.get(name)
    if module is not None:
        do(module)
        return
    for finder in sys.meta_path:
        if isinstance(finder, _Watch) and finder.name == name:
            finder.todo.append(do)
            return
    sys.meta_path.insert(0, _Watch(name, [do]))


class _Watch(importlib.abc.MetaPathFinder):
    """A finder that finds one module, as the usual one does, and stays until then."""

    def __init__(self, name: str, todo: list[Do]) -> None:
        self.name = name
        self.todo = todo

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return how to import the module, so that we hear of it."""
        if name != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            sys.meta_path.remove(self)
            spec.loader = _Telling(spec.loader, self.todo)
        return spec


class _Telling(importlib.abc.Loader):
    """A loader that tells when it is done, and leaves no trace of itself in the module."""

    def __init__(self, loader: Any, todo: list[Do]) -> None:
        self._loader = loader
        self._todo = todo

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Create the module as it would have been created."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, then tell."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for do in self._todo:
            do(module)
