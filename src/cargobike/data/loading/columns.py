"""What each column of a source becomes in a batch: its name, type and shape, decided before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.data.tensors import tensor_of

Form = Literal["numpy", "torch", "tensorflow", "jax", "arrow"]
FORMS: Final[tuple[str, ...]] = get_args(Form)

Columns = Sequence[str] | Mapping[str, str | Sequence[str]] | None
Ragged = Literal["error", "pad", "list"]
RAGGED: Final[tuple[str, ...]] = get_args(Ragged)

TEXT: Final = "text"
NUMBER: Final = "number"
TENSOR: Final = "tensor"
LISTS: Final = "lists"
"""Lists that all have the same number of values: rows of a matrix."""
RAGGED_LISTS: Final = "ragged lists"


@dataclass(frozen=True)
class Column:
    """One array of a batch.

    Attributes:
        name: Under which users find it.
        fields: The columns of the source that it is made of; several are stacked side by side.
        kind: How it is decoded.
        dtype: NumPy's type of its values.
        shape: Of one row; lists of equal length have theirs from the first row that is read.
        nulls: What becomes of a null: `"error"`, `"nan"` or a value.
    """

    name: str
    fields: tuple[pa.Field, ...]
    kind: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] = ()
    nulls: object = "error"

    @property
    def is_stacked(self) -> bool:
        """Whether several columns of the source stand side by side in it."""
        return self.kind == NUMBER and bool(self.shape)

    @property
    def stored(self) -> np.dtype[Any]:
        """NumPy's type of the array: of objects if each row is an array of its own."""
        return np.dtype(object) if self.kind == RAGGED_LISTS else self.dtype

    def wide(self, width: int) -> Column:
        """Return the same column of lists, whose length is now known."""
        return replace(self, shape=(width,))


def resolve_columns(schema: pa.Schema, columns: Columns, *, to: str, ragged: str, nulls: object) -> list[Column]:
    """Return the arrays of a batch.

    Raises:
        InvalidInputError: If a column does not exist or cannot become what is asked for; all mistakes at once.
    """
    wanted = _named(schema, columns)
    mistakes = _unknown(schema, wanted)
    if isinstance(nulls, Mapping):
        known = {name for names in wanted.values() for name in names}
        mistakes += [f"nulls: {name!r} is not read.{nearest(str(name), known)}" for name in nulls if name not in known]
    if mistakes:
        raise InvalidInputError(f"These columns cannot be read; there are {_listed(schema.names)}.", mistakes)
    resolved = []
    for name, names in wanted.items():
        stacked = isinstance(columns, Mapping) and not isinstance(columns[name], str)
        try:
            column = _column(
                name, [schema.field(each) for each in names], stacked=stacked, to=to, ragged=ragged, nulls=nulls
            )
            _check_form(column, to)
            _check_nulls(column)
            resolved.append(column)
        except _MistakeError as error:
            mistakes.append(str(error))
    if mistakes:
        raise InvalidInputError(f"Not all columns can be given as to={to!r}.", mistakes)
    return resolved


class _MistakeError(Exception):
    """What is wrong with one column."""


def _named(schema: pa.Schema, columns: Columns) -> dict[str, list[str]]:
    """Return the names in the source for each name in a batch."""
    if columns is None:
        return {name: [name] for name in schema.names}
    if isinstance(columns, str):
        raise InvalidInputError(f"columns={columns!r} was given; give a list of names: columns=[{columns!r}].")
    if isinstance(columns, Mapping):
        named = {str(name): [given] if isinstance(given, str) else list(given) for name, given in columns.items()}
    else:
        named = {str(name): [str(name)] for name in columns}
    if not named or not all(named.values()):
        raise InvalidInputError("columns: at least one column has to be read.")
    return named


def _unknown(schema: pa.Schema, wanted: Mapping[str, list[str]]) -> list[str]:
    mistakes = []
    for name in dict.fromkeys(each for names in wanted.values() for each in names):
        count = schema.names.count(name)
        if count == 0:
            mistakes.append(f"{name!r} is unknown.{nearest(str(name), schema.names)}")
        elif count > 1:
            mistakes.append(f"{name!r} is the name of {count} columns; give them different names.")
    return mistakes


def _column(name: str, fields: list[pa.Field], *, stacked: bool, to: str, ragged: str, nulls: object) -> Column:
    policies = [nulls.get(field.name, "error") if isinstance(nulls, Mapping) else nulls for field in fields]
    if not stacked:
        return _single(name, fields[0], to, ragged, policies[0])
    if to == "arrow":
        raise _MistakeError(f"{name!r}: Arrow has no matrices; give names without lists, or to='numpy'.")
    singles = [_single(field.name, field, to, ragged, policy) for field, policy in zip(fields, policies, strict=True)]
    odd = [single.name for single in singles if single.kind != NUMBER or single.dtype.kind in "Mm"]
    if odd:
        raise _MistakeError(
            f"{name!r}: only numbers can be stacked, and {_listed(odd)} {'is' if len(odd) == 1 else 'are'} not."
        )
    if len(set(map(repr, policies))) > 1:
        raise _MistakeError(f"{name!r}: columns that are stacked need the same policy for nulls.")
    dtype = np.result_type(*(single.dtype for single in singles))
    return Column(name, tuple(fields), NUMBER, dtype, (len(fields),), policies[0])


def _single(name: str, field: pa.Field, to: str, ragged: str, nulls: object) -> Column:
    fields = (field,)
    if to == "arrow":
        return Column(name, fields, TEXT, np.dtype(object))
    tensor = tensor_of(field)
    if tensor is not None:
        return Column(name, fields, TENSOR, np.dtype(tensor.dtype), tensor.shape, nulls)
    kind = field.type
    if isinstance(kind, pa.FixedShapeTensorType):
        return Column(name, fields, TENSOR, _number_type(kind.value_type, "error"), tuple(kind.shape), nulls)
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if is_list(kind):
        dtype = _number_type(kind.value_type, nulls)
        if dtype.kind == "O":
            return Column(name, fields, TEXT, np.dtype(object), (), nulls)
        if kinds.is_fixed_size_list(kind):
            return Column(name, fields, LISTS, dtype, (kind.list_size,), nulls)
        if ragged == "error":
            return Column(name, fields, LISTS, dtype, (-1,), nulls)
        return Column(name, fields, RAGGED_LISTS, dtype, (), nulls)
    dtype = _number_type(kind, nulls, as_numbers=to != "numpy")
    return Column(name, fields, TEXT if dtype.kind == "O" else NUMBER, dtype, (), nulls)


def is_list(kind: pa.DataType) -> bool:
    """Tell whether values of a type are lists of values."""
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


def _number_type(kind: pa.DataType, nulls: object, *, as_numbers: bool = False) -> np.dtype[Any]:
    """Return NumPy's type for values of an Arrow type; `object` for what is no number.

    Times are `datetime64` in their own unit, in UTC where they have a zone; as numbers, they are such units since 1970.
    """
    if kinds.is_dictionary(kind):
        kind = kind.value_type
    if kinds.is_boolean(kind) or kinds.is_integer(kind):
        return np.dtype(np.float64 if nulls == "nan" else kind.to_pandas_dtype())
    if kinds.is_floating(kind):
        floating: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
        return floating
    if kinds.is_decimal(kind):
        return np.dtype(np.float64)
    if kinds.is_timestamp(kind):
        return np.dtype(np.int64 if as_numbers else f"M8[{kind.unit}]")
    if kinds.is_duration(kind):
        return np.dtype(np.int64 if as_numbers else f"m8[{kind.unit}]")
    if kinds.is_date(kind):
        unit = "D" if kinds.is_date32(kind) else "ms"
        return np.dtype(np.int64 if as_numbers else f"M8[{unit}]")
    if kinds.is_time(kind):
        return np.dtype(np.int64 if as_numbers else f"m8[{kind.unit}]")
    return np.dtype(object)


def _check_form(column: Column, to: str) -> None:
    """Refuse what the framework has no tensors for."""
    if to in ("numpy", "arrow"):
        return
    if column.kind == TEXT and not (to == "tensorflow" and _is_text(column.fields[0].type)):
        raise _MistakeError(
            f"{column.name!r} holds {column.fields[0].type}, of which {to} makes no tensors. Name the columns to read "
            "with columns=[…], or take to='numpy' and turn it into numbers in transform."
        )


def _check_nulls(column: Column) -> None:
    """Refuse a value for nulls that the column's type cannot hold."""
    if column.kind == TEXT or (isinstance(column.nulls, str) and column.nulls in ("error", "nan")):
        return
    try:
        np.asarray(column.nulls, column.dtype)
    except (TypeError, ValueError, OverflowError):
        words = f"nulls={column.nulls!r} is no {column.dtype}; give 'error', 'nan' or such a value."
        raise _MistakeError(f"{column.name!r}: {words}") from None


def _is_text(kind: pa.DataType) -> bool:
    if kinds.is_dictionary(kind):
        kind = kind.value_type
    return any(test(kind) for test in (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:20])
    return shown if len(names) <= 20 else f"{shown} and {len(names) - 20} more"
