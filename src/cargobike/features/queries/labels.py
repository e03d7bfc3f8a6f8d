"""Rows that a user gives, as an Arrow table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from cargobike.core.errors import InvalidInputError


def is_spark(rows: object) -> bool:
    """Tell whether something is a DataFrame of Spark."""
    return type(rows).__module__.partition(".")[0] == "pyspark" and hasattr(rows, "toArrow")


def as_table(rows: Any) -> pa.Table:
    """Return rows as an Arrow table.

    Raises:
        InvalidInputError: If they are of no kind that has rows.
    """
    module = type(rows).__module__.partition(".")[0]
    try:
        if isinstance(rows, pa.Table):
            return rows
        if isinstance(rows, pa.RecordBatch):
            return pa.Table.from_batches([rows])
        if module == "pandas" and hasattr(rows, "columns"):
            return pa.Table.from_pandas(rows, preserve_index=False)
        if is_spark(rows):
            return rows.toArrow()
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows)
        if isinstance(rows, Mapping):
            return pa.table(dict(rows))
        if isinstance(rows, list) and rows and all(isinstance(row, Mapping) for row in rows):
            return pa.Table.from_pylist(rows)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InvalidInputError(f"The rows cannot be read as a table: {error}") from error
    raise InvalidInputError(
        f"{type(rows).__name__} was given as rows; give a pandas, polars or Spark DataFrame, an Arrow table, a dict of "
        "columns or a list of dicts."
    )
