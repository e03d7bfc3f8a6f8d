"""Opening the project's index for a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cargobike.experiments.index.index import Index
from cargobike.experiments.index.opening import open_index
from cargobike.store.files import project


@contextmanager
def synced_index() -> Iterator[Index]:
    """Open the index of the current project, caught up with its journals."""
    with open_index(project.current()) as index:
        index.sync()
        yield index
