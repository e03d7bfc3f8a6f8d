"""Parquet files in folders such as `year=2026/month=11`: what the names of folders say, as columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.data.sources.parquet import ParquetSource, RowGroup, open_parquet
from cargobike.data.sources.source import Group, Source, SourceSpec

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_WHOLE: Final = re.compile(r"-?(0|[1-9]\d{0,17})")


class PartitionedSource(Source):
    """Row groups of Parquet files, with a column for each level of folders that is called `name=value`.

    A level whose values are all whole numbers is a column of these, any other one of text.

    Args:
        files: The row groups.

    Attributes:
        partitions: The names of these columns, from the outermost folder on.
        values: For each group, their values.

    Raises:
        InvalidInputError: If files lie below different levels.
    """

    def __init__(self, files: ParquetSource) -> None:
        self._files = files
        self.name, self.fingerprint, self.columns_at_once = files.name, files.fingerprint, files.columns_at_once
        self.groups: Sequence[Group] = files.groups
        places = [files.row_group(group) for group in range(len(files.groups))]
        self.values: list[dict[str, str | int | None]] = [_values(place.file.relative) for place in places]
        self.partitions = list(self.values[0]) if self.values else []
        for place, values in zip(places, self.values, strict=True):
            if list(values) != self.partitions:
                raise InvalidInputError(
                    f"{place.file.shown} lies below {list(values)}, and {places[0].file.shown} below "
                    f"{self.partitions}; give files that are partitioned alike."
                )
        types = {name: self._as_numbers(name) for name in self.partitions}
        inside = [field for field in files.schema if field.name not in types]
        self.schema = pa.schema([*(pa.field(name, kind) for name, kind in types.items()), *inside])

    def row_group(self, group: int) -> RowGroup:
        """Return in which file a group lies."""
        return self._files.row_group(group)

    def row_groups_per_file(self) -> dict[str, int]:
        """Return how many row groups each file has."""
        return self._files.row_groups_per_file()

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Decode one row group, and add what its folders say."""
        names = self.schema.names if columns is None else list(columns)
        inside = [name for name in names if name not in self.partitions]
        if not self.partitions or len(inside) == len(names):
            return self._files.read(group, inside)
        rows = self.groups[group].rows
        table = self._files.read(group, inside) if inside else None
        arrays = []
        for name in names:
            if table is not None and name in inside:
                arrays.append(table[name])
            else:
                value = pa.scalar(self.values[group][name], self.schema.field(name).type)
                arrays.append(pa.chunked_array([pa.repeat(value, rows)]))
        return pa.table(arrays, names=names)

    def spec(self) -> SourceSpec:
        """Return the paths, to be listed again elsewhere."""
        files = self._files.spec()
        return SourceSpec(
            opener="cargobike.data.sources.partitions:open_partitioned",
            options=files.options,
            fingerprint=files.fingerprint,
        )

    def close(self) -> None:
        """Close the files that are kept open."""
        self._files.close()

    def _as_numbers(self, name: str) -> pa.DataType:
        """Turn the values of a level into numbers if all are; returns the type of its column."""
        found = [values[name] for values in self.values]
        if not all(value is None or _WHOLE.fullmatch(str(value)) for value in found):
            return pa.string()
        for values in self.values:
            value = values[name]
            values[name] = None if value is None else int(value)
        return pa.int64()


def open_partitioned(options: dict[str, object]) -> PartitionedSource:
    """Open files again from what `spec` said of them."""
    return PartitionedSource(open_parquet(options))


def _values(relative: str) -> dict[str, str | int | None]:
    pairs = [name.partition("=") for name in relative.split("/")[:-1]]
    found = {unquote(name): unquote(value) for name, equals, value in pairs if equals and name}
    return {name: None if value == _NULL else value for name, value in found.items()}
