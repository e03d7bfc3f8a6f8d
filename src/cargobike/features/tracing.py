"""What was made from what: groups, views, training datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cargobike.core.errors import NotFoundError, nearest, nearest_names
from cargobike.core.layout import ProjectFolder
from cargobike.features.datasets.record import read_datasets
from cargobike.features.views.record import read_views
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of


class Thing(NamedTuple):
    """A version of a group, a view or a training dataset."""

    kind: str
    name: str
    version: int

    def __str__(self) -> str:
        return f"{self.kind} {self.name}:{self.version}"


class Edge(NamedTuple):
    """A thing, and another that it was made from; `detail` says at which commit, or with which features."""

    made: Thing
    source: Thing
    detail: str = ""


class Lineage(NamedTuple):
    """What a thing was made from, and what was made from it, step by step, in both directions."""

    sources: list[Edge]
    uses: list[Edge]


def all_edges(folder: ProjectFolder | None = None) -> list[Edge]:
    """Return what was made from what in a project, views first."""
    storage = storage_of(folder if folder is not None else project.current())
    edges = []
    for view in read_views(storage):
        made = Thing("view", view.name, view.version)
        for group, version in {(each.group, each.version): None for each in view.features}:
            names = [each.feature for each in view.features if each.group == group]
            edges.append(Edge(made, Thing("group", group, version), ", ".join(names)))
    for dataset in read_datasets(storage):
        made = Thing("dataset", dataset.name, dataset.version)
        edges.append(Edge(made, Thing("view", dataset.view, dataset.view_version)))
        for group, version in dataset.group_versions.items():
            edges.append(Edge(made, Thing("group", group, version), f"commit {dataset.commits.get(group)}"))
    return edges


def lineage(name: str) -> Lineage:
    """Return what a group, view or training dataset of the project was made from, and what was made from it.

    Args:
        name: Its name, for all things of that name, or name and version: `team_value:2`.

    Raises:
        NotFoundError: If nothing with that name was made from anything, or is used by anything.
    """
    edges = all_edges()
    plain, _, version = name.partition(":")
    things = {thing for edge in edges for thing in (edge.made, edge.source)}
    wanted = {thing for thing in things if thing.name == plain and version in {"", str(thing.version)}}
    if not wanted:
        names = sorted({thing.name for thing in things})
        raise NotFoundError(
            f"Nothing called {name!r} was made from features, or is used by a view.{nearest(plain, names)}",
            wanted=name,
            nearest=nearest_names(plain, names),
        )
    return Lineage(
        _reached(edges, wanted, lambda edge: (edge.made, edge.source)),
        _reached(edges, wanted, lambda edge: (edge.source, edge.made)),
    )


def _reached(edges: list[Edge], begin: set[Thing], ends: Callable[[Edge], tuple[Thing, Thing]]) -> list[Edge]:
    """Return the edges that lead away from things, in one direction."""
    seen, found, front = set(begin), [], set(begin)
    while front:
        step = [edge for edge in edges if ends(edge)[0] in front and edge not in found]
        found += step
        front = {ends(edge)[1] for edge in step} - seen
        seen |= front
    return found
