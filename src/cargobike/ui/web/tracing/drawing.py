"""The graph of a lineage as SVG that needs no script: boxes are links, by which it is walked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cargobike.core.registering.tracing import Thing
from cargobike.ui.markup import text
from cargobike.ui.web.tracing.addresses import lineage_address
from cargobike.ui.web.tracing.graph import Graph, Link, Node

_BOX: Final = (158, 44)
_GAP: Final = (46, 16)
_EDGE: Final = 8
_HEAD: Final = 26
_BOW: Final = 44
"""How far a line that passes boxes bows out below them."""


def draw(graph: Graph, thing: Thing, titles: Mapping[Thing, str]) -> str:
    """Draw a graph; empty if it has only the thing itself."""
    if len(graph.nodes) < 2:
        return ""
    rows: dict[int, int] = {}
    for node in graph.nodes:
        rows[node.column] = max(rows.get(node.column, 0), node.row + 1)
    tallest = max(rows.values())
    columns = {column: number for number, column in enumerate(sorted(rows))}  # some may have no boxes: long ways pass
    places = [_place(columns[node.column], node.row, rows[node.column], tallest) for node in graph.nodes]
    width = _EDGE + len(rows) * (_BOX[0] + _GAP[0]) - _GAP[0] + _EDGE
    height = _HEAD + tallest * (_BOX[1] + _GAP[1]) - _GAP[1] + 2 * _EDGE
    lines = "".join(_line(link, places) for link in graph.links)
    boxes = "".join(_box(node, place, thing, titles) for node, place in zip(graph.nodes, places, strict=True))
    here = next((place for node, place in zip(graph.nodes, places, strict=True) if node.thing == thing), (0, _HEAD))
    name = f"Lineage of {thing}: {len(graph.nodes)} boxes, sources left, uses right"
    return (
        f'<svg class="graph lineage-graph" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="group" aria-label="{text(name)}">{_heads(graph, width, here)}{lines}{boxes}</svg>'
    )


def _heads(graph: Graph, width: int, here: tuple[int, int]) -> str:
    left = f'<text class="small" x="{_EDGE}" y="14">came from</text>' if graph.middle else ""
    has_uses = any(node.column > graph.middle for node in graph.nodes)
    x = width - _EDGE
    right = f'<text class="small" x="{x}" y="14" text-anchor="end">used by</text>' if has_uses else ""
    this = f'<text class="small here" x="{here[0] + _BOX[0] // 2}" y="{here[1] - 4}" text-anchor="middle">this</text>'
    return left + this + right


def _place(column: int, row: int, rows: int, tallest: int) -> tuple[int, int]:
    """Return the upper left corner of a box; shorter columns stand in the middle."""
    offset = (tallest - rows) * (_BOX[1] + _GAP[1]) // 2
    return _EDGE + column * (_BOX[0] + _GAP[0]), _HEAD + offset + row * (_BOX[1] + _GAP[1])


def _line(link: Link, places: list[tuple[int, int]]) -> str:
    (x1, y1), (x2, y2) = places[link.source], places[link.made]
    x1, y1, y2 = x1 + _BOX[0], y1 + _BOX[1] // 2, y2 + _BOX[1] // 2
    bend = max(24, (x2 - x1) // 2)
    bow = _BOW if x2 - x1 > _GAP[0] and y1 == y2 else 0
    words = f"{link.relation}, {link.detail}" if link.detail else link.relation
    kind = link.relation.replace(" ", "-")
    return (
        f'<path class="need {kind}" d="M{x1} {y1}C{x1 + bend} {y1 + bow} {x2 - bend} {y2 + bow} {x2} {y2}">'
        f"<title>{text(words)}</title></path>"
    )


def _box(node: Node, place: tuple[int, int], middle: Thing, titles: Mapping[Thing, str]) -> str:
    x, y = place
    thing = node.thing
    label = f"{node.more:,} more" if node.more else titles.get(thing) or thing.id
    shape = (
        f'<rect x="{x}" y="{y}" width="{_BOX[0]}" height="{_BOX[1]}" rx="9"/>'
        f'<text class="small" x="{x + 12}" y="{y + 17}">{text(thing.kind)}</text>'
        f'<text x="{x + 12}" y="{y + 34}">{text(_cut(label, 21))}</text>'
    )
    style = f"kind-{_word(thing.kind)}"
    if node.more:
        return f'<g class="{style} more"><title>{text(f"{node.more:,} more of kind {thing.kind}")}</title>{shape}</g>'
    if thing == middle:
        return f'<g class="{style} middle"><title>{text(str(thing))}</title>{shape}</g>'
    name = f"{thing.kind} {titles.get(thing) or thing.id}"
    address = text(lineage_address(thing))
    return f'<a href="{address}" class="{style}" aria-label="{text(name)}"><title>{text(name)}</title>{shape}</a>'


def _word(kind: str) -> str:
    return "".join(sign for sign in kind if sign.isalnum())


def _cut(label: str, most: int) -> str:
    return label if len(label) <= most else f"{label[: most - 1]}…"
