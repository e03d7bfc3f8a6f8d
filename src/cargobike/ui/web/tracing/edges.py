"""The edges of a project, kept while pages are walked, so that a step along them does not list ten thousand things."""

from __future__ import annotations

from typing import Final, NamedTuple

from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Edge, Thing, all_edges, titles_of
from cargobike.ui.web.overview.refreshed import Lately

_QUICK_S: Final = 0.2


class KnownEdges(NamedTuple):
    """What came from what, as products told it.

    Attributes:
        edges: All edges.
        titles: What people call things whose names are ids.
        uses: The edges that lead away from each thing.
        problems: Why not everything is known.
    """

    edges: list[Edge]
    titles: dict[Thing, str]
    uses: dict[Thing, list[Edge]]
    problems: list[str]


class EdgeBook:
    """The edges of one project; may be used by several threads."""

    def __init__(self, project: ProjectFolder) -> None:
        self._project = project
        self._known = Lately(self._read, quick_s=_QUICK_S)

    def known(self) -> KnownEdges:
        """Return all edges; those of a moment ago if reading them takes long."""
        return self._known.get()

    def uses_of(self, thing: Thing) -> list[Edge]:
        """Return the edges that lead from a thing to what was directly made from it, or serves it."""
        return self.known().uses.get(thing, [])

    def _read(self) -> KnownEdges:
        problems: list[str] = []
        edges = list(all_edges(self._project, problems))
        uses: dict[Thing, list[Edge]] = {}
        for edge in edges:
            uses.setdefault(edge.source, []).append(edge)
        return KnownEdges(edges, titles_of(edges), uses, problems)
