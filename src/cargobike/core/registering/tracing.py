"""What was made from what in a project: the edges that all products know, and the way along them.

Each product registers a function that yields the edges it wrote down when it made something (`Product.edges`). No
product knows those of the others; they meet here, in things that have a kind, a name and a version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from cargobike.core.errors import NotFoundError, nearest, nearest_names
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.lazy import load
from cargobike.core.registering.products import products

Relation = Literal["made from", "trained on", "serves", "triggered by"]


class Thing(NamedTuple):
    """A version of something that a project keeps: `("model", "digits", "3")`, `("experiment", "20261117-1a2b", "")`.

    Versions are text, since not everything is counted; what has no versions has none here.
    """

    kind: str
    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f":{self.version}" if self.version else "")


class Edge(NamedTuple):
    """A thing and another that it came from; `detail` says more: a commit, features, a trial."""

    made: Thing
    source: Thing
    relation: Relation = "made from"
    detail: str = ""


class Lineage(NamedTuple):
    """What things came from, and what came from them, step by step, in both directions."""

    sources: list[Edge]
    uses: list[Edge]


Edges = Callable[[ProjectFolder], Iterable[Edge]]
"""What a product registers: yields the edges of a project that the product knows."""


def all_edges(project: ProjectFolder) -> Iterator[Edge]:
    """Yield what came from what in a project, as all products know it."""
    for product in products():
        if product.edges:
            known: Edges = load(product.edges)
            yield from known(project)


def lineage_of(project: ProjectFolder, name: str, kind: str = "") -> Lineage:
    """Return what something in a project came from, and what came from it.

    Args:
        project: Where to look.
        name: Its name, for all things of that name, or name and version: `team_value:2`.
        kind: What it is, such as `model`, if several kinds of things have the name.

    Raises:
        NotFoundError: If nothing with that name came from anything, or is used by anything.
    """
    edges = list(all_edges(project))
    things = {thing for edge in edges for thing in (edge.made, edge.source)}
    plain, _, version = name.partition(":")
    wanted = {
        thing for thing in things if thing.name == plain and version in {"", thing.version} and kind in {"", thing.kind}
    }
    if not wanted:
        names = sorted({thing.name for thing in things})
        raise NotFoundError(
            f"Nothing called {name!r} was made from anything, or is used by anything.{nearest(plain, names)}",
            wanted=name,
            nearest=nearest_names(plain, names),
        )
    return Lineage(
        _reached(edges, wanted, lambda edge: (edge.made, edge.source)),
        _reached(edges, wanted, lambda edge: (edge.source, edge.made)),
    )


def users_of(project: ProjectFolder, thing: Thing) -> list[Edge]:
    """Return the edges that lead from a thing to what was directly made from it, or serves it."""
    return [edge for edge in all_edges(project) if edge.source == thing]


def _reached(edges: list[Edge], begin: set[Thing], ends: Callable[[Edge], tuple[Thing, Thing]]) -> list[Edge]:
    """Return the edges that lead away from things, in one direction, the nearest first."""
    leaving: dict[Thing, list[Edge]] = {}
    for edge in edges:
        leaving.setdefault(ends(edge)[0], []).append(edge)
    seen, found, front = set(begin), [], list(begin)
    while front:
        step = [edge for thing in front for edge in leaving.get(thing, ())]
        found += step
        front = [thing for thing in dict.fromkeys(ends(edge)[1] for edge in step) if thing not in seen]
        seen.update(front)
    return found
