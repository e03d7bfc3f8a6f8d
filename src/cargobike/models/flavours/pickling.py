"""Everything here that runs code of a file: pickles of functions, classes and objects.

What is pickled needs nothing outside its folder but installed libraries: functions and classes of the user's own
modules travel by value. Loading is refused where it was not announced.
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import pickle
import pickletools
import sys
import sysconfig
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import cloudpickle

from cargobike.core.errors import InvalidInputError, UntrustedError
from cargobike.core.installed import is_in_library
from cargobike.core.package import PACKAGE_FOLDER
from cargobike.models.flavours.files import reading
from cargobike.models.flavours.flavour import Saved

_REGISTERING: Final = threading.Lock()
"""cloudpickle knows by a global table what goes by value; another thread must not clear it meanwhile."""
_NOT_OWN: Final = (*{sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")}, PACKAGE_FOLDER + os.sep)


def write_pickle(value: Any, path: Path, what: str) -> tuple[str, ...]:
    """Write a pickle, and return the libraries that are needed to read it.

    Raises:
        InvalidInputError: If it cannot be pickled.
    """
    try:
        data = dumps(value)
    except Exception as error:
        raise InvalidInputError(
            f"{what} cannot be saved: {type(error).__name__}: {error}. Make such things (locks, open files, "
            "connections, sessions) when it is loaded: give a class that makes them in its __init__, or leave them "
            "out in __getstate__."
        ) from error
    path.write_bytes(data)
    return libraries_in(data)


def read_pickle(path: Path, saved: Saved) -> Any:
    """Read a pickle, which runs the code in it.

    Raises:
        UntrustedError: If `saved` says that loading runs no code.
        StoreError: If the file is missing, damaged, or needs what is not here.
    """
    announced(path, saved)
    with reading(path):
        return pickle.loads(path.read_bytes())


def announced(path: Path, saved: Saved) -> None:
    """Raise `UntrustedError` if loading runs code of a file, and `saved` says that it does not."""
    if not saved.runs_code:
        raise UntrustedError(
            f"Loading {path.name} runs the code in it, but the description of this model ({saved.flavour}) says that "
            "loading runs none. Do not load it unless you know who wrote it, and why it says so."
        )


def dumps(value: Any) -> bytes:
    """Pickle a value; functions and classes of modules that are not installed go by value."""
    own = [module for module in list(sys.modules.values()) if _is_own(module)]
    with _REGISTERING:
        known = cloudpickle.list_registry_pickle_by_value()
        registered = [module for module in own if module.__name__ not in known]
        for module in registered:
            cloudpickle.register_pickle_by_value(module)
        try:
            with io.BytesIO() as file:
                _Pickler(file).dump(value)
                return file.getvalue()
        finally:
            for module in registered:
                cloudpickle.unregister_pickle_by_value(module)


def libraries_in(data: bytes) -> tuple[str, ...]:
    """Return the installed libraries that a pickle names, without running it."""
    names = {_public_part(text) for text in _texts(data) if text in sys.modules}
    return tuple(sorted(name for name in names if _is_library(sys.modules.get(name.partition(".")[0]))))


def _public_part(module: str) -> str:
    """Return the part of a module's name that other versions of its library have, too."""
    parts = module.split(".")
    private = next((place for place, part in enumerate(parts) if part.startswith("_")), len(parts))
    return ".".join(parts[: max(private, 1)])


def _texts(data: bytes) -> set[str]:
    texts = set()
    for operation, argument, _ in pickletools.genops(data):
        if isinstance(argument, str) and operation.name != "STRING":
            texts.add(argument.partition(" ")[0])
    return texts


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc] # cloudpickle is untyped
    """Pickles modules of unusual kinds, such as `torch.classes`, by name."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ModuleType) and type(obj) is not ModuleType and sys.modules.get(obj.__name__) is obj:
            return importlib.import_module, (obj.__name__,)
        if isinstance(obj, functools._lru_cache_wrapper) and _is_own(sys.modules.get(obj.__module__)):
            return functools.lru_cache(**obj.cache_parameters()), (obj.__wrapped__,)
        return super().reducer_override(obj)


def _is_own(module: object) -> bool:
    """Tell whether a module is the user's: neither Python's, nor installed, nor ours."""
    if not isinstance(module, ModuleType) or module.__name__ == "__main__":
        return False
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py") or module.__name__ not in sys.modules:
        return False
    path = os.path.abspath(file)
    return not path.startswith(_NOT_OWN) and not is_in_library(path)


def _is_library(module: object) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and is_in_library(os.path.abspath(file))
