"""Pickles of our own making: written by a process of a run, read back from the same project only.

What the project keeps is named instead of copied, and what another step returns is named by its place among the results
that the step is given.
"""

from __future__ import annotations

import importlib
import io
import pickle
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import cloudpickle

from cargobike.core.registering.steps import Kept


class Promise:
    """What a step will return."""

    number: int
    """The step."""


def is_kept(value: Any) -> bool:
    """Tell whether a value is a `Keepable`; asked of every argument, and much quicker than the protocol is."""
    return hasattr(type(value), "kept_as")


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Names promises and things of the project; collects the promises."""

    def __init__(self, file: io.BytesIO, promises: list[Promise], *, by_name: bool) -> None:
        super().__init__(file, protocol=5)
        self._promises = promises
        self._by_name = by_name

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, Promise):
            for place, promise in enumerate(self._promises):
                if promise is obj:
                    return "step", place
            self._promises.append(obj)
            return "step", len(self._promises) - 1
        if is_kept(obj):
            return "kept", *obj.kept_as()
        return None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and _travels_whole(obj):
            if self._by_name:
                return find_class, (obj.__qualname__,)
            return find_class, (obj.__module__, obj.__qualname__, cloudpickle.dumps(obj, protocol=5))
        # Some libraries have modules of a class of their own, which cloudpickle would try to copy.
        if isinstance(obj, ModuleType) and type(obj) is not ModuleType and sys.modules.get(obj.__name__) is obj:
            return importlib.import_module, (obj.__name__,)
        return super().reducer_override(obj)


def _travels_whole(kind: type) -> bool:
    """Tell whether a class would be copied, since other processes do not have its module: that of a script."""
    module = kind.__module__
    by_value = module in cloudpickle.list_registry_pickle_by_value()
    return (by_value or module == "__main__" or module not in sys.modules) and "<locals>" not in kind.__qualname__


homes: list[str] = []
"""The modules of the pipelines that run in this process; a script has another name when its run is resumed."""
_copies: dict[tuple[str, str], Any] = {}


def find_class(module: str, name: str, whole: bytes) -> Any:
    """Return a class of a script: the one that is here if there is one, so that its objects are of it; else a copy.

    A script is `__main__` where it is run and has a name of its own where it is imported: its classes are the same.
    """
    for candidate in (module, *homes):
        found: Any = sys.modules.get(candidate)
        for part in name.split("."):
            found = getattr(found, part, None)
        if isinstance(found, type):
            return found
    key = (homes[-1] if homes else module, name)
    if key not in _copies:
        _copies[key] = pickle.loads(whole)
    return _copies[key]


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, open_kept: Callable[[Kept], Any], results: Sequence[Callable[[], Any]]) -> None:
        super().__init__(io.BytesIO(data))
        self._open_kept = open_kept
        self._results = results

    def persistent_load(self, pid: Any) -> Any:
        what, *rest = pid
        return self._results[rest[0]]() if what == "step" else self._open_kept(Kept(*rest))


def dump(value: Any, promises: list[Promise] | None = None) -> bytes:
    """Pickle a value; promises in it are added to a list.

    Raises:
        Exception: Whatever objects raise that cannot be pickled.
    """
    with io.BytesIO() as file:
        _Pickler(file, [] if promises is None else promises, by_name=False).dump(value)
        return file.getvalue()


def to_compare(value: Any, promises: list[Promise] | None = None) -> bytes:
    """Pickle a value only to compare it: classes of scripts count by name, since their copies differ each time.

    Raises:
        Exception: Whatever objects raise that cannot be pickled.
    """
    with io.BytesIO() as file:
        _Pickler(file, [] if promises is None else promises, by_name=True).dump(value)
        return file.getvalue()


def load(data: bytes, open_kept: Callable[[Kept], Any], results: Sequence[Callable[[], Any]] = ()) -> Any:
    """Undo `dump`; only for what a process of the same project has written."""
    return _Unpickler(data, open_kept, results).load()
