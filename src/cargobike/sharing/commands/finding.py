"""`cargobike share find | ls | show`: what others have published."""

from __future__ import annotations

import contextlib
import re
from typing import Annotated, Final

import typer

from cargobike.cli.printing import cell, console, print_json, print_table, table
from cargobike.core.values.words import MISSING
from cargobike.sharing import front
from cargobike.sharing.catalogue.entry import Entry, read_reference
from cargobike.sharing.commands.options import Json, MembersFile, Network, Peers, Publication, SecretFile
from cargobike.sharing.commands.telling import ask_members
from cargobike.sharing.getting.holders import holders
from cargobike.sharing.identity.keys import short
from cargobike.sharing.network.network import open_network
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.sharing.publishing.visible import size_words
from cargobike.store.files import project

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)B?", re.IGNORECASE)
_FACTORS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_FILES_SHOWN: Final = 20


def find(
    words: Annotated[list[str] | None, typer.Argument(metavar="WORD...", help="All of them must occur.")] = None,
    *,
    network: Network = "",
    tags: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="May be repeated.")] = None,
    columns: Annotated[list[str] | None, typer.Option("--column", metavar="NAME", help="May be repeated.")] = None,
    publisher: Annotated[str, typer.Option("--publisher", help="A key, the beginning of one, or its name here.")] = "",
    kind: Annotated[str, typer.Option("--kind", help="table, dataset, model, folder or url.")] = "",
    least: Annotated[str, typer.Option("--min-size", metavar="SIZE", help="Such as 10MB.")] = "",
    most: Annotated[str, typer.Option("--max-size", metavar="SIZE", help="Such as 2GB.")] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="All versions, what was withdrawn, and muted publishers.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at most.")] = 50,
    peers: Peers = None,
    secret_file: SecretFile = None,
    members: MembersFile = None,
    as_json: Json = False,
) -> None:
    """Find what was published: by words in name, description, tags and columns, and by what else is known."""
    ask_members(front.choose_network(network), peers or (), secret_file, members)
    found = front.search(
        *(words or ()),
        network=network,
        tags=tags or (),
        columns=columns or (),
        publisher=publisher,
        kind=kind,
        least_bytes=_bytes(least, "--min-size") or 0,
        most_bytes=_bytes(most, "--max-size"),
        all_versions=everything,
        hidden=everything,
        limit=limit,
    )
    _print_entries(found, as_json=as_json)
    if not found and not as_json:
        console().print("Nothing was found. What others publish arrives while `cargobike share serve` runs.")


def ls(network: Network = "", as_json: Json = False) -> None:
    """List what is here, whole: published by this project, or got from others."""
    name = front.choose_network(network)
    with contextlib.closing(Holdings.of(project.prepare(), name)) as holdings:
        held = holdings.publications()
    if as_json:
        print_json([one._asdict() for one in held])
        return
    if not held:
        console().print(f"Nothing of the network {name} is here.")
        return
    made = table("PUBLICATION", "SIZE", "FOLDER", right=("SIZE",))
    for one in held:
        made.add_row(
            cell(f"{one.name}@{short(one.publisher)}:{one.version}"), cell(size_words(one.size)), cell(one.place)
        )
    print_table(made)


def show(publication: Publication, network: Network = "", as_json: Json = False) -> None:
    """Show what is known of a publication: description, columns, sample, files, ratings and comments."""
    with front.open_catalogue(network) as catalogue:
        entry = catalogue.entry(*read_reference(publication))
        manifest, opinions = catalogue.manifest(entry), catalogue.opinions(entry)
    if as_json:
        files = [{"path": file.path, "size": file.size, "root": file.root} for file in manifest.files]
        said = [{name: getattr(one, name) for name in one.__struct_fields__} for one in opinions]
        print_json({**entry.as_json(), "sample": manifest.sample, "files": files, "opinions": said})
        return
    out = console()
    facts = {
        "publication": entry.reference + (" (withdrawn)" if entry.is_withdrawn else ""),
        "publisher": f"{entry.publisher} {_standing(entry)}".strip(),
        "key now": entry.head if entry.head != entry.publisher else "",
        "kind": entry.kind,
        "size": f"{size_words(entry.size)} in {entry.num_files} files of {size_words(manifest.piece_size)} pieces",
        "rows": "" if entry.rows is None else str(entry.rows),
        "licence": entry.license or "none named",
        "tags": ", ".join(entry.tags),
        "published": f"{entry.created} by the publisher's clock",
        "supersedes": "" if manifest.supersedes is None else f"version {manifest.supersedes}",
        "rating": _rating(entry),
        "columns": ", ".join(f"{name} {kind}" for name, kind in entry.columns),
        "web seeds": ", ".join(entry.web_seeds),
        "infohash": f"{entry.infohash_v1} (v1), {entry.infohash_v2} (v2)",
    }
    for name, value in facts.items():
        if value:
            out.print(cell(f"{name + ':':13}{value}"))
    if entry.description:
        out.print(cell(entry.description))
    for row in manifest.sample:
        out.print(cell(f"  {row}"))
    for file in manifest.files[:_FILES_SHOWN]:
        out.print(cell(f"  {size_words(file.size):>10}  {file.path}"))
    if len(manifest.files) > _FILES_SHOWN:
        out.print(f"  and {len(manifest.files) - _FILES_SHOWN} more files; --json lists them")
    for one in opinions:
        stars = f"{one.rating} of 5" if one.rating else "no rating"
        out.print(cell(f"  {one.alias or short(one.author)} on version {one.version}, {stars}: {one.text}"))


def who(
    publication: Publication,
    *,
    network: Network = "",
    peers: Peers = None,
    secret_file: SecretFile = None,
    members: MembersFile = None,
    as_json: Json = False,
) -> None:
    """Ask all members that are known who has a publication, how much of it, and how fast it comes."""
    name = front.choose_network(network)
    opened = open_network(project.prepare(), name, secret_file=secret_file, members_file=members)
    found = holders(publication, network=opened, peers=peers or ())
    if as_json:
        print_json([{field: getattr(one, field) for field in one.__struct_fields__} for one in found])
        return
    if not found:
        console().print("No members are known: --peer HOST:PORT names one.")
        return
    made = table("MEMBER", "ADDRESS", "HAS", "RATE", "NOTE", right=("HAS", "RATE"))
    for one in found:
        rate = f"{size_words(int(one.rate))}/s" if one.rate else MISSING
        member = short(one.publisher) if one.publisher else "unknown"
        through = f"through it: {', '.join(map(short, one.through))}" if one.through else ""
        words = one.problem or through
        made.add_row(cell(member), cell(one.address), cell(f"{one.share:.0%}"), cell(rate), cell(words))
    print_table(made)


def _print_entries(entries: list[Entry], *, as_json: bool) -> None:
    if as_json:
        print_json([entry.as_json() for entry in entries])
        return
    if not entries:
        return
    made = table(
        "PUBLICATION", "KIND", "SIZE", "ROWS", "RATING", "LICENCE", "DESCRIPTION",
        right=("SIZE", "ROWS"), shortened=("DESCRIPTION",), optional=("LICENCE", "RATING"),
    )  # fmt: skip
    for entry in entries:
        made.add_row(
            cell(entry.reference + (" (withdrawn)" if entry.is_withdrawn else ""), "bold" if entry.standing else ""),
            cell(entry.kind),
            cell(size_words(entry.size)),
            cell(MISSING if entry.rows is None else entry.rows),
            cell(_rating(entry) or MISSING),
            cell(entry.license or MISSING),
            cell(entry.description),
        )
    print_table(made)


def _rating(entry: Entry) -> str:
    if not entry.num_opinions:
        return ""
    return f"{entry.rating} ({entry.num_opinions})" if entry.rating is not None else f"({entry.num_opinions})"


def _standing(entry: Entry) -> str:
    words = [word for word in (entry.alias, entry.standing) if word]
    return f"({', '.join(words)})" if words else ""


def _bytes(text: str, option: str) -> int | None:
    """Return how many bytes a text such as `10MB` means."""
    if not text:
        return None
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is no size; write such as 500kB, 10MB or 2GB", param_hint=option)
    return int(float(match[1]) * _FACTORS[match[2].lower()])
