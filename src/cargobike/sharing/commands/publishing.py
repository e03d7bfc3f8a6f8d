"""`cargobike share publish | withdraw | torrent | key`: what this project gives to others."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from cargobike.cli.asking import Yes, confirm
from cargobike.cli.printing import cell, console, print_json
from cargobike.core.errors import InvalidInputError
from cargobike.sharing import front
from cargobike.sharing.catalogue.entry import read_reference
from cargobike.sharing.commands.options import Json, Network, Publication
from cargobike.sharing.commands.telling import tell_members
from cargobike.sharing.identity.keys import load_identity
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.sharing.places import network_folder
from cargobike.sharing.publishing.draft import make_draft
from cargobike.sharing.publishing.saying import replace_key
from cargobike.sharing.publishing.visible import Said, size_words
from cargobike.sharing.torrents.kept import find_torrent
from cargobike.store.files import project


def publish(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What others call it.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="A path, an address, or table:NAME, dataset:NAME:VERSION, model:NAME:VERSION."
        ),
    ],
    *,
    network: Network = "",
    description: Annotated[str, typer.Option("--description", help="A sentence or more.")] = "",
    license_: Annotated[str, typer.Option("--license", help="What others may do with it, such as CC-BY-4.0.")] = "",
    tags: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="May be repeated.")] = None,
    web_seeds: Annotated[
        list[str] | None,
        typer.Option("--web-seed", metavar="URL", help="A folder with the same files; may be repeated."),
    ] = None,
    sample_rows: Annotated[int, typer.Option("--sample-rows", min=0, max=20, help="Rows that others may look at.")] = 5,
    redact: Annotated[
        list[str] | None, typer.Option("--redact", metavar="COLUMN", help="Left out of these rows; may be repeated.")
    ] = None,
    hidden: Annotated[bool, typer.Option("--hidden", help="Take hidden files along.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Publish something as the next version of its name, after saying what becomes visible to whom."""
    draft = make_draft(
        Said(
            name=name,
            description=description,
            license=license_,
            tags=tuple(tags or ()),
            web_seeds=tuple(web_seeds or ()),
        ),
        source,
        project=project.prepare(),
        network=front.choose_network(network),
        sample_rows=sample_rows,
        redact=tuple(redact or ()),
        hidden=hidden,
    )
    if not as_json:
        console().print(cell_lines(draft.visible()))
    confirm("Publish it?", yes=yes, as_json=as_json)
    entry = front.publish_draft(draft)
    is_served = tell_members(draft.network)
    if as_json:
        print_json({**entry.as_json(), "is_served": is_served})
        return
    console().print(cell(f"Published {entry.reference}, {size_words(entry.size)}."))
    if not is_served:
        console().print(cell(f"Others get it while this runs: cargobike share serve --network {draft.network}"))


def withdraw(
    publication: Publication,
    why: Annotated[str, typer.Argument(metavar="[WHY]", help="A reason, for others.")] = "",
    *,
    network: Network = "",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Take back a version that this project has published; others keep what they got before."""
    confirm(f"Withdraw {publication}? Members that got it keep it.", yes=yes, as_json=as_json)
    entry = front.withdraw(publication, why, network=network)
    tell_members(entry.network)
    if as_json:
        print_json({"withdrawn": entry.reference})
    else:
        console().print(cell(f"Withdrew {entry.reference}."))


def torrent(
    publication: Publication,
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="Where to write it.")],
    *,
    network: Network = "",
    as_json: Json = False,
) -> None:
    """Write the torrent of something that is here, for ordinary clients of BitTorrent (v1 and v2)."""
    here = project.prepare()
    name = front.choose_network(network)
    with front.open_catalogue(name) as catalogue, contextlib.closing(Holdings.of(here, name)) as holdings:
        manifest = catalogue.manifest(catalogue.entry(*read_reference(publication)))
        wanted = manifest.publisher, manifest.name, manifest.version
        places = [held.place for held in holdings.publications() if held[:3] == wanted]
        content = find_torrent(network_folder(here, name), manifest, places)
    try:
        with to.open("xb") as file:
            file.write(content)
    except FileExistsError as error:
        raise InvalidInputError(f"{to} is there already; name another file.") from error
    if as_json:
        print_json({"path": str(to), "infohash_v1": manifest.infohash_v1, "infohash_v2": manifest.infohash_v2})
    else:
        console().print(cell(f"{manifest.reference} was written to {to}. It is private: add members by hand."))


def key(
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Sign with a new key from now on.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Print the key that this project publishes with; it is made if there is none."""
    if not replace:
        publisher = load_identity(project.prepare()).publisher
        if as_json:
            print_json({"publisher": publisher})
        else:
            typer.echo(publisher)
        return
    confirm(
        "Replace the key? The old one signs nothing any more, in all networks of this project.",
        yes=yes,
        as_json=as_json,
    )
    old, new, kept = replace_key(project.prepare())
    if as_json:
        print_json({"old": old, "publisher": new, "kept": str(kept)})
    else:
        console().print(cell(f"{new} has replaced {old}, which is kept in {kept}."))
        console().print(cell("Networks that are a list of keys must list the new one; daemons are to be restarted."))


def cell_lines(text: str) -> str:
    """Return a text of several lines with control characters made visible."""
    return "\n".join(cell(line).plain for line in text.splitlines())
