"""Spark's types of columns by name, so that schemas can be read and written where there is no Spark."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError


class SparkType(NamedTuple):
    """A type of `pyspark.sql.types`, by name."""

    name: str
    precision: int = 10
    scale: int = 0


def described(given: Any) -> SparkType:
    """Return what a type of Spark's is called, whether it is Spark's own or a record of ours."""
    if isinstance(given, SparkType):
        return given
    name = given.__name__ if isinstance(given, type) else type(given).__name__
    if name == "DecimalType":
        return SparkType(name, int(getattr(given, "precision", 10)), int(getattr(given, "scale", 0)))
    return SparkType(name)


def as_spark(given: Any) -> Any:
    """Return a type as `pyspark` has it."""
    if not isinstance(given, SparkType):
        return given
    import pyspark.sql.types as spark_types  # noqa: PLC0415 - only for who writes with Spark

    kind = getattr(spark_types, given.name)
    return kind(given.precision, given.scale) if given.name == "DecimalType" else kind()


def as_arrow(given: Any) -> pa.DataType:
    """Return the type that a column has in Arrow if Spark writes it with this one."""
    kind = described(given)
    if kind.name == "DecimalType":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.name not in _ARROW:
        raise InvalidInputError(f"Spark's type {kind.name} cannot be written; there are {', '.join(_ARROW)}.")
    return _ARROW[kind.name]


def of_numpy(dtype: Any) -> SparkType | None:
    """Return the type in which Spark keeps single values of a type of NumPy's; `None` if there is none."""
    return next((SparkType(name) for kind, name in _NUMPY if dtype is kind), None)


_ARROW: Final[dict[str, pa.DataType]] = {
    "ByteType": pa.int8(),
    "ShortType": pa.int16(),
    "IntegerType": pa.int32(),
    "LongType": pa.int64(),
    "FloatType": pa.float32(),
    "DoubleType": pa.float64(),
    "BooleanType": pa.bool_(),
    "StringType": pa.string(),
    "BinaryType": pa.binary(),
    "DateType": pa.date32(),
    "TimestampType": pa.timestamp("us", "UTC"),
}

_NUMPY: Final[tuple[tuple[Any, str], ...]] = (
    (np.int8, "ByteType"),
    (np.uint8, "ShortType"),
    (np.int16, "ShortType"),
    (np.uint16, "IntegerType"),
    (np.int32, "IntegerType"),
    (np.uint32, "LongType"),
    (np.int64, "LongType"),
    (np.float32, "FloatType"),
    (np.float64, "DoubleType"),
    (np.bytes_, "StringType"),
    (np.str_, "StringType"),
    (np.bool_, "BooleanType"),
)
