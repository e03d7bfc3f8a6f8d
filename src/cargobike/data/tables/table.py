"""A version of a table: what `data.write` returns and `data.open` finds."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa

from cargobike.core.origins import Origin
from cargobike.core.registering.lazy import load
from cargobike.core.registering.steps import Kept
from cargobike.data.sources.source import Source
from cargobike.data.tables.addresses import ID, Address
from cargobike.data.tables.manifest import FileEntry, Manifest
from cargobike.store.history.environment import without_credentials

_SOURCE = "cargobike.data.sources.table:TableSource"
"""By name, since it opens tables, and stands above."""


class Table:
    """One version of a table; it never changes.

    Args:
        address: Where the table lies.
        manifest: What this version holds.
    """

    def __init__(self, address: Address, manifest: Manifest) -> None:
        self.address = address
        self.manifest = manifest

    def __repr__(self) -> str:
        url = without_credentials(self.url)
        return f"Table({self.name!r}, version={self.version}, rows={self.num_rows}, url={url!r})"

    def __len__(self) -> int:
        return self.num_rows

    @property
    def url(self) -> str:
        """Where all its versions lie: a folder or a URL."""
        return self.address.storage.url

    @property
    def name(self) -> str:
        """What it is called."""
        return self.address.name

    @property
    def version(self) -> int:
        """The number of this version, from 1."""
        return self.manifest.version

    @property
    def fingerprint(self) -> str:
        """The same for equal content: names, types and shapes of columns and all values, in order and row groups."""
        return self.manifest.fingerprint

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        return self.manifest.rows

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns; tensors are fixed-size binary with their shape in the metadata."""
        return self.manifest.arrow_schema()

    @property
    def files(self) -> list[FileEntry]:
        """The Parquet files, by their paths below `url`."""
        return list(self.manifest.files)

    @property
    def size_bytes(self) -> int:
        """What the files need on the storage."""
        return self.manifest.size_bytes

    @property
    def origin(self) -> Origin:
        """What rows that are read from it come from: its name in the project, or its address elsewhere."""
        is_given = bool(self.address.in_project) and ID.fullmatch(self.name) is not None
        name = self.name if self.address.in_project else without_credentials(self.url)
        return Origin("table", name, "" if is_given else str(self.version))

    def kept_as(self) -> Kept:
        """Return what a pipeline keeps of it."""
        place = self.name if self.address.in_project else without_credentials(self.url)
        return Kept("table", f"{place}:{self.version}")

    def source(self) -> Source:
        """Return its rows in groups, as loaders read them."""
        return cast("Source", load(_SOURCE)(self))

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows at once, as an Arrow table."""
        with contextlib.closing(self.source()) as source:
            groups = [source.read(group, columns) for group in range(len(source.groups))]
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        return pa.concat_tables(groups) if groups else schema.empty_table()

    def head(self, rows: int = 10) -> pa.Table:
        """Return the first rows, as an Arrow table."""
        pieces, count = [self.schema.empty_table()], 0
        with contextlib.closing(self.source()) as source:
            for group in range(len(source.groups)):
                if count >= rows:
                    break
                pieces.append(source.read(group).slice(0, rows - count))
                count += pieces[-1].num_rows
        return pa.concat_tables(pieces)

    def to_pandas(self, columns: Sequence[str] | None = None) -> Any:
        """Return all rows at once, as a pandas DataFrame."""
        return self.read(columns).to_pandas()
