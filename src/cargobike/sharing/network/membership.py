"""One process as a member of a network: who it is, what it knows, and how it reaches others."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final

from cargobike.core.errors import AuthenticationError, CargobikeError
from cargobike.core.layout import ProjectFolder
from cargobike.sharing.catalogue.store import Catalogue
from cargobike.sharing.identity.keys import load_identity
from cargobike.sharing.network.network import Network, open_network
from cargobike.sharing.network.peers import PeerBook
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.sharing.places import catalogue_file, network_folder
from cargobike.sharing.swarm.gossip import spread
from cargobike.sharing.wire.dialling import DIAL_S, dial
from cargobike.sharing.wire.member import Member
from cargobike.sharing.wire.messages import AskPeers, Greeting, Peers

_AT_ONCE: Final = 8


class Membership:
    """What a process needs to take part; closed by `close` or at the end of a `with` block.

    Attributes:
        greeting: What it says first to members that it dials.
        own_daemon: Where this project itself may be dialled: its daemon reaches members that others cannot.
        wanted_by: Called with the address of a member that wants to be called once more, so that it can ask.

    Args:
        project: Whose key, catalogue and holdings these are.
        network: The network, or its name.
        peers: Addresses of members.
    """

    def __init__(self, project: ProjectFolder, network: Network | str, peers: Iterable[str] = ()) -> None:
        self.project = project
        self.network = network if isinstance(network, Network) else open_network(project, network)
        name = self.network.name
        self.identity = load_identity(project)
        self.greeting = Greeting()
        self.own_daemon = ""
        self.wanted_by: Callable[[str], None] = lambda _address: None
        self.book = PeerBook(network_folder(project, name) / "peers.json")
        self.book.name(peers)
        self.catalogue = Catalogue(catalogue_file(project, name), name, members=self.network.members)
        self.holdings = Holdings.of(project, name)

    @property
    def folder(self) -> Path:
        """Where the project keeps what it knows of this network."""
        return network_folder(self.project, self.network.name)

    def dial(self, address: str, timeout_s: float = DIAL_S, *, greeting: Greeting | None = None) -> Member:
        """Connect to a member.

        Raises:
            AuthenticationError: If it is none, is blocked here, or is this project itself.
            OSError: If it cannot be reached.
        """
        try:
            member = dial(address, self.network, self.identity, greeting=greeting or self.greeting, timeout_s=timeout_s)
        except (CargobikeError, OSError):
            self.book.fail(address)
            raise
        problem = ""
        if member.publisher == self.identity.publisher:
            if address == self.own_daemon:
                return member
            self.book.disown(address)
            problem = f"{address} is this project itself"
        elif self.catalogue.is_blocked(member.publisher):
            problem = f"the member at {address} is blocked here"
        if problem:
            self.book.fail(address)
            member.close()
            raise AuthenticationError(problem)
        self.book.meet(address, member.publisher)
        return member

    def gossip(self, address: str, timeout_s: float = DIAL_S) -> int:
        """Compare catalogues with a member, learn of others, and return how many records were new here."""
        with self.dial(address, timeout_s) as member:
            answer, _ = member.ask(AskPeers())
            for other in answer.addresses if isinstance(answer, Peers) else ():
                self.book.hear(other)
            came, _ = spread(member, self.catalogue)
            wants_call = member.greeting.wants_call
        if wants_call:
            self.wanted_by(address)
        return came

    def gossip_with_all(self, addresses: Iterable[str] | None = None) -> dict[str, Exception | None]:
        """Compare catalogues with members, several at once; return for each address what went wrong."""
        chosen = list(self.book.addresses() if addresses is None else addresses)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="cargobike-gossip") as threads:
            outcome = dict(zip(chosen, threads.map(functools.partial(_tried, self), chosen), strict=True))
        with contextlib.suppress(CargobikeError):  # addresses are found again
            self.book.save()
        return outcome

    def close(self) -> None:
        """Close all files; may be called twice."""
        self.catalogue.close()
        self.holdings.close()

    def __enter__(self) -> Membership:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _tried(membership: Membership, address: str) -> Exception | None:
    try:
        membership.gossip(address)
    except (CargobikeError, OSError) as error:
        return error
    return None
