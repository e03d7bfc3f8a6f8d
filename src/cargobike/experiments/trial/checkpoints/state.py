"""How one state becomes files, and files become the state again.

Reading a checkpoint may run code: pickles and torch files hold objects. That is as safe as the project
folder is: these are the user's own files, written by the user's own train function. Torch files are first
read with `weights_only=True`, which runs nothing, and only if they hold more than tensors and plain data
without it.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import cloudpickle

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.experiments.trial.checkpoints.files import HashingFile, Kind, StoredState, WritesItself, copy_path

_LOG = logging.getLogger(__name__)
_MISTAKES_SHOWN = 5
_SEARCH_LIMIT = 50


def write_state(state: object, folder: Path) -> StoredState:
    """Write a state into an empty folder; files are flushed to disk, folders are not.

    Raises:
        InvalidInputError: If the state cannot be written, naming the parts that are to blame.
    """
    if isinstance(state, Path):
        return copy_path(state, folder)
    if isinstance(state, bytes):
        stored = StoredState("bytes", "state.bin")
        with HashingFile(stored, folder, stored.entry) as file:
            file.write(state)
        return stored
    if hasattr(state, "write_into"):
        return cast("WritesItself", state).write_into(folder)
    return _write_object(state, folder)


def warn_if_path(state: object) -> None:
    """Say so if a text is saved that names a file: the file may have been meant."""
    if isinstance(state, str) and len(state) < 1000 and "\0" not in state and os.path.exists(state):
        _LOG.warning(
            "checkpoint.save(%r) saves this text itself. To save the file or folder, pass Path(%r).", state, state
        )


def read_state(kind: Kind, path: Path) -> Any:
    """Return what `write_state` was given; of files and folders the path of the stored copy."""
    if kind == "bytes":
        return path.read_bytes()
    if kind in {"file", "folder", "sharded"}:
        return path
    try:
        if kind == "torch":
            return _load_torch(path)
        with path.open("rb") as file:
            return pickle.load(file)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise StoreError(
            f"The checkpoint {path} is intact, but its state could not be rebuilt: "
            f"{type(error).__name__}: {error}. It needs the classes and libraries with which it was saved; "
            "saving plain data, such as a state_dict, avoids that."
        ) from error


class _TensorFoundError(Exception):
    """Interrupts a pickler: the state holds tensors, which torch stores better."""


def _refuse_tensors(obj: object) -> None:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(obj, (torch.Tensor, torch.UntypedStorage)):
        raise _TensorFoundError


class _PlainPickler(pickle.Pickler):
    def reducer_override(self, obj: object) -> Any:
        _refuse_tensors(obj)
        return NotImplemented


class _ThoroughPickler(cloudpickle.Pickler):  # type: ignore[misc] # cloudpickle is untyped
    """Also pickles, by value, what was defined in a notebook or in `__main__`."""

    def reducer_override(self, obj: object) -> Any:
        _refuse_tensors(obj)
        return super().reducer_override(obj)


_Dump = Callable[[object, HashingFile], None]


def _dump_plainly(state: object, file: HashingFile) -> None:
    # Without torch there is nothing to look for, and the plain pickler is the faster one.
    make = _PlainPickler if "torch" in sys.modules else pickle.Pickler
    make(file, protocol=5).dump(state)


def _dump_thoroughly(state: object, file: HashingFile) -> None:
    _ThoroughPickler(file, protocol=5).dump(state)


def _dump_torch(state: object, file: HashingFile) -> None:
    sys.modules["torch"].save(state, file)


def _dump_torch_thoroughly(state: object, file: HashingFile) -> None:
    sys.modules["torch"].save(state, file, pickle_module=cloudpickle)


def _write_object(state: object, folder: Path) -> StoredState:
    try:
        try:
            return _write_either(_dump_plainly, _dump_thoroughly, state, folder, StoredState("pickle", "state.pkl"))
        except _TensorFoundError:
            return _write_either(_dump_torch, _dump_torch_thoroughly, state, folder, StoredState("torch", "state.pt"))
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise _unpicklable(state, error) from error


def _write_either(first: _Dump, second: _Dump, state: object, folder: Path, stored: StoredState) -> StoredState:
    try:
        return _write_file(first, state, folder, stored)
    except (_TensorFoundError, OSError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - the second way tells whether the state is to blame
        return _write_file(second, state, folder, stored)


def _write_file(dump: _Dump, state: object, folder: Path, stored: StoredState) -> StoredState:
    try:
        with HashingFile(stored, folder, stored.entry) as file:
            dump(state, file)
    except BaseException:
        (folder / stored.entry).unlink()
        raise
    return stored


def _load_torch(path: Path) -> Any:
    import torch  # noqa: PLC0415 - heavy, and needed only where tensors were saved

    def to_device(storage: Any, location: str) -> Any:
        # A checkpoint may come back on a machine without the device that it was saved on.
        return None if _has_device(torch, location) else storage

    try:
        return torch.load(path, map_location=to_device, weights_only=True)
    except pickle.UnpicklingError:
        return torch.load(path, map_location=to_device, weights_only=False)


def _has_device(torch: Any, location: str) -> bool:
    name, _, index = location.partition(":")
    if name == "cuda":
        return bool(torch.cuda.is_available()) and int(index or 0) < torch.cuda.device_count()
    if name == "mps":
        return bool(torch.backends.mps.is_available())
    return True


def _unpicklable(state: object, error: Exception) -> InvalidInputError:
    culprits = list(_find_unpicklable(state, "state", set()))
    mistakes = [f"{where} is a {_type_name(obj)}" for where, obj in culprits[:_MISTAKES_SHOWN]]
    if len(culprits) > _MISTAKES_SHOWN:
        mistakes.append(f"and {len(culprits) - _MISTAKES_SHOWN} more")
    return InvalidInputError(
        f"This state cannot be saved as a checkpoint: {type(error).__name__}: {error}. "
        "Save what is needed to go on, as data: a state_dict, arrays, numbers; leave out open files, locks, "
        "generators and loaders.",
        mistakes,
    )


def _find_unpicklable(obj: object, where: str, seen: set[int]) -> Iterator[tuple[str, object]]:
    """Yield the innermost parts that cannot be pickled, each with the expression that reaches it."""
    if id(obj) in seen or _is_picklable(obj):
        return
    seen.add(id(obj))
    has_culprit = False
    for child_where, child in _parts(obj, where) if len(seen) <= _SEARCH_LIMIT else ():
        for culprit in _find_unpicklable(child, child_where, seen):
            has_culprit = True
            yield culprit
    if not has_culprit:
        yield where, obj


def _parts(obj: object, where: str) -> Iterator[tuple[str, object]]:
    if isinstance(obj, Mapping):
        yield from ((f"{where}[{key!r}]", value) for key, value in obj.items())
        return
    if isinstance(obj, (list, tuple)):
        yield from ((f"{where}[{index}]", value) for index, value in enumerate(obj))
        return
    if isinstance(obj, (type, types.FunctionType)):
        return
    try:
        # What pickle would look at, so that attributes an object leaves out are not blamed.
        reduced = obj.__reduce_ex__(5)
    except Exception:  # noqa: BLE001 - then the object itself is to blame
        return
    state = reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else None
    for part in state if isinstance(state, tuple) else (state,):
        if isinstance(part, dict):
            yield from ((f"{where}.{name}", value) for name, value in part.items())


class _Nowhere:
    def write(self, data: bytes | memoryview) -> int:
        return len(data)


def _is_picklable(obj: object) -> bool:
    try:
        cloudpickle.Pickler(_Nowhere(), protocol=5).dump(obj)
    except Exception:  # noqa: BLE001 - any exception of a user's __reduce__ means no
        return False
    return True


def _type_name(obj: object) -> str:
    kind = type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
