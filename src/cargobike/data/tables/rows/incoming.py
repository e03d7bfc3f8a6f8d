"""What can be written as a table, each as a stream of Arrow batches: memory holds a piece of it at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.core.origins import Origin
from cargobike.data.sources.opening import open_source, origin_of
from cargobike.data.sources.source import Source
from cargobike.data.tables.rows.columns import batch_of
from cargobike.store.history.environment import without_credentials

Each = Literal["row", "batch"]

_ROWS_AT_ONCE = 4096
_BYTES_AT_ONCE = 8 << 20
UNNAMED = "value"
"""What the column of arrays without names is called."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A stream of batches.

    Attributes:
        source: What it comes from, in a word.
        batches: Rows in order; types may differ from batch to batch.
        may_lack_columns: Whether a batch may lack columns that others have; its rows then have nothing there.
        num_rows: How many rows there will be, if that is known.
        origin: What they are read from, if they are not only in memory.
    """

    source: str
    batches: Iterator[pa.RecordBatch]
    may_lack_columns: bool = False
    num_rows: int | None = None
    origin: Origin | None = None


def incoming_of(source: Any, *, each: Each | None = None, types: pa.Schema | None = None) -> Incoming:
    """Return what a user gives to be written as a stream of batches.

    Args:
        source: The data.
        each: What each dict or array of an iterator is: `"row"` or `"batch"`, several rows.
        types: What some columns are to be.

    Raises:
        InvalidInputError: If it is nothing that can be written.
    """
    if each not in (None, "row", "batch"):
        raise InvalidInputError(f"each={each!r} was given; allowed are 'row' and 'batch'.")
    if _is_stored(source):
        stored = open_source(source)
        origin = origin_of(stored)
        return Incoming(_word(source), _group_by_group(stored), num_rows=stored.num_rows, origin=origin)
    if (batches := _batches(source, 0, types)) is not None:
        return Incoming(_word(source), iter(batches), num_rows=_count(source))
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        raise InvalidInputError(
            f"{type(source).__name__} was given; a table is written from a pandas, polars or Spark DataFrame, an Arrow "
            "table, a dict of arrays, an iterator of dicts, arrays or any of these, a path, a glob, a URL or a table."
        )
    return Incoming("rows", _streamed(iter(source), each, types), may_lack_columns=True)


def _is_stored(source: Any) -> bool:
    """Tell whether something names or is a source that lies elsewhere: paths, globs, URLs, tables."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(each, str | os.PathLike) for each in source)
    return isinstance(source, str | os.PathLike | Source) or callable(getattr(source, "source", None))


def _group_by_group(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a source in order; also its columns if it has no rows."""
    try:
        yield _empty(source.schema)
        for group in range(len(source.groups)):
            yield from source.read(group).to_batches()
    finally:
        source.close()


def _word(source: Any) -> str:
    if isinstance(source, list | tuple) and source:
        return f"{_word(source[0])} and {len(source) - 1} more" if len(source) > 1 else _word(source[0])
    if isinstance(source, str | os.PathLike):
        return without_credentials(os.fspath(source))
    if _is_stored(source):
        return str(source.name if isinstance(source, Source) else source.source().name)
    module = type(source).__module__.partition(".")[0]
    return "numpy" if isinstance(source, Mapping) or module == "numpy" else module


def _count(source: Any) -> int | None:
    if isinstance(source, Mapping):
        return max((len(values) for values in source.values()), default=0)
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        return int(source.num_rows)
    return len(source) if hasattr(source, "__len__") else None


def _batches(source: Any, first_row: int, types: pa.Schema | None) -> Iterable[pa.RecordBatch] | None:
    """Return something that holds several rows as batches; `None` for anything else."""
    module = type(source).__module__.partition(".")[0]
    if isinstance(source, pa.RecordBatch):
        return [source]
    if isinstance(source, pa.Table):
        return list(source.to_batches()) or [_empty(source.schema)]
    if isinstance(source, pa.RecordBatchReader):
        return (batch for batch in source)
    if module == "pandas" and hasattr(source, "columns"):
        return _pandas_batches(source, first_row, types)
    if module == "polars" and hasattr(source, "collect"):
        source = source.collect()
    if module == "polars" and hasattr(source, "to_arrow") and hasattr(source, "columns"):
        table = source.to_arrow()
        return list(table.to_batches()) or [_empty(table.schema)]
    if isinstance(source, Mapping):
        return [batch_of(source, first_row, types)]
    if isinstance(source, np.ndarray) and source.dtype.names is not None:
        return [batch_of({name: source[name] for name in source.dtype.names}, first_row, types)]
    if isinstance(source, np.ndarray) and source.ndim:
        return [batch_of({UNNAMED: source}, first_row, types)]
    return None


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _pandas_batches(frame: Any, first_row: int, types: pa.Schema | None) -> list[pa.RecordBatch]:
    """Return a pandas DataFrame as batches; columns of arrays, which pandas holds as objects, are tensors."""
    shaped = [
        name
        for position, name in enumerate(frame.columns)
        if frame.dtypes.iloc[position].kind == "O"
        and isinstance(next((one for one in frame.iloc[:, position] if one is not None), None), np.ndarray)
    ]
    table = pa.Table.from_pandas(frame.drop(columns=shaped), preserve_index=False)
    if types is not None:
        table = table.cast(pa.schema([_wanted(field, types) for field in table.schema], metadata=table.schema.metadata))
    if shaped:
        tensors = batch_of({str(name): list(frame[name]) for name in shaped}, first_row, types)
        for position, name in enumerate(frame.columns):
            if name in shaped:
                index = tensors.schema.get_field_index(str(name))
                table = table.add_column(position, tensors.schema.field(index), tensors.column(index))
    return table.to_batches() or [_empty(table.schema)]


def _wanted(field: pa.Field, types: pa.Schema) -> pa.Field:
    index = types.get_field_index(field.name)
    return types.field(index) if index >= 0 else field


def _streamed(items: Iterator[Any], each: Each | None, types: pa.Schema | None) -> Iterator[pa.RecordBatch]:
    """Yield what an iterator gives: rows are gathered to batches, tables and frames come as they are."""
    rows: list[Mapping[str, Any]] = []
    size = done = 0
    for item in items:
        row = _as_row(item, each, done + len(rows))
        if row is not None:
            rows.append(row)
            size += sum(_size(value) for value in row.values())
        if rows and (row is None or len(rows) >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE):
            yield _gathered(rows, done, types)
            done, size, rows = done + len(rows), 0, []
        if row is None:
            for batch in _several(item, done, types):
                yield batch
                done += batch.num_rows
    if rows:
        yield _gathered(rows, done, types)


def _as_row(item: Any, each: Each | None, number: int) -> Mapping[str, Any] | None:
    """Return an item as a row; `None` if it holds several."""
    if isinstance(item, Mapping):
        if each is None and _could_be_either(item):
            raise InvalidInputError(
                f"Item {number} is a dict of arrays that are equally long. Say what each dict is: each='row' (a row "
                "whose columns are tensors) or each='batch' (columns of several rows)."
            )
        return item if each != "batch" else None
    if isinstance(item, np.ndarray) and item.dtype.names is None:
        return {UNNAMED: item} if each != "batch" else None
    if isinstance(item, np.void) and item.dtype.names is not None:
        return {name: item[name] for name in item.dtype.names}
    return None


def _could_be_either(item: Mapping[str, Any]) -> bool:
    values = list(item.values())
    if not values or not all(isinstance(value, np.ndarray) and value.ndim for value in values):
        return False
    return len({len(value) for value in values}) == 1 and len(values[0]) > 1


def _several(item: Any, first_row: int, types: pa.Schema | None) -> Iterable[pa.RecordBatch]:
    batches = _batches(item, first_row, types)
    if batches is None:
        raise InvalidInputError(
            f"Row {first_row} is {type(item).__name__}; an iterator gives dicts with the names of columns, arrays, "
            "Arrow batches or DataFrames."
        )
    return batches


def _gathered(rows: list[Mapping[str, Any]], first_row: int, types: pa.Schema | None) -> pa.RecordBatch:
    names = dict.fromkeys(name for row in rows for name in row)
    return batch_of({name: [row.get(name) for row in rows] for name in names}, first_row, types)


def _size(value: Any) -> int:
    if isinstance(value, (bytes, str)):
        return len(value)
    return int(getattr(value, "nbytes", 16))
