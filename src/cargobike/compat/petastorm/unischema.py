"""Schemas of tensors on top of Parquet: names, types of NumPy's, shapes, and how values lie in columns."""

from __future__ import annotations

import re
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from cargobike.compat.petastorm.naming import namedtuple_of
from cargobike.compat.petastorm.stored.spark_types import SparkType, as_spark, of_numpy
from cargobike.core.errors import InvalidInputError, nearest


class UnischemaField(NamedTuple):
    """One field of a schema; two are equal if all but their codecs are.

    Attributes:
        name: What it is called.
        numpy_dtype: A type of NumPy's, such as `np.uint8`, or `Decimal`.
        shape: Of each value, `None` for a length that differs between rows; `()` for single values.
        codec: How values lie in the column.
        nullable: Whether a value may be missing.
    """

    name: str
    numpy_dtype: Any
    shape: tuple[int | None, ...]
    codec: Any = None
    nullable: bool | None = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and len(other) == 5 and _compared(self) == _compared(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(_compared(self))


def _compared(field: tuple[Any, ...]) -> tuple[Any, ...]:
    return (field[0], field[1], tuple(field[2]), bool(field[4]))


class Unischema:
    """Fields in order.

    Args:
        name: What it is called.
        fields: Its fields; each is also an attribute.
    """

    def __init__(self, name: str, fields: Iterable[UnischemaField]) -> None:
        self._name = name
        self._fields: OrderedDict[str, UnischemaField] = OrderedDict((field.name, field) for field in fields)
        for field in self._fields.values():
            if hasattr(self, field.name):
                warnings.warn(
                    f"The field {field.name!r} is no attribute of the schema, which has another one of that name; "
                    "find it in .fields.",
                    stacklevel=2,
                )
            else:
                setattr(self, field.name, field)

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("_fields", {})
        raise AttributeError(f"This schema has no field {name!r}.{nearest(name, fields)}")

    @property
    def fields(self) -> OrderedDict[str, UnischemaField]:
        """The fields by name."""
        return self._fields

    def create_schema_view(self, fields: Iterable[UnischemaField | str]) -> Unischema:
        """Return a schema of some fields, given as fields or as regular expressions that match whole names.

        Raises:
            InvalidInputError: If one of them is no field of this schema.
        """
        given: list[Any] = list(fields)
        mistakes = [
            f"{each!r:.80} is neither a UnischemaField nor a regular expression."
            for each in given
            if not isinstance(each, str | tuple)
        ]
        named = [each[0] for each in given if isinstance(each, tuple)]
        mistakes += [
            f"field {{{name!r}}} does not belong to the schema {self._name}.{nearest(str(name), self._fields)}"
            for name in named
            if name not in self._fields
        ]
        if mistakes:
            raise InvalidInputError("These fields cannot be taken of the schema.", mistakes)
        matched = match_unischema_fields(self, [each for each in given if isinstance(each, str)])
        view = dict.fromkeys([self._fields[name] for name in named] + matched)
        return Unischema(f"{self._name}_view", view)

    def as_spark_schema(self) -> Any:
        """Return the schema of the DataFrame that is written."""
        import pyspark.sql.types as spark_types  # noqa: PLC0415 - only for who writes with Spark

        return spark_types.StructType(
            [
                spark_types.StructField(field.name, as_spark(stored_type(field)), bool(field.nullable))
                for field in self._fields.values()
            ]
        )

    def make_namedtuple(self, **values: Any) -> Any:
        """Return a row as a namedtuple, from its values by name."""
        return self._get_namedtuple()(**values)

    def make_namedtuple_tf(self, *args: Any, **values: Any) -> Any:
        """Return a row as a namedtuple, from its values in order or by name."""
        return self._get_namedtuple()(*args, **values)

    def _get_namedtuple(self) -> Any:
        return namedtuple_of(self._name, tuple(self._fields))

    @classmethod
    def from_arrow_schema(cls, schema: Any, omit_unsupported_fields: bool = True) -> Unischema:
        """Return the schema of columns that need no codec.

        Args:
            schema: A schema of Arrow's, or something that has one as `schema`.
            omit_unsupported_fields: Whether columns that hold none of the known types are left out, with a warning.
        """
        found: pa.Schema = schema if isinstance(schema, pa.Schema) else schema.schema
        fields = []
        for column in found:
            try:
                dtype, shape = _numpy_type(column.type)
            except InvalidInputError as error:
                if not omit_unsupported_fields:
                    raise
                warnings.warn(f"Column {column.name!r} is left out: {error}", stacklevel=2)
                continue
            fields.append(UnischemaField(column.name, dtype, shape, None, column.nullable))
        return cls("inferred_schema", fields)

    def __str__(self) -> str:
        lines = [
            f"  UnischemaField({field.name!r}, {field.numpy_dtype.__name__}, {field.shape}, {field.codec}, "
            f"{field.nullable}),\n"
            for field in self._fields.values()
        ]
        return f"Unischema({self._name}, [\n{''.join(lines)}])"


def stored_type(field: UnischemaField) -> Any:
    """Return the type in which Spark keeps a field: one of Spark's own, or its name.

    Raises:
        InvalidInputError: If it has no codec, and cannot be kept without one.
    """
    codec = field.codec
    if codec is not None:
        return getattr(codec, "stored_type", None) or codec.spark_dtype()
    if tuple(field.shape):
        raise InvalidInputError(
            f"Field {field.name!r} has the shape {field.shape} and no codec; give it NdarrayCodec() or another one."
        )
    found: SparkType | None = of_numpy(field.numpy_dtype)
    if found is None:
        raise InvalidInputError(
            f"Field {field.name!r}: was not able to map type {field.numpy_dtype} to a type of Spark's; give it a "
            "ScalarCodec."
        )
    return found


def dict_to_spark_row(unischema: Unischema, row_dict: Mapping[str, Any]) -> Any:
    """Return a row for Spark: every value encoded by the codec of its field.

    Raises:
        InvalidInputError: If fields are missing or unknown, or values do not fit.
    """
    import pyspark  # noqa: PLC0415 - only for who writes with Spark

    encoded = encode_row(unischema, row_dict)
    row = pyspark.Row(*encoded.values())
    row.__fields__ = list(encoded)
    return row


def encode_row(unischema: Unischema, row_dict: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row as they lie in the columns, in the order of the schema."""
    row = dict(row_dict)
    insert_explicit_nulls(unischema, row)
    unknown = [name for name in row if name not in unischema.fields]
    if unknown:
        raise InvalidInputError(
            "Dictionary fields do not match schema fields.",
            [f"{name!r} is unknown.{nearest(str(name), unischema.fields)}" for name in unknown],
        )
    encoded: dict[str, Any] = {}
    for name, field in unischema.fields.items():
        value = row[name]
        if value is None:
            if not field.nullable:
                raise InvalidInputError(f"Field {name!r} is not nullable, and None was given.")
            encoded[name] = None
        elif field.codec:
            encoded[name] = field.codec.encode(field, value)
        else:
            encoded[name] = value.tolist() if isinstance(value, np.generic) else value
    return encoded


def insert_explicit_nulls(unischema: Unischema, row_dict: dict[str, Any]) -> None:
    """Add `None` for fields that a row lacks and that may be missing, in place.

    Raises:
        InvalidInputError: If a field is missing that must not be.
    """
    missing = [field for name, field in unischema.fields.items() if name not in row_dict]
    mistakes = [f"Field {field.name!r} is not found in the row, but is not nullable." for field in missing]
    mistakes = [words for words, field in zip(mistakes, missing, strict=True) if not field.nullable]
    if mistakes:
        raise InvalidInputError("This row does not fit the schema.", mistakes)
    row_dict.update({field.name: None for field in missing})


def match_unischema_fields(schema: Unischema, field_regex: Iterable[str]) -> list[UnischemaField]:
    """Return the fields whose whole names match one of some regular expressions, in the order of the schema."""
    patterns = [re.compile(pattern) for pattern in field_regex]
    return [field for name, field in schema.fields.items() if any(pattern.fullmatch(name) for pattern in patterns)]


def _numpy_type(kind: pa.DataType) -> tuple[Any, tuple[int | None, ...]]:
    if kinds.is_dictionary(kind):
        kind = kind.value_type
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        dtype, shape = _numpy_type(kind.value_type)
        if shape:
            raise InvalidInputError(f"lists of lists ({kind}) are not supported.")
        return dtype, (None,)
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        return np.dtype(kind.to_pandas_dtype()).type, ()
    tests: tuple[tuple[Any, Any], ...] = (
        (kinds.is_boolean, np.bool_),
        (kinds.is_string, np.str_),
        (kinds.is_large_string, np.str_),
        (kinds.is_binary, np.bytes_),
        (kinds.is_large_binary, np.bytes_),
        (kinds.is_fixed_size_binary, np.bytes_),
        (kinds.is_decimal, Decimal),
        (kinds.is_date, np.datetime64),
        (kinds.is_timestamp, np.datetime64),
    )
    for test, dtype in tests:
        if test(kind):
            return dtype, ()
    raise InvalidInputError(f"{kind} is an unsupported type.")
