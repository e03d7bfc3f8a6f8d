"""Makes a module of ours the one that an older library's name means, with everything below it.

Each is one module under two names, and keeps its own: what is pickled refers to `cargobike.compat`, which is there
wherever a worker is.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

ROOM: Final = "cargobike.compat"


class _Same:
    """Loads a module under another name: the very same module."""

    def __init__(self, ours: str) -> None:
        self._ours = ours
        self._spec: ModuleSpec | None = None

    def create_module(self, _spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._ours)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # which the import system has just replaced


class _Finder:
    """Finds what lies below the names that ours stand in for; a library for each name."""

    def __init__(self) -> None:
        self.libraries: set[str] = set()

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        library, _, below = name.partition(".")
        if library not in self.libraries or (below and not _is_there(f"{ROOM}.{name}")):
            return None
        return ModuleSpec(name, _Same(f"{ROOM}.{name}"))  # type: ignore[arg-type]  # it has what a loader needs


_finder = _Finder()


def stand_in(library: str) -> None:
    """Let `import library`, and any module below it, give the module of that name in this room."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.libraries.add(library)
    sys.modules[library] = importlib.import_module(f"{ROOM}.{library}")


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # what it would lie in is no package
        return False
