"""Tensors of a fixed shape as columns: fixed-size binary, with shape and type in the metadata of the field.

Lists of numbers decode eight times slower, and do not say what shape they had.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
import pyarrow as pa

from cargobike.core.errors import StoreError
from cargobike.core.values.undecodable import UNDECODABLE

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


class _Described(msgspec.Struct, frozen=True):
    dtype: str
    shape: Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=2**31)]], msgspec.Meta(max_length=32)]


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
    """Return what the values of a column are if they are tensors, else `None`.

    Raises:
        StoreError: If its metadata, which may come from a stranger's file, describes no tensors that it can hold.
    """
    described = (field.metadata or {}).get(KEY)
    if described is None:
        return None
    try:
        found = msgspec.json.decode(described, type=_Described)
    except UNDECODABLE as error:
        raise StoreError(f"The metadata of column {field.name!r} describes no tensors: {error}") from error
    width = _SIZES.get(found.dtype, -1) * math.prod(found.shape)
    if not pa.types.is_fixed_size_binary(field.type) or width != field.type.byte_width:
        raise StoreError(
            f"The metadata of column {field.name!r} describes tensors {found.dtype}{list(found.shape)}, which its type "
            f"{field.type} cannot hold."
        )
    return Tensor(found.dtype, tuple(found.shape))
