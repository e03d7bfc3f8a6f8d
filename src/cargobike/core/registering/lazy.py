"""Names of a module that are loaded when they are first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping


def lazy_names(module: str, sources: Mapping[str, str]) -> Callable[[str], object]:
    """Return a `__getattr__` for a module whose names are defined in other modules.

    Args:
        module: The module's own name, for the error.
        sources: Where each name is defined.
    """

    def find(name: str) -> object:
        if name in sources:
            return getattr(importlib.import_module(sources[name]), name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return find
