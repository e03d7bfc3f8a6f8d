"""Lineage as lines of trees: everything is there once in full, circles end, and long lists are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.registering import lineage_trees
from cargobike.core.registering.lineage_trees import MOST_BRANCHES, Line, Trees, tree_of
from cargobike.core.registering.tracing import Edge, Thing, reached_from


def thing(number: int) -> Thing:
    return Thing("table", f"t{number}")


def tree_from(edges: list[Edge], root: Thing, depth: int = 0) -> Trees:
    return tree_of(reached_from(edges, [root]), root, depth)


graphs = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40).map(
    lambda pairs: [Edge(thing(made), thing(source)) for made, source in pairs]
)


def check_tree(lines: list[Line], edges: list[Edge], root: Thing, towards_sources: bool) -> None:
    """Check that a tree has each edge that can be reached, once, below the thing that it leads away from."""
    above = [root]
    for line in lines:
        del above[line.depth + 1 :]
        assert len(above) == line.depth + 1, "a line is at most one step deeper than the one before"
        ends = (line.edge.made, line.edge.source) if towards_sources else (line.edge.source, line.edge.made)
        assert ends == (above[-1], line.thing)
        above.append(line.thing)
    found = reached_from(edges, [root])
    assert sorted(line.edge for line in lines) == sorted(set(found.sources if towards_sources else found.uses))


@given(graphs)
def test_a_tree_has_every_step_once(edges: list[Edge]) -> None:
    for root in {end for edge in edges for end in edge[:2]}:
        tree = tree_from(edges, root)
        check_tree(tree.sources, edges, root, towards_sources=True)
        check_tree(tree.uses, edges, root, towards_sources=False)


def test_what_stands_further_up_is_marked_and_not_repeated() -> None:
    a, b, c, d = map(thing, range(4))
    edges = [Edge(b, a), Edge(c, a), Edge(d, b), Edge(d, c), Edge(a, d)]  # a diamond, closed to a circle
    tree = tree_from(edges, a)
    shown = [(line.depth, line.thing, line.is_repeated) for line in tree.uses]
    assert shown == [(0, b, False), (1, d, False), (2, a, True), (0, c, False), (1, d, True)]
    assert [line.thing for line in tree_from(edges, d).sources] == [b, a, d, c, a]


def test_of_very_many_some_are_shown_and_the_others_counted() -> None:
    edges = [Edge(Thing("experiment", f"e{number}"), thing(0), "trained on") for number in range(10_000)]
    edges.append(Edge(thing(1), thing(0)))
    lines = tree_from(edges, thing(0)).uses
    assert len(lines) == MOST_BRANCHES + 2
    assert [line.left_out for line in lines if line.left_out] == [10_000 - MOST_BRANCHES]
    assert lines[-1].thing == thing(1), "other kinds are not hidden behind them"


def test_a_very_long_chain_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = [Edge(thing(number + 1), thing(number)) for number in range(5_000)]
    lines = tree_from(edges, thing(0)).uses
    assert len(lines) == lineage_trees.MOST_LINES + 1
    assert lines[-1].left_out == 1


def test_what_is_further_away_than_asked_for_is_counted() -> None:
    a, b, c, d = map(thing, range(4))
    edges = [Edge(b, a), Edge(c, b), Edge(d, b), Edge(c, a)]
    lines = tree_from(edges, a, 1).uses
    assert [(line.depth, line.thing, line.beyond) for line in lines] == [(0, b, 2), (0, c, 0)]
    lines = tree_from(edges, a, 2).uses
    assert [(line.depth, line.thing) for line in lines] == [(0, b), (1, c), (1, d), (0, c)]
    assert tree_from(edges, a, 9) == tree_from(edges, a)
