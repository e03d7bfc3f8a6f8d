"""What the columns of Examples are: inferred from some of them, or announced by the user."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.data.sources.tfrecords import examples
from cargobike.data.sources.tfrecords.examples import BYTES, FLOAT, INT64, KIND_NAMES
from cargobike.data.tensors import tensor_field

_FLOATS = ("float32", "float64", "float16")
_INTEGERS = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")
_TEXTS = ("binary", "string")
_ALLOWED = (*_FLOATS, *_INTEGERS, *_TEXTS)
_DEFAULT = {BYTES: "binary", FLOAT: "float32", INT64: "int64"}


class Column(NamedTuple):
    """A feature as a column.

    Attributes:
        name: Of the feature and the column.
        kind: What Examples hold: `BYTES`, `FLOAT` or `INT64`.
        dtype: What values become.
        shape: Of a tensor; `()` for one value, `None` for a list of any length.
    """

    name: str
    kind: int
    dtype: str
    shape: tuple[int, ...] | None

    @property
    def size(self) -> int:
        """How many numbers a value has, if it has a fixed shape."""
        return math.prod(self.shape or ())

    @property
    def is_raw(self) -> bool:
        """Whether a tensor lies in the file as bytes."""
        return self.kind == BYTES and bool(self.shape)

    @property
    def width(self) -> int:
        """How many bytes a tensor has."""
        return self.size * np.dtype(self.dtype).itemsize

    def field(self) -> pa.Field:
        """Return the column of the table."""
        if self.shape:
            return tensor_field(self.name, self.dtype, self.shape)
        scalar = pa.bool_() if self.dtype == "bool" else pa.type_for_alias(self.dtype)
        return pa.field(self.name, scalar if self.shape is not None else pa.list_(scalar))


class Seen:
    """What was seen of a feature in some Examples."""

    def __init__(self) -> None:
        self.kinds: set[int] = set()
        self.lengths: set[int] = set()
        self.times = 0


def infer(records: Sequence[bytes], places: Sequence[str], announced: Mapping[str, object] | None) -> list[Column]:
    """Return the columns of Examples: one value each, or tensors where all have as many, else lists.

    Args:
        records: Some Examples.
        places: Where each lies, for errors.
        announced: What the user says about some columns: the type of one value, `(type, shape)` of a tensor, or
            `"list"` for any number.

    Raises:
        InvalidInputError: If a record is no Example, kinds differ, or what was announced cannot be.
    """
    features: dict[str, Seen] = {}
    for record, place in zip(records, places, strict=True):
        try:
            for name, feature in examples.find_features(record).items():
                seen = features.setdefault(name, Seen())
                seen.kinds.add(feature.kind)
                seen.lengths.add(_length(record, feature))
                seen.times += 1
        except examples.MalformedError as error:
            raise InvalidInputError(f"{place}: this is not a tf.train.Example: {error}.") from None
    mistakes = [_unclear(name, seen) for name, seen in features.items() if name not in (announced or {})]
    mistakes = [mistake for mistake in mistakes if mistake]
    columns = {}
    for name, seen in sorted(features.items()):
        kind = min(seen.kinds)
        lengths = seen.lengths
        shape: tuple[int, ...] | None = None
        if lengths <= {0, 1} and 1 in lengths:
            shape = ()
        elif len(lengths) == 1 and 0 not in lengths and kind != BYTES and seen.times == len(records):
            shape = (min(lengths),)
        columns[name] = Column(name, kind, _DEFAULT[kind], shape)
    for name, given in (announced or {}).items():
        is_clear = name in features and len(features[name].kinds) == 1
        found = _announced(name, given, columns[name] if is_clear else None)
        if isinstance(found, str):
            mistakes.append(found)
        else:
            columns[name] = found
    if mistakes:
        raise InvalidInputError("The columns cannot be made of the features of the records.", mistakes)
    if records and not columns:
        raise InvalidInputError(f"{places[0]}: the records have no features, so there are no columns.")
    return list(columns.values())


def _unclear(name: str, seen: Seen) -> str:
    """Say it if a feature is of several kinds."""
    if len(seen.kinds) == 1:
        return ""
    kinds = " and ".join(sorted(KIND_NAMES[kind] for kind in seen.kinds))
    choice = _DEFAULT[max(seen.kinds)]
    return f"{name!r} is {kinds} in different records; say which it should be: schema={{{name!r}: {choice!r}}}"


def _length(record: bytes, feature: examples.Feature) -> int:
    if feature.kind == BYTES:
        return len(feature.spans)
    if feature.kind == FLOAT:
        return sum(high - low for low, high in feature.spans) // 4
    return sum(sum(byte < 0x80 for byte in record[low:high]) for low, high in feature.spans)


def _announced(name: str, given: object, seen: Column | None) -> Column | str:
    dtype: object = given
    shape: tuple[int, ...] = ()
    if isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[1], tuple | list):
        dtype, shape = given[0], tuple(given[1])
        if not shape or any(type(size) is not int or size < 1 for size in shape):
            return f"{name!r} is said to have the shape {shape!r}; give positive whole numbers, such as (28, 28)"
        if dtype in _TEXTS:
            return f"{name!r} is said to be a tensor of {dtype}; tensors hold numbers"
    if given == "list":
        return seen._replace(shape=None) if seen else f"{name!r} is said to be a list, but was not seen in any record"
    dtype = getattr(dtype, "__name__", dtype) if isinstance(dtype, type) else str(dtype)
    if dtype not in _ALLOWED:
        near = nearest(str(dtype), _ALLOWED)
        return f"{name!r} is said to be {given!r}; allowed are 'list', {', '.join(map(repr, _ALLOWED))}.{near}"
    kind = FLOAT if dtype in _FLOATS else INT64 if dtype in _INTEGERS else BYTES
    if seen is not None and seen.kind != kind:
        if not (shape and seen.kind == BYTES) and not (kind == FLOAT and seen.kind == INT64):
            return f"{name!r} is said to be {dtype}, but the records hold {KIND_NAMES[seen.kind]}"
        kind = seen.kind
    return Column(name, kind, dtype, shape)
