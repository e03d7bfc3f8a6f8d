"""What tables were made from, for lineage."""

from __future__ import annotations

from collections.abc import Iterator

from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Edge, Thing
from cargobike.data.tables.listing import versions_in
from cargobike.data.tables.table import Table


def edges(project: ProjectFolder) -> Iterator[Edge]:
    """Yield what the tables of a project were read from, as far as that was recorded; removed ones too."""
    for _, _, table in versions_in(project):
        if not isinstance(table, Table) or table.manifest.origin is None:
            continue
        made, origin = table.origin, table.manifest.origin
        detail = f"part {origin.part}" if origin.part else ""
        yield Edge(Thing(*made[:3]), Thing(*origin[:3]), detail=detail, at=table.manifest.at)
