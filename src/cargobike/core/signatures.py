"""What a model takes and returns: names, types and shapes, as registries keep them and servers check them."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Datatype = Literal[
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "BYTES"
]
"""The types of the Open Inference Protocol; text is `BYTES`."""

NUMPY_NAMES: Final[dict[Datatype, str]] = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BYTES": "object",
}
"""What NumPy calls them."""


class Field(msgspec.Struct, frozen=True):
    """One value of a row.

    Attributes:
        name: What it is called.
        datatype: What its elements are.
        shape: Its shape in one row, without the rows: nothing for a number or a text, `(28,)` for a vector, `-1` where
            any length fits.
        nullable: Whether it may be missing; it is then `None`.
    """

    name: str
    datatype: Datatype
    shape: tuple[int, ...] = ()
    nullable: bool = False


class Signature(msgspec.Struct, frozen=True):
    """What a model takes and returns, for one row.

    A row with one field travels as the bare value of that field (a number, a nested list), a row with several as a dict
    by name; the same holds for answers. So a model of vectors gets `[[0.1, …], [0.3, …]]`, one of records gets
    `[{"age": 3, "town": "Kista"}, …]`.

    Attributes:
        inputs: The fields of a row.
        outputs: The fields of an answer; nothing if answers are not checked.
    """

    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...] = ()
