"""`cargobike lineage`: what something came from, and what came from it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.tree import Tree

from cargobike.cli.completing import fitting_in_project
from cargobike.cli.printing import cell, console, print_json
from cargobike.cli.terminal import neutralized
from cargobike.core.errors import CargobikeError, NotFoundError
from cargobike.core.registering.lazy import load
from cargobike.core.registering.lineage_trees import Line, tree_of
from cargobike.core.registering.products import products
from cargobike.core.registering.tracing import (
    Edge,
    Thing,
    all_edges,
    find_things,
    follow,
    page_of,
    reached_from,
    steps_of,
    titles_of,
)
from cargobike.store.files import project


def _complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    return fitting_in_project(ctx, lambda: {(thing.id, thing.kind) for thing in _ends(_known([]))}, incomplete)


def lineage(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A name, or name and version: `teams:2`.", autocompletion=_complete),
    ],
    kind: Annotated[
        str, typer.Option(help="What it is, if several have the name: group, view, dataset, table, experiment, …")
    ] = "",
    depth: Annotated[int, typer.Option(min=0, help="How many steps to follow, in the tree; 0 for all.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what something came from, and what came from it: groups, views, datasets, tables, experiments, models."""
    problems: list[str] = []
    edges = _known(problems)
    for problem in problems:
        typer.secho(neutralized(problem), fg="yellow", err=True)
    try:
        things = find_things(edges, name, kind)
    except NotFoundError:
        things = _with_page(edges, name, kind)
        if not things:
            raise
    titles = titles_of(edges)
    if as_json:
        found = reached_from(edges, things)
        print_json(
            {
                "things": [_described(thing, titles) for thing in things],
                "came_from": [_step(edge, titles) for edge in found.sources],
                "used_by": [_step(edge, titles) for edge in found.uses],
                "problems": problems,
            }
        )
        return
    sources, uses = steps_of(edges)
    for thing in things:
        each = tree_of(follow(sources, uses, [thing]), thing, depth)
        tree = Tree(cell(_called(each.thing, titles), "bold"), guide_style="dim")
        for word, lines in (("came from", each.sources), ("used by", each.uses)):
            branch = tree.add(cell(word if lines else f"{word}: nothing that is recorded", "dim"))
            _grow(branch, lines, titles)
        console().print(tree)


def _known(problems: list[str]) -> list[Edge]:
    return list(all_edges(project.current(), problems))


def _ends(edges: Sequence[Edge]) -> set[Thing]:
    return {thing for edge in edges for thing in (edge.made, edge.source)}


def _with_page(edges: Sequence[Edge], name: str, kind: str) -> list[Thing]:
    """Return the things that a product finds by what people call them, such as the name of an experiment or `last`."""
    addresses = set()
    for product in products():
        with contextlib.suppress(CargobikeError):
            if product.find_page:
                addresses.add(load(product.find_page)(name))
    return sorted(thing for thing in _ends(edges) if kind in {"", thing.kind} and page_of(thing) in addresses)


def _called(thing: Thing, titles: Mapping[Thing, str]) -> str:
    return f"{thing} {titles[thing]}" if titles.get(thing) else str(thing)


def _grow(tree: Tree, lines: Sequence[Line], titles: Mapping[Thing, str]) -> None:
    branches = [tree]
    for line in lines:
        del branches[line.depth + 1 :]
        branches.append(branches[-1].add(cell(_words(line, titles))))


def _words(line: Line, titles: Mapping[Thing, str]) -> str:
    if line.left_out:
        return f"… and {line.left_out:,} more"
    relation = "" if line.edge.relation == "made from" else line.edge.relation
    seen = "see above" if line.is_repeated else f"{line.beyond} more behind it" if line.beyond else ""
    said = ", ".join(word for word in (relation, line.edge.detail, seen) if word)
    called = _called(line.thing, titles)
    return f"{called} ({said})" if said else called


def _described(thing: Thing, titles: Mapping[Thing, str]) -> dict[str, Any]:
    return {"kind": thing.kind, "name": thing.name, "version": thing.version, "title": titles.get(thing, "")}


def _step(edge: Edge, titles: Mapping[Thing, str]) -> dict[str, Any]:
    return {
        "made": _described(edge.made, titles),
        "from": _described(edge.source, titles),
        "relation": edge.relation,
        "detail": edge.detail,
    }
