"""Modules and names in them that are loaded when they are first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from cargobike.core.errors import MissingLibraryError


def lazy_names(module: str, sources: Mapping[str, str]) -> Callable[[str], object]:
    """Return a `__getattr__` for a module whose names are defined in other modules.

    Args:
        module: The module's own name, for the error.
        sources: Where each name is defined.
    """

    def find(name: str) -> object:
        if name in sources:
            try:
                return getattr(importlib.import_module(sources[name]), name)
            except ModuleNotFoundError as error:
                if isinstance(error, MissingLibraryError) or (error.name or "").startswith("cargobike"):
                    raise
                words = f"{module}.{name} needs {error.name}, which is not installed here: pip install it first."
                raise MissingLibraryError(words, name=error.name) from error
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return find


def load(path: str) -> Any:
    """Import what a path names: a module, or something in a module.

    Example:
        >>> load("cargobike.core.version:__version__")
        '0.1.0'
    """
    module, _, name = path.partition(":")
    loaded: Any = importlib.import_module(module)
    for part in name.split(".") if name else ():
        loaded = getattr(loaded, part)
    return loaded
