"""`cargobike share trust | mute | block | forget | publishers | rate | comment`: what this project thinks."""

from __future__ import annotations

from typing import Annotated

import typer

from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.sharing import front
from cargobike.sharing.commands.options import Json, Network, Publication, Publisher
from cargobike.sharing.commands.telling import tell_members


def trust(
    publisher: Publisher,
    alias: Annotated[str, typer.Option("--as", metavar="NAME", help="What to call it here.")] = "",
    network: Network = "",
    as_json: Json = False,
) -> None:
    """Trust a publisher: listed first, found by name alone."""
    _said(front.stand("trust", publisher, network=network, alias=alias), "trusted", as_json=as_json)


def mute(publisher: Publisher, network: Network = "", as_json: Json = False) -> None:
    """Leave a publisher out of what is found, and its ratings out of what is counted."""
    _said(front.stand("mute", publisher, network=network), "muted", as_json=as_json)


def block(publisher: Publisher, network: Network = "", as_json: Json = False) -> None:
    """Keep nothing of a publisher, pass nothing of it on, and take no connection from it."""
    _said(front.stand("block", publisher, network=network), "blocked", as_json=as_json)


def forget(publisher: Publisher, network: Network = "", as_json: Json = False) -> None:
    """Take back that a publisher is trusted, muted or blocked."""
    _said(front.stand("forget", publisher, network=network), "", as_json=as_json)


def publishers(network: Network = "", as_json: Json = False) -> None:
    """List publishers, and what this project thinks of them."""
    with front.open_catalogue(network) as catalogue:
        standings, newest = catalogue.standings(), catalogue.newest()
        heads = {key: catalogue.head(key) for key in newest}
    rows = [
        {
            "publisher": key,
            "alias": standings.get(key, ("", ""))[1],
            "standing": standings.get(key, ("", ""))[0],
            "records": newest.get(key, 0),
            "replaced_by": heads[key] if heads.get(key, key) != key else "",
        }
        for key in sorted({*standings, *newest})
    ]
    if as_json:
        print_json(rows)
        return
    made = table("PUBLISHER", "NAME", "STANDING", "RECORDS", "REPLACED BY", right=("RECORDS",))
    for row in rows:
        made.add_row(*(cell(value) for value in row.values()))
    print_table(made)


def rate(
    publication: Publication,
    rating: Annotated[int, typer.Argument(metavar="1..5", min=1, max=5, help="5 is the best.")],
    comment_: Annotated[str, typer.Argument(metavar="[COMMENT]", help="Why.")] = "",
    network: Network = "",
    as_json: Json = False,
) -> None:
    """Rate a publication, signed; the last rating of a project counts."""
    front.rate(publication, rating, comment_, network=network)
    _rated(publication, network, as_json=as_json)


def comment(
    publication: Publication,
    text: Annotated[str, typer.Argument(help="What others should know.")],
    network: Network = "",
    as_json: Json = False,
) -> None:
    """Comment on a publication, signed and visible to all members; replaces what was said before."""
    front.rate(publication, 0, text, network=network)
    _rated(publication, network, as_json=as_json)


def _rated(publication: str, network: str, *, as_json: bool) -> None:
    tell_members(front.choose_network(network))
    if as_json:
        print_json({"publication": publication, "is_signed": True})
    else:
        console().print(cell(f"Signed. All members can read what this project thinks of {publication}."))


def _said(key: str, word: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"publisher": key, "standing": word})
    else:
        console().print(cell(f"{key} is {word or 'neither trusted nor muted nor blocked'}."))
