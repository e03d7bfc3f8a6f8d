"""Arrays as plain data, for files and messages: no pickle, and nothing that is larger than it says."""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

_TYPES: Final = {"<f8", "<f4", "<f2", "<i8", "<u8", "|u1"}


class Packed(msgspec.Struct, frozen=True, array_like=True):
    """An array: its type, its shape, its bytes."""

    type: str
    shape: tuple[int, ...]
    data: bytes


def pack(array: NDArray[Any]) -> Packed:
    """Return an array as plain data."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return Packed(little.dtype.str, array.shape, little.tobytes())


def unpack(packed: Packed, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Return the array that was packed, as a copy that can be written.

    Args:
        packed: What was packed.
        shape: What it must have; any if not given.

    Raises:
        ValueError: If it is no array that was packed here, or has another shape.
    """
    size = math.prod(packed.shape)
    if packed.type not in _TYPES or min(packed.shape, default=0) < 0:
        raise ValueError(f"an array of {packed.type!r}, {packed.shape}")
    if size * np.dtype(packed.type).itemsize != len(packed.data) or (shape is not None and packed.shape != shape):
        raise ValueError(f"an array of {packed.shape} with {len(packed.data)} bytes, where {shape} was expected")
    return np.frombuffer(packed.data, packed.type).reshape(packed.shape).copy()
