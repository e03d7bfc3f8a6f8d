"""Opening the project's index for a command."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.experiments.index.index import Index
from cargobike.experiments.index.opening import open_index
from cargobike.store.files import project
from cargobike.store.files.locking import is_held


def unread_folders(folder: ProjectFolder, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the folders among the experiments that the index could not read, each with the reason.

    Args:
        folder: The project.
        known: The ids that are in the index.
    """
    for entry in sorted(folder.experiments.glob("[!.]*")):
        try:
            if entry.name not in known and not is_held(folder.experiment(entry.name)):
                yield entry.name, f"has no journal that can be read; remove it: cargobike rm {entry.name}"
        except StoreError as error:
            yield entry.name, str(error)


@contextmanager
def synced_index() -> Iterator[Index]:
    """Open the index of the current project, caught up with its journals."""
    with open_index(project.current()) as index:
        index.sync()
        yield index
