"""Modules and names in them that are loaded when they are first used."""

from __future__ import annotations

import contextlib
import gc
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cargobike.core.errors import MissingLibraryError


def lazy_names(module: str, sources: Mapping[str, str], *, extra: str = "") -> Callable[[str], object]:
    """Return a `__getattr__` for a module whose names are defined in other modules.

    Args:
        module: The module's own name, for the error.
        sources: Where each name is defined.
        extra: What of ours brings the libraries that they need, for the error.
    """

    def find(name: str) -> object:
        if name in sources:
            try:
                return getattr(importlib.import_module(sources[name]), name)
            except ModuleNotFoundError as error:
                raise in_words(error, f"{module}.{name}", extra) from error
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return find


def in_words(error: ModuleNotFoundError, what: str, extra: str = "") -> ImportError:
    """Return an error that says what needs the library that is missing, and how to install it.

    Args:
        error: What an import raised; if it is not about a library, it is returned as it is.
        what: What was to be loaded, for people.
        extra: What of ours brings the library.

    Example:
        >>> print(in_words(ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow"), "This", "data"))
        This needs pyarrow, which is not installed here: pip install 'cargobike[data]'
    """
    if isinstance(error, MissingLibraryError) or (error.name or "").startswith("cargobike"):
        return error
    command = f"pip install 'cargobike[{extra}]'" if extra else "pip install it first."
    return MissingLibraryError(f"{what} needs {error.name}, which is not installed here: {command}", name=error.name)


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


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Look for no garbage while many modules load: what they make is there to stay, and each look takes longer."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
