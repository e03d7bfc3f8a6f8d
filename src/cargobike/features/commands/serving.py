"""`cargobike features vector | verify | materialize | lineage`: what models look up, and where it comes from."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.tracing import Edge
from cargobike.features.commands.naming import Json, Name, find
from cargobike.features.groups.finding import group, list_groups
from cargobike.features.online.stores.choosing import is_materialized
from cargobike.features.tracing import lineage as lineage_of
from cargobike.features.views.front import view
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of

_NUMBERS = ("int", "uint")


def vector(
    name: Annotated[str, typer.Argument(metavar="VIEW", help="A name, or `name:version`.")],
    keys: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="Keys, and values of the request.")],
    as_json: Json = False,
) -> None:
    """Look up the newest features of a key, as a model would get them."""
    plain, _, version = name.partition(":")
    if version and not version.isdigit():
        raise InvalidInputError(f"{name!r} was given; write the name of a view, or name:version.")
    found = view(plain, int(version) if version else None)
    definitions = [group(each).definition for each in found.groups]
    kinds = {key: kind for one in definitions for key, kind in zip(one.key, one.key_types, strict=False)}
    values = found.vector(**dict(_value(text, kinds) for text in keys))
    states = values.states
    found.close()
    if as_json:
        print_json({"values": dict(values), "states": states})
        return
    made = table("FEATURE", "VALUE", "STATE")
    for feature, value in values.items():
        made.add_row(cell(feature, "bold"), cell("" if value is None else str(value)), cell(states[feature]))
    print_table(made)


def verify(
    names: Annotated[list[str] | None, typer.Argument(metavar="[GROUP...]", help="By default all online ones.")] = None,
    sample: Annotated[int | None, typer.Option("--sample", min=1, help="Compare only so many keys.")] = None,
    as_json: Json = False,
) -> None:
    """Compare look-ups on this host with the newest rows; exit with 1 if they differ."""
    storage = storage_of(project.current())
    groups = [find(name) for name in names] if names else list_groups(project.current())
    chosen = [one for one in groups if names or is_materialized(one.definition, storage)]
    checked = [one.verify(sample) for one in chosen]
    if as_json:
        print_json(
            [
                {
                    "group": one.group,
                    "commit": one.commit,
                    "newest_commit": one.newest,
                    "checked": one.checked,
                    "missing": one.missing,
                    "extra": one.extra,
                    "differing": one.differing,
                    "examples": list(one.examples),
                    "equal": one.is_equal,
                }
                for one in checked
            ]
        )
    elif not checked:
        console().print("No group was materialized on this host.")
    for one in [] if as_json else checked:
        behind = f", {one.newest - one.commit} commits behind" if one.newest > one.commit else ""
        words = "equal" if one.is_equal else f"{one.missing} missing, {one.extra} extra, {one.differing} differ"
        look = "bold" if one.is_equal else "red"
        console().print(cell(f"{one.group}: {one.checked:,} keys compared, {words}{behind}", look))
        for example in one.examples:
            console().print(cell(f"  {example}"))
    if not all(one.is_equal for one in checked):
        raise typer.Exit(1)


def materialize(name: Name, as_json: Json = False) -> None:
    """Make look-ups on this host see the newest rows of a group."""
    done = find(name).materialize()
    if as_json:
        print_json({"commit": done.commit, "rows": done.rows, "removed": done.removed, "whole": done.whole})
    else:
        typer.echo(
            f"Look-ups of {name} see commit {done.commit}: {done.rows:,} rows written, {done.removed:,} removed."
        )


def lineage(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A group, view or training dataset, or `name:version`.")],
    as_json: Json = False,
) -> None:
    """Show what something was made from, and what was made from it."""
    found = lineage_of(name)
    if as_json:
        print_json(
            {"made_from": [_edge(edge) for edge in found.sources], "used_by": [_edge(edge) for edge in found.uses]}
        )
        return
    made = table("THING", "MADE FROM", "DETAIL")
    for edge in dict.fromkeys([*found.sources, *found.uses]):
        made.add_row(cell(str(edge.made), "bold"), cell(str(edge.source)), cell(edge.detail))
    print_table(made)


def _edge(edge: Edge) -> dict[str, Any]:
    return {"made": str(edge.made), "from": str(edge.source), "detail": edge.detail}


def _value(text: str, kinds: dict[str, str]) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidInputError(f"{text!r} was given; write key=value, such as team_id=3.")
    if name in kinds:
        is_whole = kinds[name].startswith(_NUMBERS) and value.lstrip("-").isdigit()
        return name, int(value) if is_whole else value
    try:
        return name, float(value)
    except ValueError:
        return name, value
