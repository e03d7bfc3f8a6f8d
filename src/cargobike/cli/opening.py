"""Opening the project's index for a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cargobike import project
from cargobike.store.index import Index
from cargobike.store.opening import open_index


@contextmanager
def synced_index() -> Iterator[Index]:
    """Open the index of the current project, caught up with its journals."""
    with open_index(project.current()) as index:
        index.sync()
        yield index
