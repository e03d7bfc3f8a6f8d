"""The function that users call to get a publication."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import Final

from cargobike.core.errors import AuthenticationError, InvalidInputError, NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.sharing.catalogue.entry import read_reference
from cargobike.sharing.daemon.limiting import as_limits, read_limits
from cargobike.sharing.getting.fetch import Fetch
from cargobike.sharing.getting.from_web import WebSource
from cargobike.sharing.getting.handle import Arrival
from cargobike.sharing.getting.incoming import Incoming
from cargobike.sharing.getting.own_daemon import own_daemon
from cargobike.sharing.getting.placing import Place, where_to
from cargobike.sharing.getting.progress import ProgressLine
from cargobike.sharing.getting.session import WAIT_S, Session
from cargobike.sharing.network.membership import Membership
from cargobike.sharing.network.network import Network
from cargobike.sharing.pieces.arriving import Arriving
from cargobike.sharing.shapes import Manifest
from cargobike.store.files.project import prepare

MOST_STAGED: Final = 1 << 30
"""Bytes of files that are on this disk at once on their way to a storage; a larger file is there alone."""


def get(
    reference: str,
    *,
    network: Network | str,
    to: str | os.PathLike[str] | None = None,
    web_seeds: bool | None = None,
    peers: Iterable[str] = (),
    in_order: bool = False,
    wait: bool = True,
    timeout_s: float = WAIT_S,
    quiet: bool = False,
    project: ProjectFolder | None = None,
) -> Arrival:
    """Get a publication from the members of a network, verified piece by piece.

    What an attempt before has left, and what another version has too, is not fetched again. A kill loses nothing.

    Args:
        reference: What it is called: `higgs`, `higgs:3`, `higgs@alice`, `higgs@alice:3`.
        network: The network, or its name.
        to: The folder, or the storage (`s3://…`, `hdfs://…`), that its files go to. Each goes to a storage as soon as
            it is whole, so that at most 1 GiB of them, or the largest, is on this disk. By default the project keeps
            it: rows as a table of the same name, parts of a training dataset as one each (`NAME-train`), a model as a
            model, anything else as files.
        peers: Where members are, as `host:port`; besides those that are known.
        web_seeds: Whether to ask servers that the publisher names, too; by default only if the publisher is trusted
            here, since it could name any address.
        in_order: Have the beginning come first, to use it meanwhile.
        wait: Whether to return when everything is here; else at once.
        timeout_s: For how long nothing may come.
        quiet: Show no progress.
        project: The project whose key and catalogue are used; by default the one in use.

    Raises:
        NotFoundError: If nothing of that name is known.
        AuthenticationError: If the secret does not fit.
        WaitError: If nothing came for too long; names who was asked.
        StoreError: If it cannot be kept.
    """
    membership = Membership(project or prepare(), network, peers)
    try:
        manifest = _manifest(reference, membership)
        uses_web = _trusts(membership, manifest) if web_seeds is None else web_seeds
        servers = manifest.web_seeds if uses_web else ()
        place = where_to(to, manifest, membership.project)
        arrival = _begin(manifest, place, membership, servers, in_order=in_order, timeout_s=timeout_s)
    except BaseException:
        membership.close()
        raise
    if wait:
        line = None if quiet else ProgressLine()
        try:
            arrival.wait(watch=line.show if line else None)
        finally:
            if line:
                line.end()
    return arrival


def _begin(
    manifest: Manifest,
    place: Place,
    membership: Membership,
    servers: Sequence[str],
    *,
    in_order: bool,
    timeout_s: float,
) -> Arrival:
    arriving = Arriving(place.folder, manifest, place.storage)
    try:
        most = None if place.storage is None else MOST_STAGED
        fetch = Fetch(manifest, arriving, membership.holdings, in_order=in_order, most_staged=most)
        plan = fetch.plan
        fetch.begin()
        rows = [
            (file.root, f"{index:06d}", file.size, plan.pieces_of(index).start)
            for index, file in enumerate(plan.files)
            if not fetch.is_whole(index)
        ]
        membership.holdings.add_arriving(arriving.staging, rows, plan.piece_size, arriving.noted)
        web = [WebSource(address, fetch) for address in servers]
        peers = [*own_daemon(membership), *membership.book.addresses()]
        incoming = Incoming(as_limits(read_limits(membership.folder)), lambda: fetch.is_over)
        session = Session(fetch, membership.dial, peers, more=web, timeout_s=timeout_s, may_receive=incoming.wait)
    except BaseException:
        arriving.close()
        raise

    def complete(done: Fetch) -> object:
        result = place.finish()
        enter(done, membership)
        return result

    return Arrival(session, complete=complete, close=membership.close, timeout_s=timeout_s)


def enter(fetch: Fetch, membership: Membership) -> None:
    """Enter what came in the holdings, so that others can have it from here."""
    holdings = membership.holdings
    holdings.forget(fetch.arriving.staging)
    layers = {fetch.plan.files[index].root: fetch.layer(index) for index in range(len(fetch.plan.files))}
    holdings.add(fetch.manifest, fetch.arriving.place, layers)


def _trusts(membership: Membership, manifest: Manifest) -> bool:
    standings = membership.catalogue.standings()
    keys = (manifest.publisher, membership.catalogue.head(manifest.publisher))
    return any(standings.get(key, ("", ""))[0] == "trusted" for key in keys)


def _manifest(reference: str, membership: Membership) -> Manifest:
    """Return the manifest that is meant, after members were asked for news."""
    wanted = read_reference(reference)
    catalogue = membership.catalogue
    if wanted.version is not None:
        with contextlib.suppress(NotFoundError, InvalidInputError):  # members may know more
            return catalogue.manifest(catalogue.entry(*wanted))
    problems = membership.gossip_with_all()
    try:
        return catalogue.manifest(catalogue.entry(*wanted))
    except NotFoundError as error:
        failed = {address: problem for address, problem in problems.items() if problem is not None}
        if not failed:
            raise
        refused = [problem for problem in failed.values() if isinstance(problem, AuthenticationError)]
        words = "; ".join(f"{address}: {problem}" for address, problem in failed.items())
        if refused and len(failed) == len(problems):
            raise AuthenticationError(f"No member could be asked. {words}") from error
        raise NotFoundError(f"{error} Not reached: {words}", wanted=reference) from error
