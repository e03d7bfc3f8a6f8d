"""What experiments came from, for lineage."""

from __future__ import annotations

from collections.abc import Iterator

from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Edge, Thing
from cargobike.experiments.index.opening import open_index


def edges(project: ProjectFolder) -> Iterator[Edge]:
    """Yield what each experiment of a project was trained on, repeats or learned from, the newest first."""
    with open_index(project) as index:
        index.sync()
        rows = index.origins()
    for experiment_id, name, origin in rows:
        made, source = Thing("experiment", experiment_id), Thing(origin.kind, origin.name, origin.version)
        yield Edge(made, source, origin.relation, origin.detail, name)
