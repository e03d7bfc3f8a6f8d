"""The edges of a project, kept while pages are walked, so that a step along them does not list ten thousand things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from cargobike.core.errors import NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import (
    Edge,
    Lineage,
    Steps,
    Thing,
    all_edges,
    follow,
    in_order,
    steps_of,
    titles_of,
)
from cargobike.ui.web.overview.refreshed import Lately

_QUICK_S: Final = 0.2


class KnownEdges(NamedTuple):
    """What came from what, as products told it.

    Attributes:
        edges: All edges.
        titles: What people call things whose names are ids.
        uses: The edges that lead from each thing to what was made from it.
        sources: The edges that lead from each thing to what it came from.
        called: The things that a name means, and those that a name with a version does.
        problems: Why not everything is known.
    """

    edges: list[Edge]
    titles: dict[Thing, str]
    uses: Steps
    sources: Steps
    called: dict[str, list[Thing]]
    problems: list[str]

    def find(self, name: str, kind: str) -> list[Thing]:
        """Return the things of a kind that a name means, with a version or without, in order.

        Raises:
            NotFoundError: If there is none.
        """
        things = [thing for thing in self.called.get(name, ()) if thing.kind == kind]
        if not things:
            raise NotFoundError(
                f"No {kind} called {name!r} was made from anything, or is used by anything.", wanted=name
            )
        return in_order(things)

    def around(self, things: Sequence[Thing]) -> Lineage:
        """Return what things came from, and what came from them."""
        return follow(self.sources, self.uses, things)


class EdgeBook:
    """The edges of one project; may be used by several threads."""

    def __init__(self, project: ProjectFolder) -> None:
        self._project = project
        self._known = Lately(self._read, quick_s=_QUICK_S)

    def known(self) -> KnownEdges:
        """Return all edges; those of a moment ago if reading them takes long."""
        return self._known.get()

    def uses_of(self, thing: Thing) -> Sequence[Edge]:
        """Return the edges that lead from a thing to what was directly made from it, or serves it."""
        return self.known().uses.get(thing, [])

    def _read(self) -> KnownEdges:
        problems: list[str] = []
        edges = list(all_edges(self._project, problems))
        sources, uses = steps_of(edges)
        called: dict[str, list[Thing]] = {}
        for thing in uses.keys() | sources.keys():
            for name in {thing.name, thing.id}:
                called.setdefault(name, []).append(thing)
        return KnownEdges(edges, titles_of(edges), uses, sources, called, problems)
