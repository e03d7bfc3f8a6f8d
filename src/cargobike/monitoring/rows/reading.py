"""Rows of anything that holds rows: tables in memory, files, addresses, tables and datasets of the project."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.keeping import RowSource, table_keeper


class _Memory:
    """An Arrow table as a source; a window of few rows has no time for more."""

    name = "a table in memory"

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.schema = table.schema
        self.num_rows = table.num_rows
        self.groups: Sequence[Any] = [table] if table.num_rows else []

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the table."""
        return self._table if columns is None else self._table.select(list(columns))

    def close(self) -> None:
        """Nothing is open."""


@contextlib.contextmanager
def opened(given: Any, what: str) -> Iterator[RowSource]:
    """Open what a user gives as rows, and close it at the end.

    Args:
        given: A name, path or URL, a frame, a table.
        what: What it is to be, for errors.

    Raises:
        InvalidInputError: If it cannot be read, or has no rows.
        NotFoundError: If there is no such file or table.
    """
    source: RowSource = _Memory(given) if isinstance(given, pa.Table) else table_keeper().open_source(given)
    try:
        if not source.num_rows:
            raise InvalidInputError(f"The {what} has no rows: {source.name} is empty. Give at least one row.")
        yield source
    finally:
        source.close()


def count_rows(given: Any) -> int:
    """Return how many rows there are.

    Raises:
        InvalidInputError: If it cannot be read, or has no rows.
        NotFoundError: If there is no such file or table.
    """
    with opened(given, "window") as source:
        return source.num_rows


def tables_of(source: RowSource, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of a source, a group at a time."""
    for group in range(len(source.groups)):
        yield source.read(group, columns)


def sample_of(source: RowSource, columns: Sequence[str], rows: int, random: np.random.Generator) -> pa.Table:
    """Return rows of a source, drawn at random and in their order; all of them if there are no more."""
    if source.num_rows <= rows:
        return pa.concat_tables(tables_of(source, columns), promote_options="permissive")
    chosen = np.sort(random.choice(source.num_rows, rows, replace=False))
    parts, first = [], 0
    for table in tables_of(source, columns):
        inside = chosen[(chosen >= first) & (chosen < first + table.num_rows)] - first
        parts.append(table.take(pa.array(inside)))
        first += table.num_rows
    return pa.concat_tables(parts, promote_options="permissive")


def windows_of(source: RowSource, columns: Sequence[str], rows: int) -> Iterator[list[pa.Table]]:
    """Yield the rows of a source in windows, each as the pieces that it is read in; the last one may be small."""
    pieces: list[pa.Table] = []
    wanted = rows
    for table in tables_of(source, columns):
        start = 0
        while start < table.num_rows:
            piece = table.slice(start, wanted)
            pieces.append(piece)
            start += piece.num_rows
            wanted -= piece.num_rows
            if not wanted:
                yield pieces
                pieces, wanted = [], rows
    if pieces:
        yield pieces
