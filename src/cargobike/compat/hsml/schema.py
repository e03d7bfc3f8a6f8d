"""Schemas of models as Hopsworks has them."""

from __future__ import annotations

from typing import Any, Final

from cargobike.models import Field

_KINDS: Final = {"f": "FP", "i": "INT", "u": "UINT", "b": "BOOL"}


class Schema:
    """Names and types of columns, or type and shape of an array.

    Args:
        object: A DataFrame, an array, or a list of dicts with `name` and `type`.
    """

    def __init__(self, object: Any = None, **more: Any) -> None:
        self.fields = _fields(object)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"columnar_schema": [{"name": one.name, "type": one.datatype} for one in self.fields]}

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{one.name}: {one.datatype}' for one in self.fields)})"


def _fields(given: Any) -> tuple[Field, ...]:
    if hasattr(given, "columns") and hasattr(given, "dtypes"):
        kinds = list(given.dtypes)
        return tuple(Field(str(name), _datatype(kind)) for name, kind in zip(given.columns, kinds, strict=True))
    if hasattr(given, "dtype") and hasattr(given, "shape"):
        return (Field(str(getattr(given, "name", None) or "input"), _datatype(given.dtype), tuple(given.shape[1:])),)
    if isinstance(given, list):
        return tuple(Field(str(one.get("name", "input")), _datatype(one.get("type", ""))) for one in given)
    return ()


def _datatype(kind: Any) -> Any:
    """Return a type of NumPy, pandas or Hive as signatures call it; what is not a number is text."""
    letter, size = getattr(kind, "kind", ""), getattr(kind, "itemsize", 8)
    if letter in _KINDS:
        return "BOOL" if letter == "b" else f"{_KINDS[letter]}{8 * size}"
    text = str(kind).lower()
    named = {"double": "FP64", "float": "FP32", "bigint": "INT64", "int": "INT32", "boolean": "BOOL", "long": "INT64"}
    return named.get(text, "BYTES")
