"""What monitors watch, and what they compare it with, for lineage."""

from __future__ import annotations

from collections.abc import Iterator

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Edge, Thing
from cargobike.monitoring.record import all_folders, read_record


def edges(project: ProjectFolder) -> Iterator[Edge]:
    """Yield what the monitors of a project watch and compare with."""
    for folder in all_folders(project):
        try:
            record = read_record(folder)
        except StoreError:
            continue  # `cargobike monitor show` says what is wrong with it
        if record is None:
            continue
        made, watched = Thing("monitor", folder.id), record.watched
        yield Edge(made, Thing(watched.kind, watched.subject), detail="watches")
        kind, name, version = watched.reference_thing
        if kind:
            yield Edge(made, Thing(kind, name, version), detail="compares with")
