"""Modules that came with the train function: used where there is no file with their name."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType


def install(modules: Mapping[str, tuple[str, str, bool]]) -> None:
    """Make `import` find these modules, after everything that it finds by itself.

    Args:
        modules: For each name the source, the file that it was in, and whether it holds other modules.
    """
    sys.meta_path.append(_Finder(modules))


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def __init__(self, modules: Mapping[str, tuple[str, str, bool]]) -> None:
        self._modules = modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._modules:
            return None
        _, file, is_package = self._modules[fullname]
        return importlib.util.spec_from_loader(fullname, self, origin=file, is_package=is_package)

    def get_source(self, fullname: str) -> str:
        return self._modules[fullname][0]

    def is_package(self, fullname: str) -> bool:
        return self._modules[fullname][2]

    def exec_module(self, module: ModuleType) -> None:
        source, file, _ = self._modules[module.__name__]
        module.__file__ = file
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), vars(module))  # noqa: S102 - this is what loaders do
