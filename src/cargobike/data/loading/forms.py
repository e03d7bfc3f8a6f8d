"""Batches as the framework wants them; a framework is loaded only when a batch for it is made."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from cargobike.core.errors import InvalidInputError, MissingLibraryError

_LIBRARIES = {"torch": "torch", "tensorflow": "tensorflow", "jax": "jax.numpy"}
_FUNCTIONS = {"torch": "from_numpy", "tensorflow": "convert_to_tensor", "jax": "asarray"}


def converter(to: str) -> Callable[[Any], Any] | None:
    """Return what turns a batch of NumPy arrays into one of the framework's; `None` if nothing has to be done.

    Raises:
        MissingLibraryError: If the framework is not installed.
    """
    if to not in _LIBRARIES:
        return None
    try:
        library: Any = importlib.import_module(_LIBRARIES[to])
    except ImportError as error:
        raise MissingLibraryError(f"to={to!r} needs {to}, which is not installed here.", name=to) from error
    one = cast("Callable[[Any], Any]", getattr(library, _FUNCTIONS[to]))

    def arrays(batch: Any) -> Any:
        if isinstance(batch, np.ndarray):
            return _tensor(batch, one, to)
        if isinstance(batch, Mapping):
            return {name: arrays(value) for name, value in batch.items()}
        if isinstance(batch, tuple | list):
            return type(batch)(arrays(value) for value in batch)
        return batch

    return arrays


def _tensor(array: Any, convert: Callable[[Any], Any], to: str) -> Any:
    if array.dtype == object:
        if len(array) and isinstance(array[0], np.ndarray):
            return [convert(each) for each in array]
        if to == "tensorflow":
            return convert(list(array))
        raise InvalidInputError(
            f"A batch holds Python objects such as {array[0]!r:.60}, of which {to} makes no tensors. Turn them into "
            "numbers in transform, or name the columns to read with columns=[…]."
        )
    if array.dtype.kind in "Mm":
        array = array.view(np.int64)
    return convert(array)
