"""A feature group as queries, views and look-ups see it: what it is, and its rows at any commit."""

from __future__ import annotations

from typing import Protocol

import pyarrow.dataset as ds

from cargobike.features.definition import Definition


class ReadGroup(Protocol):
    """A group that can be read.

    Guarantees: rows of a commit never change; there is one row for each key and event time, or for each key in a group
    without event times; beside the columns of its definition there is `WRITTEN_AT`.
    """

    @property
    def definition(self) -> Definition:
        """What it is."""
        ...

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def table_id(self) -> str:
        """What tells it from a group that was made anew with the same name; empty if nothing was inserted yet."""
        ...

    @property
    def commit(self) -> int:
        """The number of its newest commit."""
        ...

    def dataset(self, commit: int | None = None) -> ds.Dataset:
        """Return its rows as they are after a commit, by default the newest."""
        ...
