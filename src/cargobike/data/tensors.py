"""Tensors of a fixed shape as columns: fixed-size binary, with shape and type in the metadata of the field.

Lists of numbers decode eight times slower, and do not say what shape they had.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

KEY = b"cargobike.tensor"


class Tensor(NamedTuple):
    """What each value of a column is: the name of its NumPy type, little endian, and its shape, in C order."""

    dtype: str
    shape: tuple[int, ...]


_SIZES = {
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": bits // 8 for bits in (16, 32, 64)},
    "bool": 1,
}


def tensor_field(name: str, dtype: str, shape: Sequence[int]) -> pa.Field:
    """Return the field of a column of tensors.

    Example:
        >>> field = tensor_field("image", "uint8", (28, 28))
        >>> field.type.byte_width, tensor_of(field)
        (784, Tensor(dtype='uint8', shape=(28, 28)))
    """
    width = _SIZES[dtype] * math.prod(shape)
    described = msgspec.json.encode({"dtype": dtype, "shape": list(shape)})
    return pa.field(name, pa.binary(width), metadata={KEY: described})


def tensor_of(field: pa.Field) -> Tensor | None:
    """Return what the values of a column are if they are tensors, else `None`."""
    described = (field.metadata or {}).get(KEY)
    if described is None:
        return None
    found = msgspec.json.decode(described)
    return Tensor(found["dtype"], tuple(found["shape"]))
