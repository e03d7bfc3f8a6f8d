"""Frames as the older libraries took and gave them: Spark, pandas, polars, NumPy, lists."""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.registering.lazy import load
from cargobike.features.queries.labels import as_table

Kind = Literal["default", "spark", "pandas", "polars", "numpy", "python"]

ROW: Final = "row_of_frame"
"""The key of rows that have no key of their own: their number."""

_SECONDS_BELOW: Final = 10_000_000_000
"""Whole numbers below this are seconds since 1970, others milliseconds: the rule of Hopsworks."""


def read_frame(frame: Any) -> pa.Table:
    """Return a frame as an Arrow table, with column names in lower case, as both libraries kept them.

    Args:
        frame: A pandas, polars or Spark DataFrame, an Arrow table, a dict of columns, a list of dicts; or a NumPy array
            or a list of rows, whose columns are called `col_0`, `col_1` and so on.
    """
    if isinstance(frame, list) and frame and isinstance(frame[0], Sequence) and not isinstance(frame[0], str):
        frame = np.array(frame)
    if isinstance(frame, np.ndarray):
        wide = frame.reshape(len(frame), -1)
        frame = {f"col_{number}": wide[:, number] for number in range(wide.shape[1])}
    table = as_table(frame)
    names = [column_name(name) for name in table.column_names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(f"Columns are called alike in lower case: {', '.join(twice)}. Rename them.")
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(number, field.name, pc.cast(table[number], field.type.value_type))
    return table.rename_columns(names)


def column_name(name: Any) -> str:
    """Return the name under which a column is kept."""
    return re.sub(r"\s+", "_", str(name).strip()).lower()


def read_names(names: str | Sequence[Any] | None) -> list[str]:
    """Return names of columns that were given as one text, a list of texts, or a list of features."""
    if not names:
        return []
    given = [names] if isinstance(names, str) or not isinstance(names, Sequence) else list(names)
    return [column_name(getattr(name, "name", name)) for name in given]


def with_times(table: pa.Table, column: str) -> pa.Table:
    """Return a table whose event times are times: whole numbers are seconds or milliseconds since 1970."""
    if not column or column not in table.column_names or not pa.types.is_integer(table.schema.field(column).type):
        return table
    numbers = pc.cast(table[column], pa.int64())
    most = pc.max(pc.abs(numbers)).as_py() or 0
    unit = "s" if most < _SECONDS_BELOW else "ms"
    times = pc.cast(numbers, pa.timestamp(unit, tz="UTC"))
    return table.set_column(table.column_names.index(column), column, times)


def with_row_numbers(table: pa.Table) -> pa.Table:
    """Return a table with a key for rows that have none.

    Numbers begin anywhere, so that those of two processes that insert at the same time do not meet.
    """
    first = secrets.randbits(62)
    return table.append_column(ROW, pa.array(np.arange(first, first + len(table), dtype=np.int64)))


def is_unique(table: pa.Table, columns: Sequence[str]) -> bool:
    """Tell whether no two rows have the same values in some columns."""
    return len(table.select(list(columns)).group_by(list(columns)).aggregate([])) == len(table)


def give(
    kind: str | None, table: Callable[[], pa.Table], spark: Callable[[], Any] | None = None, *, default: str = ""
) -> Any:
    """Return rows as a frame of the kind that was asked for.

    Args:
        kind: One of `Kind`; `"default"` is Spark where a session is active, else pandas.
        table: Makes the rows.
        spark: Makes them on Spark, if Spark can.
        default: What the default is instead.

    Raises:
        InvalidInputError: If there is no such kind.
    """
    chosen = str(kind or "default").lower()
    if chosen not in get_args(Kind):
        kinds = ", ".join(get_args(Kind))
        raise InvalidInputError(f"dataframe_type={kind!r} was given; there are {kinds}.{nearest(chosen, kinds)}")
    if chosen == "default":
        chosen = default or ("spark" if has_spark() else "pandas")
    if chosen == "spark":
        return spark() if spark is not None else spark_session().createDataFrame(table())
    if chosen == "polars":
        return load("polars:from_arrow")(table())
    rows = table()
    if chosen == "pandas":
        return as_pandas(rows)
    columns = [rows[name].to_numpy() for name in rows.column_names]
    if chosen == "numpy":
        return np.column_stack(columns) if len(columns) > 1 else columns[0] if columns else np.empty(0)
    return [list(row.values()) for row in rows.to_pylist()] if len(columns) > 1 else rows[0].to_pylist()


def as_pandas(table: pa.Table) -> Any:
    """Return rows as a pandas DataFrame; times are UTC without a zone, as Hopsworks gave them."""
    return table.to_pandas()


def has_spark() -> bool:
    """Tell whether this process has a Spark session that is at work."""
    if "pyspark.sql" not in sys.modules:
        return False
    return load("pyspark.sql:SparkSession").getActiveSession() is not None


def spark_session() -> Any:
    """Return the Spark session of this process; one is made if there is none."""
    return load("pyspark.sql:SparkSession").builder.getOrCreate()
