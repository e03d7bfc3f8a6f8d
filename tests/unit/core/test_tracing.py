"""Lineage: the way along edges that products know, against a plain one; names that are suggested; pages of things."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering import tracing
from cargobike.core.registering.products import Product
from cargobike.core.registering.tracing import (
    Edge,
    Edges,
    Thing,
    all_edges,
    lineage_of,
    page_of,
    reached_from,
    users_of,
)

PROJECT = ProjectFolder(Path("/nowhere"))
KINDS = ("group", "view", "dataset", "table")


def thing(number: int) -> Thing:
    return Thing(KINDS[number % 4], f"n{number // 4}", str(number % 3) if number // 4 else "")


graphs = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=40).map(
    lambda pairs: [Edge(thing(made), thing(source), detail=str(at)) for at, (made, source) in enumerate(pairs)]
)
"""Edges in any direction, so with cycles, things that came from themselves, and the same edge several times."""


def use(monkeypatch: pytest.MonkeyPatch, *known: Edges, **pages: str) -> None:
    """Have products that know some edges, one each, and have some pages."""
    paths = {f"garden.tracing:edges{number}": edges for number, edges in enumerate(known)}
    described = tuple(Product(name=path, title="", edges=path, thing_pages=pages) for path in paths)
    monkeypatch.setattr(tracing, "products", lambda: (*described, Product(name="silent", title="Silent")))
    monkeypatch.setattr(tracing, "load", paths.__getitem__)


def reached_plainly(edges: list[Edge], begin: set[Thing], *, towards_sources: bool) -> set[Edge]:
    """Repeat going one step until nothing is new."""
    found: set[Edge] = set()
    things = set(begin)
    while True:
        step = {edge for edge in edges if (edge.made if towards_sources else edge.source) in things}
        if step <= found:
            return found
        found |= step
        things |= {edge.source if towards_sources else edge.made for edge in step}


@given(graphs, st.integers(0, 15))
@example([Edge(thing(0), thing(0))], 0)
@example([Edge(thing(0), thing(1)), Edge(thing(1), thing(2)), Edge(thing(2), thing(0))], 1)
def test_lineage_is_what_a_plain_search_finds(edges: list[Edge], wanted: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        use(monkeypatch, lambda _: edges[::2], lambda _: edges[1::2])
        begin = thing(wanted)
        if begin not in {end for edge in edges for end in edge[:2]}:
            return
        found = lineage_of(PROJECT, begin.id, begin.kind)
        begins = {
            one for edge in edges for one in edge[:2] if one.kind == begin.kind and begin.id in (one.name, one.id)
        }
        assert set(found.sources) == reached_plainly(edges, begins, towards_sources=True)
        assert set(found.uses) == reached_plainly(edges, begins, towards_sources=False)
        assert len(found.sources) == len(set(found.sources)), "an edge is told once"
        assert sorted(users_of(PROJECT, begin)) == sorted(edge for edge in edges if edge.source == begin)


State = tuple[Thing, float]


def way_up(edges: list[Edge], edge: Edge, bound: float) -> float | None:
    """Return until when its source counts, `None` if the edge or the source came later than what it leads to."""
    born = min((one.at for one in edges if one.made == edge.source), default=0.0)
    if edge.at > bound or (not edge.at and born > bound):
        return None
    return bound if edge.goes_on or not edge.at else edge.at


def way_down(_edges: list[Edge], edge: Edge, bound: float) -> float | None:
    if not edge.at:
        return bound
    return max(edge.at, bound) if edge.goes_on or edge.at >= bound else None


times = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=40, max_size=40)


@given(graphs, times, st.integers(0, 15))
def test_lineage_is_right_in_time(plain: list[Edge], times: list[tuple[int, bool]], wanted: int) -> None:
    """Compared with walking every way, with every time at which something can be reached."""
    edges = [edge._replace(at=float(at), goes_on=on) for edge, (at, on) in zip(plain, times, strict=False)]
    found = reached_from(edges, [thing(wanted)])
    for told, way, far, up in ((found.sources, way_up, math.inf, 0), (found.uses, way_down, -math.inf, 1)):
        states: set[State] = {(thing(wanted), far)}
        while True:
            walked = {
                (edge, then)
                for begin, bound in states
                for edge in edges
                if edge[up] == begin and (then := way(edges, edge, bound)) is not None
            }
            further: set[State] = {(edge.made if up else edge.source, then) for edge, then in walked}
            if further <= states:
                break
            states |= further
        assert set(told) == {edge for edge, _ in walked}


def test_what_came_to_a_group_later_is_not_in_what_was_made_from_it_before() -> None:
    group, season, digits = Thing("group", "g", "1"), Thing("dataset", "d", "1"), Thing("model", "m", "1")
    before, after = Thing("file", "before"), Thing("file", "after")
    edges = [
        Edge(group, before, at=1.0, goes_on=True),
        Edge(season, group, at=2.0),
        Edge(digits, season, "trained on", at=3.0),
        Edge(group, after, at=4.0, goes_on=True),
    ]
    assert {edge.source for edge in reached_from(edges, [digits]).sources} == {season, group, before}
    assert {edge.source for edge in reached_from(edges, [group]).sources} == {before, after}
    assert {edge.made for edge in reached_from(edges, [after]).uses} == {group}
    assert {edge.made for edge in reached_from(edges, [before]).uses} == {group, season, digits}
    unknown = [edge._replace(at=0.0) for edge in edges]
    assert {edge.made for edge in reached_from(unknown, [after]).uses} == {group, season, digits}


def test_what_comes_to_a_group_goes_on_to_those_that_are_fed_from_it() -> None:
    raw, counted, view = Thing("group", "raw", "1"), Thing("group", "counted", "1"), Thing("view", "v", "1")
    late = Thing("file", "late")
    edges = [
        Edge(counted, raw, at=1.0, goes_on=True),
        Edge(view, counted, at=2.0, goes_on=True),
        Edge(raw, late, at=3.0, goes_on=True),
    ]
    assert {edge.source for edge in reached_from(edges, [view]).sources} == {counted, raw, late}
    assert {edge.made for edge in reached_from(edges, [late]).uses} == {raw, counted, view}
    empty = [Edge(view, raw, at=1.0, goes_on=True), Edge(raw, late, at=3.0, goes_on=True)]
    assert {edge.source for edge in reached_from(empty, [view]).sources} == {raw, late}, "a view of a group yet to fill"


def test_the_nearest_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = [Edge(Thing("table", f"t{number + 1}"), Thing("table", f"t{number}")) for number in range(5)]
    use(monkeypatch, lambda _: reversed(chain))
    found = lineage_of(PROJECT, "t2")
    assert [edge.source.name for edge in found.sources] == ["t1", "t0"]
    assert [edge.made.name for edge in found.uses] == ["t3", "t4", "t5"]
    assert list(all_edges(PROJECT)) == chain[::-1]


def test_things_are_found_by_name_version_and_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    group, address = Thing("group", "teams", "1"), Thing("table", "s3://host:9000/teams", "3")
    edges = [
        Edge(Thing("view", "teams", "1"), group),
        Edge(Thing("view", "teams", "2"), group),
        Edge(group, address),
    ]
    use(monkeypatch, lambda _: edges)
    assert lineage_of(PROJECT, "teams:2").sources == [edges[1], edges[2]]
    assert len(lineage_of(PROJECT, "teams", "view").sources) == 3
    assert lineage_of(PROJECT, "teams:1", "group").uses == edges[:2]
    for name in ("s3://host:9000/teams", "s3://host:9000/teams:3"):
        assert len(lineage_of(PROJECT, name).uses) == 3


def test_a_name_without_a_version_stands_for_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = [Edge(Thing("view", "v", version), Thing("group", "g", "1")) for version in ("2", "10", "9")]
    serving = Edge(Thing("deployment", "d"), Thing("view", "v"), "serves")
    use(monkeypatch, lambda _: [serving], lambda _: versions)
    assert lineage_of(PROJECT, "v:10").uses == [serving._replace(source=Thing("view", "v", "10"))]
    assert lineage_of(PROJECT, "v:9").uses == []
    assert [edge.source.name for edge in lineage_of(PROJECT, "d").sources] == ["v", "g"]


def test_what_is_unknown_is_refused_with_the_nearest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, lambda _: [Edge(Thing("view", "team_value", "2"), Thing("group", "teams", "1"))])
    with pytest.raises(NotFoundError, match=r"Nothing called 'temas' .*Did you mean 'teams'\?"):
        lineage_of(PROJECT, "temas")
    with pytest.raises(NotFoundError, match=r"'team_value:3' .*Did you mean 'team_value:2'\?") as refused:
        lineage_of(PROJECT, "team_value:3")
    assert refused.value.nearest[0] == "team_value:2"
    with pytest.raises(NotFoundError, match="No model called 'teams' was made"):
        lineage_of(PROJECT, "teams", "model")


def test_a_product_whose_libraries_are_missing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    edge = Edge(Thing("view", "v", "1"), Thing("group", "g", "1"))
    use(monkeypatch, lambda _: [edge] * 2, lambda _: [edge])

    def load(path: str) -> Edges:
        if path.endswith("edges0"):
            raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")
        return lambda _: [edge]

    monkeypatch.setattr(tracing, "load", load)
    assert list(all_edges(PROJECT)) == [edge]


def test_a_product_that_cannot_answer_is_an_error_unless_problems_are_only_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edge = Edge(Thing("view", "v", "1"), Thing("group", "g", "1"))

    def broken(_: ProjectFolder) -> Iterator[Edge]:
        yield edge
        raise StoreError("a manifest cannot be read")

    use(monkeypatch, broken, lambda _: [edge])
    with pytest.raises(StoreError, match="cannot be read"):
        lineage_of(PROJECT, "v")
    with pytest.raises(StoreError, match="cannot be read"):
        users_of(PROJECT, edge.source)  # what decides whether something may be deleted must not be told too little
    problems: list[str] = []
    assert list(all_edges(PROJECT, problems)) == [edge, edge]
    assert problems == ["What garden.tracing:edges0 knows is missing here: a manifest cannot be read"]


def test_things_have_the_pages_that_products_name(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, lambda _: [], group="/features/{name}?version={version}", table="/data/{id}")
    assert page_of(Thing("group", "teams", "2")) == "/features/teams?version=2"
    assert page_of(Thing("table", "higgs", "3")) == "/data/higgs:3"
    assert page_of(Thing("table", "3f9ab2c4d5e6")) == "/data/3f9ab2c4d5e6"
    assert page_of(Thing("table", "../?<x>")) == "/data/..%2F%3F%3Cx%3E"
    assert page_of(Thing("model", "digits", "1")) == ""
