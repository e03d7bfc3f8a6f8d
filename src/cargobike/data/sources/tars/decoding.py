"""What the parts of samples become: bytes, text, whole numbers, JSON, or arrays of NumPy that hold no objects."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from tokenize import TokenError
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.data.tensors import tensor_field, tensor_of

_BY_ENDING = {
    **dict.fromkeys(("cls", "cls2", "class", "count", "index", "inx", "id"), "int"),
    **dict.fromkeys(("txt", "text", "transcript"), "text"),
    **dict.fromkeys(("json", "jsn"), "json"),
    "npy": "npy",
}
_DTYPES = frozenset(
    ("bool", "float16", "float32", "float64", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)))
)


class SampleError(ValueError):
    """A part of a sample is not what it should be."""


class Field(NamedTuple):
    """A part of all samples: how it is decoded, and its column."""

    ending: str
    how: str
    column: pa.Field

    def value(self, data: bytes) -> object:
        """Return what a part holds, as Arrow takes it.

        Raises:
            SampleError: If it holds something else.
        """
        found = DECODERS[self.how](data, self.ending)
        if self.how == "npy":
            return self._array(found)
        if self.how == "json" and not _fits(found, self.column.type):
            raise SampleError(
                f"its part {self.ending!r} does not fit {self.column.type}, as the samples do that were looked at "
                f"first. Read it as text: decode={{{self.ending!r}: 'text'}}."
            )
        return found

    def _array(self, array: Any) -> object:
        tensor = tensor_of(self.column)
        if tensor is not None:
            if (array.dtype.name, array.shape) != tensor:
                raise SampleError(
                    f"its part {self.ending!r} is {array.dtype.name} {array.shape}, and {tensor.dtype} {tensor.shape} "
                    f"elsewhere. Read it as bytes: decode={{{self.ending!r}: 'bytes'}}."
                )
            return array.tobytes()
        is_list = pa.types.is_list(self.column.type)
        kind = self.column.type.value_type if is_list else self.column.type
        if pa.from_numpy_dtype(array.dtype) != kind or array.ndim != int(is_list):
            raise SampleError(f"its part {self.ending!r} is {array.dtype.name} {array.shape}, and not so elsewhere")
        return array if is_list else array.item()


def _as_bytes(data: bytes, _: str) -> bytes:
    return data


def _as_text(data: bytes, ending: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise SampleError(f"its part {ending!r} is not text in UTF-8") from None


def _as_int(data: bytes, ending: str) -> int:
    text = data.strip()
    if len(text) > 20 or not text.removeprefix(b"-").isdigit() or not -(2**63) <= int(text) < 2**63:
        raise SampleError(f"its part {ending!r} holds {text[:40]!r}, which is no whole number")
    return int(text)


def _as_json(data: bytes, ending: str) -> object:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SampleError(f"its part {ending!r} is no JSON: {error}") from None


_NO_HEADER = (ValueError, LookupError, ArithmeticError, MemoryError, RecursionError, SyntaxError, TypeError, TokenError)
"""What reading a header as Python's literals raises."""


@lru_cache(maxsize=64)
def _array_header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    stream = io.BytesIO(header)
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    return read(stream)


def _as_array(data: bytes, ending: str) -> Any:
    """Return an array; its header says how large it is, and is believed only if so many bytes are there."""
    wide = data[6:7] == b"\x02"  # the length of the header has four bytes, not two
    size = 12 + int.from_bytes(data[8:12], "little") if wide else 10 + int.from_bytes(data[8:10], "little")
    try:
        shape, is_fortran, dtype = _array_header(data[:size])
    except _NO_HEADER as error:
        raise SampleError(f"its part {ending!r} is no array of NumPy: {error}") from None
    if dtype.newbyteorder("=").name not in _DTYPES:
        raise SampleError(f"its part {ending!r} is an array of {dtype}; only numbers are read, never objects")
    if any(size < 0 for size in shape) or math.prod(shape) * dtype.itemsize != len(data) - size:
        raise SampleError(f"its part {ending!r} is said to have the shape {shape}, and has another size")
    array = np.frombuffer(data, dtype, math.prod(shape), size)
    ordered = array.reshape(shape, order="F" if is_fortran else "C")
    return np.ascontiguousarray(ordered, dtype.newbyteorder("<")).reshape(shape)


DECODERS: Mapping[str, Callable[[bytes, str], Any]] = {
    "bytes": _as_bytes,
    "text": _as_text,
    "int": _as_int,
    "json": _as_json,
    "npy": _as_array,
}


def learn(parts: Mapping[str, Sequence[tuple[str, bytes]]], decode: Mapping[str, str]) -> list[Field]:
    """Return the fields of samples, by some of their parts.

    Args:
        parts: The parts of some samples by their endings, each with where it is.
        decode: How the user wants some of them decoded.

    Raises:
        InvalidInputError: If parts cannot be decoded, or do not have one type.
    """
    fields, mistakes = [], []
    for ending in sorted({*parts, *decode}):
        how = decode.get(ending) or _BY_ENDING.get(ending.rpartition(".")[2], "bytes")
        try:
            values = [_decoded(place, data, ending, how) for place, data in parts.get(ending, ())]
            fields.append(Field(ending, how, _column(ending, how, values)))
        except SampleError as error:
            mistakes.append(f"{error}. Or read such parts as they are: decode={{{ending!r}: 'bytes'}}")
    if mistakes:
        raise InvalidInputError("Samples cannot be decoded.", mistakes)
    return fields


def _decoded(place: str, data: bytes, ending: str, how: str) -> Any:
    try:
        return DECODERS[how](data, ending)
    except SampleError as error:
        raise SampleError(f"{place}: {error}") from None


def _column(ending: str, how: str, values: list[Any]) -> pa.Field:
    if how == "npy":
        return _array_column(ending, values)
    if how == "json":
        try:
            kind = pa.array(values).type
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise SampleError(f"parts {ending!r} do not fit together ({error}). Read them as text") from None
        return pa.field(ending, pa.string() if pa.types.is_null(kind) else kind)
    return pa.field(ending, {"bytes": pa.binary(), "text": pa.string(), "int": pa.int64()}[how])


def _array_column(ending: str, values: list[Any]) -> pa.Field:
    dtypes, shapes = {value.dtype.name for value in values}, {value.shape for value in values}
    if len(dtypes) != 1:
        raise SampleError(f"parts {ending!r} are arrays of {', '.join(sorted(dtypes)) or 'nothing'}")
    dtype = pa.from_numpy_dtype(values[0].dtype)
    if len(shapes) == 1:
        shape = values[0].shape
        return (
            tensor_field(ending, values[0].dtype.name, shape)
            if math.prod(shape) and shape
            else pa.field(ending, dtype if not shape else pa.list_(dtype))
        )
    if any(len(shape) != 1 for shape in shapes):
        raise SampleError(f"parts {ending!r} are arrays of different shapes")
    return pa.field(ending, pa.list_(dtype))


def _fits(value: object, kind: pa.DataType) -> bool:
    """Tell whether a value of JSON is of a type, with nothing left over: Arrow would drop fields that it lacks."""
    if value is None:
        return True
    if pa.types.is_struct(kind):
        return isinstance(value, dict) and all(
            kind.get_field_index(name) >= 0 and _fits(one, kind.field(name).type) for name, one in value.items()
        )
    if pa.types.is_list(kind):
        return isinstance(value, list) and all(_fits(one, kind.value_type) for one in value)
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if pa.types.is_integer(kind):
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if pa.types.is_floating(kind):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str)
