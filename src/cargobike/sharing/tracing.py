"""What was published from what, and what came from a publication, for lineage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import msgspec

from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Edge, Thing
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.sharing.getting.placing import got_edges
from cargobike.sharing.identity.keys import load_identity, short
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.sharing.places import known_networks, network_folder
from cargobike.sharing.shapes import Manifest

_FILE: Final = "published.jsonl"


class Published(msgspec.Struct, frozen=True):
    """A publication of this project, and the thing that it was made from."""

    publisher: str
    name: str
    version: int
    made_from: tuple[str, str, str]


def note_published(project: ProjectFolder, manifest: Manifest, made_from: Thing) -> None:
    """Note what a publication was made from."""
    origin = made_from.kind, made_from.name, made_from.version
    line = msgspec.json.encode(Published(manifest.publisher, manifest.name, manifest.version, origin))
    with (network_folder(project, manifest.network) / _FILE).open("ab") as file:
        file.write(line + b"\n")


def publication_thing(publisher: str, name: str, version: int) -> Thing:
    """Return what lineage calls a publication."""
    return Thing("publication", f"{name}@{short(publisher)}", str(version))


def edges(project: ProjectFolder) -> Iterator[Edge]:
    """Yield what the publications of a project were made from, and folders that publications of others went to."""
    yield from got_edges(project)
    has_key = (project.root / "sharing" / "identity" / "key").is_file()
    publisher = load_identity(project).publisher if has_key else ""
    for network in known_networks(project):
        own = set()
        for one in _published(project, network):
            own.add((one.publisher, one.name, one.version))
            thing = publication_thing(one.publisher, one.name, one.version)
            yield Edge(thing, Thing(*one.made_from), detail=f"network {network}")
        with contextlib.closing(Holdings.of(project, network)) as holdings:
            held = holdings.publications()
        for one_held in held:
            if one_held[:3] not in own and one_held.publisher != publisher:
                thing = publication_thing(*one_held[:3])
                yield Edge(Thing("file", one_held.place), thing, detail=f"network {network}")


def _published(project: ProjectFolder, network: str) -> Iterator[Published]:
    try:
        lines = (network_folder(project, network) / _FILE).read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        with contextlib.suppress(*UNDECODABLE):
            yield msgspec.json.decode(line, type=Published)
