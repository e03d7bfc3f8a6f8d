"""Where the boxes of a lineage stand, and that drawing them shows strangers' names as text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.registering.tracing import Edge, Lineage, Thing, reached_from
from cargobike.ui.web.tracing.drawing import draw
from cargobike.ui.web.tracing.graph import MOST_OF_A_KIND, Graph, Link, Node, graph_of
from support.sample_records import HOSTILE

GROUP, VIEW, DATASET = Thing("group", "teams", "1"), Thing("view", "value", "1"), Thing("dataset", "season", "1")
TRIED, MODEL, SERVED = Thing("experiment", "x1"), Thing("model", "digits", "1"), Thing("deployment", "digits")
STORY = [
    Edge(VIEW, GROUP, detail="budget"),
    Edge(DATASET, VIEW),
    Edge(DATASET, GROUP, detail="commit 0"),
    Edge(TRIED, DATASET, "trained on"),
    Edge(MODEL, TRIED),
    Edge(MODEL, DATASET, "trained on"),
    Edge(SERVED, MODEL, "serves"),
]


def _columns(thing: Thing) -> list[list[Thing]]:
    graph = graph_of(reached_from(STORY, [thing]), thing)
    return [
        [node.thing for node in graph.nodes if node.column == column]
        for column in range(1 + max(node.column for node in graph.nodes))
    ]


def test_sources_stand_left_and_uses_right_by_their_longest_way() -> None:
    assert _columns(DATASET) == [[GROUP], [VIEW], [DATASET], [TRIED], [MODEL], [SERVED]]
    assert _columns(GROUP) == [[GROUP], [VIEW], [DATASET], [TRIED], [MODEL], [SERVED]]
    assert graph_of(reached_from(STORY, [SERVED]), SERVED).middle == 5
    assert len(graph_of(reached_from(STORY, [DATASET]), DATASET).links) == len(STORY)


def test_a_circle_does_not_push_what_is_in_it_away() -> None:
    """What a deployment served raised an alarm, which set off the training of what it serves now."""
    monitor, run, newer = Thing("monitor", "digits"), Thing("pipeline", "learn", "2"), Thing("model", "digits", "2")
    circle = [
        *(Edge(SERVED, MODEL, "serves"), Edge(SERVED, newer, "serves"), Edge(monitor, SERVED, detail="watches")),
        *(Edge(run, monitor, "triggered by"), Edge(newer, run)),
    ]
    graph = graph_of(reached_from(circle, [MODEL]), MODEL)
    assert {node.thing: node.column for node in graph.nodes} == {MODEL: 0, SERVED: 1, monitor: 2, run: 3, newer: 4}
    assert len(graph.links) == len(circle) - 1, "all but the line that would lead back"


def test_ten_thousand_uses_are_one_box_and_the_newest_are_drawn() -> None:
    edges = [Edge(Thing("experiment", f"{number:05}"), DATASET, "trained on") for number in range(10_000)]
    graph = graph_of(reached_from(edges, [DATASET]), DATASET)
    assert len(graph.nodes) == 1 + MOST_OF_A_KIND
    (box,) = [node for node in graph.nodes if node.more]
    assert box.more == 10_000 - MOST_OF_A_KIND + 1
    assert Thing("experiment", "09999") in [node.thing for node in graph.nodes]
    assert "9,993 more" in draw(graph, DATASET, {})


def test_boxes_are_links_and_names_are_text() -> None:
    strange = Thing(HOSTILE, HOSTILE, HOSTILE[:20])
    drawn = draw(
        graph_of(reached_from([*STORY, Edge(MODEL, strange, detail=HOSTILE)], [MODEL]), MODEL), MODEL, {TRIED: HOSTILE}
    )
    assert "<script" not in drawn
    assert "<img" not in drawn
    assert 'href="/lineage/dataset/season?version=1"' in drawn
    ElementTree.fromstring(re.sub(r"&#x?[0-9a-fA-F]+;", "", drawn))
    assert draw(graph_of(Lineage([], []), MODEL), MODEL, {}) == ""


def _check_inside(drawn: str) -> None:
    """Check that the drawing is as large as what is in it."""
    found = re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', drawn)
    boxes = [tuple(map(int, box)) for box in found]
    width, height = map(int, re.findall(r'viewBox="0 0 (\d+) (\d+)"', drawn)[0]) if drawn else (0, 0)
    assert all(x + across <= width and y + down <= height for x, y, across, down in boxes)


def test_columns_without_boxes_take_no_room_and_what_is_asked_for_is_named_where_it_is() -> None:
    nodes = [Node(GROUP, 0, 0, 0), Node(VIEW, 0, 1, 0), Node(MODEL, 4, 0, 0), Node(SERVED, 9, 0, 0)]
    drawn = draw(Graph(nodes, [Link(0, 2, "made from", ""), Link(2, 3, "serves", "")], 9), SERVED, {})
    _check_inside(drawn)
    lefts = [int(x) for x in re.findall(r'<rect x="(\d+)"', drawn)]
    assert lefts[2] - lefts[1] == lefts[3] - lefts[2] == lefts[2] - lefts[0]
    middle = ElementTree.fromstring(drawn).find(".//g[@class='kind-deployment middle']/rect")
    this = ElementTree.fromstring(drawn).find(".//text[@class='small here']")
    assert middle is not None
    assert this is not None
    assert int(this.attrib["y"]) == int(middle.attrib["y"]) - 4


things = st.builds(Thing, st.sampled_from(["group", "model"]), st.sampled_from("abcdef"), st.sampled_from(["", "1"]))


@given(st.lists(st.builds(Edge, things, things), max_size=30), things)
def test_every_graph_can_be_drawn_and_lines_lead_to_the_right(edges: list[Edge], middle: Thing) -> None:
    graph = graph_of(reached_from(edges, [middle]), middle)
    assert len({(node.column, node.row) for node in graph.nodes}) == len(graph.nodes)
    assert any(node.thing == middle and node.column == graph.middle for node in graph.nodes)
    for link in graph.links:
        assert graph.nodes[link.source].column < graph.nodes[link.made].column
    _check_inside(draw(graph, middle, {}))
