"""Lineage as a graph: which things are drawn where, decided apart from how.

What a thing came from stands left of it, what came from it right of it, each as far away as its longest way there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cargobike.core.registering.tracing import Edge, Lineage, Thing

MOST_OF_A_KIND: Final = 8
"""How many things of one kind stand above each other; one box stands for the others."""
MOST_STEPS: Final = 12
"""How far away from the thing in the middle boxes stand; what is further away stands there, too."""


class Node(NamedTuple):
    """A box: a thing, or `more` things of a kind that are not drawn."""

    thing: Thing
    column: int
    row: int
    more: int = 0


class Link(NamedTuple):
    """A line between two boxes, by their numbers, from a source to what was made from it."""

    source: int
    made: int
    relation: str
    detail: str


class Graph(NamedTuple):
    """What is drawn; columns count from 0."""

    nodes: list[Node]
    links: list[Link]
    middle: int
    """The column of the thing that the graph is about."""


def graph_of(lineage: Lineage, thing: Thing) -> Graph:
    """Return the graph around a thing: everything that it came from, and everything that came from it."""
    up = _steps((edge.made, edge.source) for edge in lineage.sources)
    down = _steps((edge.source, edge.made) for edge in lineage.uses)
    far = {one: -depth for one, depth in _depths(up, thing).items() if depth}
    far |= {one: depth for one, depth in _depths(down, thing).items() if depth and one not in far}
    far[thing] = 0
    shown, stands_for = _thinned(far)
    first = min(shown.values())
    columns: dict[int, list[Thing]] = {}
    for one in sorted(shown, key=lambda one: (shown[one], one.kind, one.name, one.version)):
        columns.setdefault(shown[one] - first, []).append(one)
    pairs = _pairs((*lineage.sources, *lineage.uses), far, stands_for)
    _untangle(columns, [(pair[0], pair[1]) for pair in pairs])
    nodes = [
        Node(one, column, row, _more(one)) for column in sorted(columns) for row, one in enumerate(columns[column])
    ]
    numbers = {node.thing: number for number, node in enumerate(nodes)}
    links = [Link(numbers[source], numbers[made], *words) for (source, made), words in pairs.items()]
    return Graph(nodes, links, -first)


def _steps(pairs: Iterable[tuple[Thing, Thing]]) -> dict[Thing, list[Thing]]:
    steps: dict[Thing, dict[Thing, None]] = {}
    for begin, end in pairs:
        steps.setdefault(begin, {})[end] = None
    return {begin: list(ends) for begin, ends in steps.items()}


def _depths(steps: dict[Thing, list[Thing]], begin: Thing) -> dict[Thing, int]:
    """Return how far away everything is by its longest way; a step that closes a circle does not count."""
    is_done = {begin: False}
    order: list[Thing] = []
    closing: set[tuple[Thing, Thing]] = set()
    way = [(begin, iter(steps.get(begin, ())))]
    while way:
        one, ends = way[-1]
        for end in ends:
            if end not in is_done:
                is_done[end] = False
                way.append((end, iter(steps.get(end, ()))))
                break
            if not is_done[end]:
                closing.add((one, end))
        else:
            is_done[one] = True
            order.append(one)
            way.pop()
    depths = dict.fromkeys(reversed(order), 0)
    for one in depths:
        for end in steps.get(one, ()):
            if (one, end) not in closing:
                depths[end] = max(depths[end], depths[one] + 1)
    return {one: min(depth, MOST_STEPS) for one, depth in depths.items()}


def _thinned(far: dict[Thing, int]) -> tuple[dict[Thing, int], dict[Thing, Thing]]:
    """Return what is drawn, and which box stands for what, where too many of one kind are equally far away."""
    groups: dict[tuple[int, str], list[Thing]] = {}
    for one, distance in far.items():
        groups.setdefault((distance, one.kind), []).append(one)
    shown: dict[Thing, int] = {}
    stands_for: dict[Thing, Thing] = {}
    for (distance, kind), things in groups.items():
        # Names of experiments and runs begin with their time, versions are counted: the newest are last.
        newest = sorted(things, key=lambda one: (one.name, len(one.version), one.version), reverse=True)
        kept = newest if len(newest) <= MOST_OF_A_KIND else newest[: MOST_OF_A_KIND - 1]
        shown |= dict.fromkeys(kept, distance)
        stands_for |= {one: one for one in kept}
        if rest := newest[len(kept) :]:
            box = Thing(kind, "", str(len(rest)))
            while box in shown:  # the same number of the same kind in another column
                box = box._replace(name=box.name + " ")
            shown[box] = distance
            stands_for |= dict.fromkeys(rest, box)
    return shown, stands_for


def _more(thing: Thing) -> int:
    return int(thing.version) if not thing.name.strip() else 0


def _pairs(
    edges: Iterable[Edge], far: dict[Thing, int], stands_for: dict[Thing, Thing]
) -> dict[tuple[Thing, Thing], tuple[str, str]]:
    """Return the boxes between which there is a line, each with what is said about it."""
    pairs: dict[tuple[Thing, Thing], tuple[str, str]] = {}
    for edge in edges:
        if edge.made in far and edge.source in far and far[edge.source] < far[edge.made]:
            pair = stands_for[edge.source], stands_for[edge.made]
            pairs.setdefault(pair, (edge.relation, edge.detail))
    return pairs


def _untangle(columns: dict[int, list[Thing]], pairs: Iterable[tuple[Thing, Thing]]) -> None:
    """Order each column by where its neighbours stand, from left to right and back, so that few lines cross."""
    beside: dict[Thing, list[Thing]] = {}
    for source, made in pairs:
        beside.setdefault(source, []).append(made)
        beside.setdefault(made, []).append(source)
    order = sorted(columns)
    for sweep in (order, order[::-1], order):
        rows = {one: row for things in columns.values() for row, one in enumerate(things)}
        for column in sweep:
            middle = {
                one: sum(rows[other] for other in others) / len(others)
                for one in columns[column]
                if (others := beside.get(one))
            }
            columns[column].sort(key=lambda one: (middle.get(one, rows[one]), not one.name.strip()))
            rows |= {one: row for row, one in enumerate(columns[column])}
