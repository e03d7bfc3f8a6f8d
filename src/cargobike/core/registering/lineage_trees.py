"""Lineage as people read it: for each thing a tree of what it came from, and one of what came from it, line by line."""

from __future__ import annotations

from typing import Final, NamedTuple

from cargobike.core.registering.tracing import Edge, Lineage, Thing

MOST_BRANCHES: Final = 20
"""How many things are shown below one; a training dataset may have fed ten thousand experiments."""
MOST_LINES: Final = 500


class Line(NamedTuple):
    """A line of a tree.

    Attributes:
        depth: How many steps away it is, from 0 for what is directly beside the thing that the tree is of.
        edge: The step that leads to it.
        thing: What it leads to; the other end of `edge` is the line above with one step less.
        is_repeated: Whether the thing stands further up already, with everything below it.
        left_out: How many more things like this one are not shown; then this line stands for them.
        beyond: How many steps lead on from here that are too far away to be shown.
    """

    depth: int
    edge: Edge
    thing: Thing
    is_repeated: bool = False
    left_out: int = 0
    beyond: int = 0


class Trees(NamedTuple):
    """What a thing came from, and what came from it."""

    thing: Thing
    sources: list[Line]
    uses: list[Line]


def tree_of(lineage: Lineage, thing: Thing, depth: int = 0) -> Trees:
    """Return the trees of a thing as lines, in the order in which they are read.

    A thing that can be reached on several ways stands in each place, and what is below it in the first one alone, so
    that circles end. At most `MOST_BRANCHES` of the same kind are shown below one thing, `MOST_LINES` in a tree.

    Args:
        lineage: What it came from, and what came from it.
        thing: What to make trees of.
        depth: How many steps away things may be; 0 for any number.
    """
    sources: dict[Thing, list[tuple[Edge, Thing]]] = {}
    uses: dict[Thing, list[tuple[Edge, Thing]]] = {}
    for edge in lineage.sources:
        sources.setdefault(edge.made, []).append((edge, edge.source))
    for edge in lineage.uses:
        uses.setdefault(edge.source, []).append((edge, edge.made))
    return Trees(thing, _lines(sources, thing, depth), _lines(uses, thing, depth))


def _lines(steps: dict[Thing, list[tuple[Edge, Thing]]], root: Thing, depth: int) -> list[Line]:
    lines: list[Line] = []
    expanded = {root}
    waiting = _branches(steps.get(root, []), 0)
    while waiting and len(lines) < MOST_LINES:
        line = waiting.pop()
        below = steps.get(line.thing, [])
        if line.left_out or line.thing in expanded:
            lines.append(line._replace(is_repeated=bool(below) and not line.left_out))
            continue
        if line.depth + 1 == depth:  # not expanded: the thing may stand nearer to the root in another place
            lines.append(line._replace(beyond=len(below)))
            continue
        expanded.add(line.thing)
        lines.append(line)
        waiting += _branches(below, line.depth + 1)
    if waiting:
        lines.append(waiting[-1]._replace(depth=0, left_out=len(waiting)))
    return lines


def _branches(steps: list[tuple[Edge, Thing]], depth: int) -> list[Line]:
    """Return the lines below a thing, the last one first; of each kind at most so many."""
    by_kind: dict[str, list[Line]] = {}
    for edge, thing in steps:
        by_kind.setdefault(thing.kind, []).append(Line(depth, edge, thing))
    lines = []
    for same in by_kind.values():
        lines += same[:MOST_BRANCHES]
        if len(same) > MOST_BRANCHES:
            lines.append(same[MOST_BRANCHES]._replace(left_out=len(same) - MOST_BRANCHES))
    return lines[::-1]
