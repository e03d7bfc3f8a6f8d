"""What monitors watch, and what they compare it with, for lineage."""

from __future__ import annotations

from collections.abc import Iterator

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Edge, Thing
from cargobike.monitoring.following import RECORDS


def edges(project: ProjectFolder) -> Iterator[Edge]:
    """Yield what the monitors of a project watch and compare with."""
    for name, record in RECORDS.all(project):
        if isinstance(record, StoreError):
            continue  # `cargobike monitor show` says what is wrong with it
        made, watched = Thing("monitor", name), record.watched
        yield Edge(made, Thing(watched.kind, watched.subject), detail="watches")
        kind, *reference = watched.reference_thing
        if kind:
            yield Edge(made, Thing(kind, *reference), detail="compares with")
