"""Tables that a product writes for another: where the product that keeps tables and those that make rows meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import products


class KeptTable(Protocol):
    """A table that was written: it never changes, and can be read by loaders and train functions."""

    @property
    def version(self) -> int:
        """Its number at its address."""
        ...

    @property
    def fingerprint(self) -> str:
        """The same for equal content."""
        ...

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        ...

    def read(self, columns: Any = None) -> Any:
        """Return all rows, as an Arrow table."""
        ...

    def source(self) -> Any:
        """Return its rows as loaders read them."""
        ...


class RowSource(Protocol):
    """Rows of any kind, wherever they lie, in groups that are read one by one."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def schema(self) -> Any:
        """Names and types of the columns, as an Arrow schema."""
        ...

    @property
    def num_rows(self) -> int:
        """How many rows there are in all."""
        ...

    @property
    def groups(self) -> Sequence[Any]:
        """The groups; each has a number of `rows`."""
        ...

    def read(self, group: int, columns: Sequence[str] | None = None) -> Any:
        """Return the rows of one group as an Arrow table; only some columns if asked."""
        ...

    def close(self) -> None:
        """Release files and memory."""
        ...


class TableKeeper(Protocol):
    """The door of the product that keeps tables."""

    def open_source(self, given: Any) -> RowSource:
        """Return the rows that a user means: a name, path or URL, a frame, a table in memory."""
        ...

    def open_parquet_files(self, system: Any, sizes: Mapping[str, int], name: str) -> RowSource:
        """Return the rows of Parquet files on a file system of `pyarrow.fs`, which may wait for content to come.

        `sizes` has the bytes of each file by its path, `name` is what people call them.
        """
        ...

    def write(self, source: Any, url: str) -> KeptTable:
        """Write rows as the next version of a table, which appears at once or not at all."""
        ...

    def open(self, table: str, *, version: int | None = None) -> KeptTable:
        """Return a version of a table; raises `NotFoundError`."""
        ...

    def write_tfrecord(self, source: Any, url: str) -> list[str]:
        """Write rows as TFRecord files."""
        ...


def table_keeper() -> TableKeeper:
    """Return the door of the product that keeps tables."""
    keeper: TableKeeper = next(load(product.keeper) for product in products() if product.keeper)
    return keeper
