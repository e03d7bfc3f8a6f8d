"""What the pages and routes of sharing show."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from cargobike.core.errors import CargobikeError, NotFoundError, nearest
from cargobike.core.layout import ProjectFolder
from cargobike.sharing.catalogue.entry import Entry, Question, read_reference
from cargobike.sharing.catalogue.store import Catalogue
from cargobike.sharing.daemon.control import ask_daemon, daemon_status
from cargobike.sharing.daemon.messages import AskHolders, Holders, Status
from cargobike.sharing.identity.keys import load_identity
from cargobike.sharing.pages.answers import (
    ColumnLine,
    FileLine,
    HolderLine,
    HolderList,
    MemberLine,
    NetworkDetails,
    NetworkLine,
    NetworkList,
    OpinionLine,
    PublicationDetails,
    PublicationLine,
)
from cargobike.sharing.pieces.holdings import Holdings, Publication
from cargobike.sharing.places import catalogue_file, known_networks

_FILES: Final = 1000


def networks(project: ProjectFolder) -> NetworkList:
    """Return the networks that a project knows; makes nothing."""
    known = known_networks(project)
    has_key = (project.root / "sharing" / "identity" / "key").is_file()
    publisher = load_identity(project).publisher if has_key else ""
    return NetworkList(publisher=publisher, networks=[_network(project, name) for name in known])


def details(project: ProjectFolder, name: str, question: Question, *, may_change: bool) -> NetworkDetails:
    """Return what a question finds in a network, and what is transferred.

    Raises:
        NotFoundError: If the project does not know the network.
    """
    with _catalogue(project, name) as catalogue:
        found, total = catalogue.find(question), catalogue.count()
    held = {one[:3] for one in _held(project, name)}
    status = _status(project, name)
    return NetworkDetails(
        network=_network(project, name, status),
        publications=[_line(entry, held) for entry in found],
        total=total,
        limits=_limits(status),
        members=_members(status),
        lenders=list(status.lenders) if status else [],
        lent_to=list(status.lent_to) if status else [],
        may_change=may_change and status is not None,
    )


def entries(project: ProjectFolder, network: str, question: Question) -> list[Entry]:
    """Return what a question finds in a network.

    Raises:
        NotFoundError: If the project does not know the network.
    """
    with _catalogue(project, network) as catalogue:
        return list(catalogue.find(question))


def network_and_members(project: ProjectFolder, name: str) -> tuple[NetworkLine, list[MemberLine]]:
    """Return a network in short, and the members that its daemon knows."""
    status = _status(project, name)
    return _network(project, name, status), _members(status)


def publication(
    project: ProjectFolder, network: str, name: str, publisher: str, version: int | None
) -> PublicationDetails:
    """Return everything about a publication.

    Raises:
        NotFoundError: If there is none.
        InvalidInputError: If several publishers have one of that name.
    """
    with _catalogue(project, network) as catalogue:
        entry = catalogue.entry(name, publisher, version)
        manifest, opinions = catalogue.manifest(entry), catalogue.opinions(entry)
        question = Question(publisher=entry.publisher, all_versions=True, hidden=True, limit=10_000)
        versions = sorted({one.version for one in catalogue.find(question) if one.name == name}, reverse=True)
    held = _held(project, network)
    wanted = entry.publisher, entry.name, entry.version
    return PublicationDetails(
        network=network,
        publication=_line(entry, {one[:3] for one in held}),
        versions=versions,
        columns=[ColumnLine(name=one, type=kind) for one, kind in entry.columns],
        sample=list(manifest.sample),
        files=[FileLine(path=one.path, size_bytes=one.size, root=one.root) for one in manifest.files[:_FILES]],
        opinions=[
            OpinionLine(
                author=one.author,
                alias=one.alias,
                version=one.version,
                rating=one.rating,
                text=one.text,
                created=one.created,
            )
            for one in opinions
        ],
        places=[one.place for one in held if one[:3] == wanted],
        web_seeds=list(entry.web_seeds),
        infohash_v1=entry.infohash_v1,
        infohash_v2=entry.infohash_v2,
    )


def holders(project: ProjectFolder, network: str, name: str, publisher: str, version: int | None) -> HolderList:
    """Have the daemon ask all members what they have of a publication.

    Raises:
        NotFoundError: If there is none, or no daemon runs.
    """
    with _catalogue(project, network) as catalogue:
        entry = catalogue.entry(name, publisher, version)
    reference = f"{entry.name}@{entry.publisher}:{entry.version}"
    reply = ask_daemon(project, network, AskHolders(reference=reference))
    found = reply.holders if isinstance(reply, Holders) else ()
    return HolderList(
        holders=[
            HolderLine(
                publisher=one.publisher,
                address=one.address,
                share=one.share,
                rate=one.rate,
                problem=one.problem,
                through=list(one.through),
            )
            for one in found
        ]
    )


def find_page(project: ProjectFolder, reference: str) -> str:
    """Return the address of the page of a publication, in the first network that knows it.

    Raises:
        NotFoundError: If none does.
    """
    name, publisher, version = read_reference(reference)
    for network in known_networks(project):
        with contextlib.suppress(NotFoundError), _catalogue(project, network) as catalogue:
            entry = catalogue.entry(name, publisher, version)
            key = quote(entry.publisher, safe="")
            return f"/sharing/{network}/publications/{entry.name}?publisher={key}&version={entry.version}"
    raise NotFoundError(f"No network of this project knows {reference!r}.", wanted=reference)


@contextlib.contextmanager
def _catalogue(project: ProjectFolder, network: str) -> Iterator[Catalogue]:
    known = known_networks(project)
    if network not in known:
        raise NotFoundError(f"This project knows no network {network!r}.{nearest(network, known)}", wanted=network)
    with Catalogue(catalogue_file(project, network), network) as catalogue:
        yield catalogue


def _held(project: ProjectFolder, network: str) -> list[Publication]:
    with contextlib.closing(Holdings.of(project, network)) as holdings:
        return holdings.publications()


def _status(project: ProjectFolder, network: str) -> Status | None:
    try:
        return daemon_status(project, network)
    except (CargobikeError, OSError):
        return None  # it is busy or ends just now; the rest of the page is true


def _network(project: ProjectFolder, name: str, status: Status | None = None) -> NetworkLine:
    status = status or _status(project, name)
    with _catalogue(project, name) as catalogue:
        total = catalogue.count()
    return NetworkLine(
        name=name,
        publications=total,
        is_served=status is not None,
        is_paused=status is not None and status.is_paused,
        address=status.address if status else "",
        members=len(status.peers) if status else 0,
    )


def _limits(status: Status | None) -> list[str]:
    if status is None:
        return []
    rates = {"send": status.limits.send, "receive": status.limits.receive, **(status.limits.peers or {})}
    return [f"{name} {rate}" for name, rate in rates.items() if rate] + list(status.limits.hours or ())


def _members(status: Status | None) -> list[MemberLine]:
    if status is None:
        return []
    given = {one.publisher: one.size for one in status.given}
    paths = {path.peer: path for path in status.paths}
    lines = []
    for peer in status.peers:
        path = paths.get(peer.publisher)
        lines.append(
            MemberLine(
                publisher=peer.publisher,
                address=peer.address,
                given_bytes=given.get(peer.publisher, 0),
                rate=path.delivered_rate if path else None,
                phase=path.phase if path else "",
                problem=peer.problem,
            )
        )
    return lines


def _line(entry: Entry, held: set[tuple[str, str, int]]) -> PublicationLine:
    return PublicationLine(
        reference=entry.reference,
        name=entry.name,
        version=entry.version,
        publisher=entry.publisher,
        alias=entry.alias,
        standing=entry.standing,
        kind=entry.kind,
        description=entry.description,
        license=entry.license,
        tags=list(entry.tags),
        size_bytes=entry.size,
        num_files=entry.num_files,
        rows=entry.rows,
        rating=entry.rating,
        num_opinions=entry.num_opinions,
        created=entry.created,
        is_withdrawn=entry.is_withdrawn,
        is_here=(entry.publisher, entry.name, entry.version) in held,
    )
