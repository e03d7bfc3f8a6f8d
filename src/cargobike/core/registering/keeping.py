"""Tables that a product writes for another: where the product that keeps tables and those that make rows meet."""

from __future__ import annotations

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


class TableKeeper(Protocol):
    """The door of the product that keeps tables."""

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
