"""What the threads of a reader make of each row group: rows by name, arrays, or windows of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cargobike.compat.petastorm.ngram import NGram
from cargobike.compat.petastorm.predicates import PredicateBase
from cargobike.compat.petastorm.reading.decoding import Columns, arrays_of_frame, decode_arrays, decode_values
from cargobike.compat.petastorm.reading.planning import filtered_columns, rows_passing
from cargobike.compat.petastorm.transform import TransformSpec
from cargobike.compat.petastorm.unischema import Unischema
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.data.loading.groups import Picking


class Made(NamedTuple):
    """What a row group has become: columns of as many values as there are rows, or a list of windows of rows."""

    rows: int
    columns: Columns
    windows: list[Any] | None = None


def maker(
    stored: Unischema, schema: Unischema, transform: TransformSpec | None, ngram: NGram | None, *, batched: bool
) -> Callable[[pa.Table], Made]:
    """Return the function that threads call with the table of each row group.

    Args:
        stored: The fields as they are read.
        schema: The fields as they are handed out.
        transform: What to do in between.
        ngram: Windows of which rows to form.
        batched: Whether columns become arrays, or single values.
    """

    def arrays(table: pa.Table) -> Made:
        if transform is None:
            return Made(table.num_rows, decode_arrays(table, schema))
        frame = table.to_pandas()
        if transform.func is not None:
            frame = transform.func(frame)
        frame = frame.drop(columns=[name for name in frame.columns if name in transform.removed_fields])
        if transform.selected_fields is not None:
            frame = frame[[name for name in frame.columns if name in schema.fields]]
        return Made(len(frame), arrays_of_frame(frame, schema))

    def values(table: pa.Table) -> Made:
        columns = decode_values(table, stored)
        if transform is None and ngram is None:
            return Made(table.num_rows, {name: columns[name] for name in schema.fields})
        names = list(columns)
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        if transform is not None and transform.func is not None:
            rows = [transform.func(row) for row in rows]
        if ngram is not None:
            windows = ngram.form_windows(rows, schema)
            return Made(len(windows), {}, windows)
        return Made(len(rows), {name: [row[name] for row in rows] for name in schema.fields})

    return arrays if batched else values


def picking_of(
    predicate: PredicateBase | None, filters: Any, partitions: list[str], stored: Unischema, *, batched: bool
) -> Picking | None:
    """Return which rows are wanted by a predicate and by filters of columns; `None` if all are.

    Raises:
        InvalidInputError: If the predicate looks at fields that are not read.
    """
    filtered = filtered_columns(filters)
    if filtered <= set(partitions):
        filtered = set()
    fields = list(predicate.get_fields()) if predicate is not None else []
    if predicate is not None:
        unknown = [name for name in fields if name not in stored.fields]
        if unknown or not fields:
            raise InvalidInputError(
                "At least some column names requested by the predicate are not valid schema names.",
                [f"{name!r} is not read.{nearest(name, stored.fields)}" for name in unknown]
                or ["At least one field name must be returned by predicate's get_fields()."],
            )
    if predicate is None and not filtered:
        return None

    def wanted(table: pa.Table) -> NDArray[np.bool_]:
        keep: NDArray[np.bool_] = rows_passing(table, filters) if filtered else np.ones(table.num_rows, bool)
        if predicate is None:
            return keep
        looked_at = table.select(fields)
        if batched:
            keep &= np.asarray(predicate.do_include(looked_at.to_pandas()), bool)
            return keep
        columns = decode_values(looked_at, stored)
        rows = zip(*(columns[name] for name in fields), strict=True)
        answers = (bool(predicate.do_include(dict(zip(fields, row, strict=True)))) for row in rows)
        keep &= np.fromiter(answers, bool, table.num_rows)
        return keep

    return Picking(sorted({*fields, *filtered}), wanted)
