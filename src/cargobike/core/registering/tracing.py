"""What was made from what in a project: the edges that all products know, and the way along them.

Each product registers a function that yields the edges it wrote down when it made something (`Product.edges`). No
product knows those of the others; they meet here, in things that have a kind, a name and a version.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from cargobike.core.errors import CargobikeError, NotFoundError, nearest, nearest_names
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.lazy import in_words, load
from cargobike.core.registering.products import products

_log: Final = logging.getLogger(__name__)

Relation = Literal["made from", "trained on", "serves", "triggered by"]


class Thing(NamedTuple):
    """A version of something that a project keeps: `("model", "digits", "3")`, `("experiment", "20261117-1a2b", "")`.

    Versions are text, since not everything is counted; what has no versions has none here.
    """

    kind: str
    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"

    @property
    def id(self) -> str:
        """Its name, and its version if it has one: `digits:3`."""
        return f"{self.name}:{self.version}" if self.version else self.name


class Edge(NamedTuple):
    """A thing and another that it came from.

    Attributes:
        made: The thing.
        source: What it came from.
        relation: How.
        detail: More about it: a commit, features, a trial.
        title: What people call the thing, where its name is an id.
        at: When that was, in seconds since 1970; 0 if it is not known, or is so now and was otherwise before.
        goes_on: Whether more may have come since, as rows come to a group again and again.
    """

    made: Thing
    source: Thing
    relation: Relation = "made from"
    detail: str = ""
    title: str = ""
    at: float = 0.0
    goes_on: bool = False


class Lineage(NamedTuple):
    """What things came from, and what came from them, step by step, in both directions."""

    sources: list[Edge]
    uses: list[Edge]


Edges = Callable[[ProjectFolder], Iterable[Edge]]
"""What a product registers: yields the edges of a project that the product knows."""


def all_edges(project: ProjectFolder, problems: list[str] | None = None) -> Iterator[Edge]:
    """Yield what came from what in a project, as all products know it.

    What is named without a version, but has versions, stands for its newest one.

    Args:
        project: The project.
        problems: If given, what keeps a product from telling what it knows is added here, and the others are asked all
            the same: for what is only shown. Without it that is an error: for what decides, such as what may be
            deleted.
    """
    edges = list(_told(project, problems))
    newest: dict[tuple[str, str], Thing] = {}
    for thing in {end for edge in edges for end in (edge.made, edge.source) if end.version}:
        place = thing.kind, thing.name
        newest[place] = max(newest.get(place, thing), thing, key=lambda one: _counted(one.version))
    for edge in edges:
        made, source = (newest.get((end.kind, end.name), end) if not end.version else end for end in edge[:2])
        yield edge if (made, source) == edge[:2] else edge._replace(made=made, source=source)


def _told(project: ProjectFolder, problems: list[str] | None) -> Iterator[Edge]:
    """Yield the edges of all products as these tell them."""
    for product in products():
        if not product.edges:
            continue
        try:
            known: Edges = load(product.edges)
        except ModuleNotFoundError as error:
            problem = in_words(error, f"The lineage of {product.name}", product.extra)
            if problem is error:
                raise
            _log.info("%s", problem)  # without its libraries a product has made nothing here
            continue
        try:
            yield from known(project)
        except (CargobikeError, OSError) as error:
            if problems is None:
                raise
            problems.append(f"What {product.name} knows is missing here: {error}")


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
    return reached_from(edges, find_things(edges, name, kind))


def find_things(edges: Sequence[Edge], name: str, kind: str = "") -> list[Thing]:
    """Return the things at the ends of edges that a name means, in order; see `lineage_of`.

    Raises:
        NotFoundError: If there is none; says which have similar names.
    """
    things = {thing for edge in edges for thing in (edge.made, edge.source)}
    wanted = [thing for thing in things if name in {thing.name, thing.id} and kind in {"", thing.kind}]
    if not wanted:
        names = sorted({called for thing in things for called in (thing.name, thing.id)})
        what = f"No {kind}" if kind else "Nothing"
        raise NotFoundError(
            f"{what} called {name!r} was made from anything, or is used by anything.{nearest(name, names)}",
            wanted=name,
            nearest=nearest_names(name, names),
        )
    return in_order(wanted)


def in_order(things: Iterable[Thing]) -> list[Thing]:
    """Return things by kind, name and version, the newest of a name last."""
    return sorted(things, key=lambda thing: (thing.kind, thing.name, _counted(thing.version)))


Steps = Mapping[Thing, Sequence[Edge]]


def steps_of(edges: Iterable[Edge]) -> tuple[Steps, Steps]:
    """Return the edges from each thing to what it came from, and those to what came from it."""
    sources: dict[Thing, list[Edge]] = {}
    uses: dict[Thing, list[Edge]] = {}
    for edge in edges:
        sources.setdefault(edge.made, []).append(edge)
        uses.setdefault(edge.source, []).append(edge)
    return sources, uses


def reached_from(edges: Iterable[Edge], things: Iterable[Thing]) -> Lineage:
    """Return the edges that lead away from things in both directions, the nearest first; see `follow`."""
    return follow(*steps_of(edges), things)


def follow(sources: Steps, uses: Steps, things: Iterable[Thing]) -> Lineage:
    """Return the edges that lead away from things in both directions, the nearest first, right in time.

    A group that a training dataset was made from goes on to grow: what came to it later is not in the dataset.

    Args:
        sources: The edges from each thing to what it came from.
        uses: The edges from each thing to what came from it.
        things: Where to begin.
    """
    begin = tuple(things)
    return Lineage(_sources(sources, begin), _uses(uses, begin))


def _sources(steps: Steps, begin: Iterable[Thing]) -> list[Edge]:
    """Follow what each thing came from, as far as it had come by the time at which something came from the thing."""
    until = dict.fromkeys(begin, math.inf)
    front, found = dict(until), dict[Edge, None]()
    while front:
        after: dict[Thing, float] = {}
        for thing, bound in front.items():
            for edge in steps.get(thing, ()):
                if edge.at > bound or (not edge.at and _came_later(steps.get(edge.source, ()), bound)):
                    continue
                found[edge] = None
                then = bound if edge.goes_on else edge.at or bound
                if then > until.get(edge.source, -math.inf):
                    until[edge.source] = after[edge.source] = then
        front = after
    return list(found)


def _came_later(own: Sequence[Edge], bound: float) -> bool:
    """Tell whether a thing was made later, by the edges to what it came from: a deployment serves another one now."""
    return bool(own) and all(edge.at > bound for edge in own)


def _uses(steps: Steps, begin: Iterable[Thing]) -> list[Edge]:
    """Follow what came from each thing, from the time on at which it had come from where we began."""
    since = dict.fromkeys(begin, -math.inf)
    front, found = dict(since), dict[Edge, None]()
    while front:
        after: dict[Thing, float] = {}
        for thing, bound in front.items():
            for edge in steps.get(thing, ()):
                if edge.at and edge.at < bound and not edge.goes_on:
                    continue
                found[edge] = None
                then = max(edge.at or bound, bound)
                if then < since.get(edge.made, math.inf):
                    since[edge.made] = after[edge.made] = then
        front = after
    return list(found)


def titles_of(edges: Iterable[Edge]) -> dict[Thing, str]:
    """Return what people call things whose names are ids."""
    return {edge.made: edge.title for edge in edges if edge.title}


def page_of(thing: Thing) -> str:
    """Return the address of the page of a thing in the dashboard; empty if no product has one for it."""
    for product in products():
        if address := product.thing_pages.get(thing.kind):
            parts = {"name": thing.name, "version": thing.version, "id": thing.id}
            return address.format_map({key: quote(text, safe=":") for key, text in parts.items()})
    return ""


def users_of(project: ProjectFolder, thing: Thing, problems: list[str] | None = None) -> list[Edge]:
    """Return the edges that lead from a thing to what was directly made from it, or serves it; see `all_edges`."""
    return [edge for edge in all_edges(project, problems) if edge.source == thing]


def _counted(version: str) -> tuple[int, str]:
    return (int(version), "") if version.isdecimal() else (0, version)
