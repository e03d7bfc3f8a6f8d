"""Serve a network for a project: give pieces, spread records, find members, and obey its user."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Final

import msgspec

from cargobike.core.layout import ProjectFolder
from cargobike.sharing.catalogue.entry import read_reference
from cargobike.sharing.daemon.control import ControlServer
from cargobike.sharing.daemon.limiting import as_limits, merged, read_limits, write_limits
from cargobike.sharing.daemon.lock import DaemonLock
from cargobike.sharing.daemon.messages import (
    AddPeer,
    AskHolders,
    AskStatus,
    Done,
    GivenTo,
    Gossip,
    Holders,
    Known,
    PathState,
    Pause,
    Reply,
    Request,
    Resume,
    SetLimits,
    Shared,
    Status,
    Stop,
)
from cargobike.sharing.getting.holders import ask_all, share_of
from cargobike.sharing.governor.pacing import Handle, Pacer
from cargobike.sharing.identity.keys import short
from cargobike.sharing.network.beacons import Beacons
from cargobike.sharing.network.membership import Membership
from cargobike.sharing.network.network import Network
from cargobike.sharing.pieces.plan import Plan
from cargobike.sharing.shapes import Holder
from cargobike.sharing.swarm.answering import Answers, Giving, dialled_at
from cargobike.sharing.swarm.lenders import Lenders
from cargobike.sharing.swarm.lending import Lending
from cargobike.sharing.wire.member import Member, flags_of
from cargobike.sharing.wire.messages import MOST_ROOTS, Greeting
from cargobike.sharing.wire.reception import Reception

_log = logging.getLogger(__name__)
GOSSIP_S: Final = 30.0
_END_S: Final = 30.0
_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
_RETRIED: Final = 5
"""After so many failures an address is asked less and less often."""


class Daemon:
    """One member that others can reach. A `with` block starts and ends it; `run` waits until it is told to end.

    Args:
        project: Whose publications it gives.
        network: The network, or its name.
        host: Where it listens; only on this machine by default.
        port: 0 for any that is free.
        peers: Addresses of members.
        announces: Whether it looks for members on the same link, and tells them of itself.
        interface: The address of the interface to do that on; by default where it listens, or what the kernel chooses.
        gives: Whether it gives pieces; a rendezvous only introduces members and passes on records.
        relays: Whether it passes on pieces of members that others cannot dial.
        gossip_s: Seconds between comparisons of catalogues.

    Raises:
        StoreError: On entering, if another process serves this network for this project.
    """

    def __init__(
        self,
        project: ProjectFolder,
        network: Network | str,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        peers: Iterable[str] = (),
        announces: bool = False,
        interface: str = "",
        gives: bool = True,
        relays: bool = True,
        gossip_s: float = GOSSIP_S,
    ) -> None:
        self.membership = Membership(project, network, peers)
        self._host, self._port, self._announces, self._gives = host, port, announces, gives
        self._gossip_s = gossip_s
        self._lenders = Lenders() if gives and relays else None
        self._lending: Lending | None = None
        self._interface = interface or (host if host not in _EVERYWHERE else "")
        self._since = time.time()
        self._giving = Giving()
        self._limits = read_limits(self.membership.folder)
        self._pacer = Pacer(as_limits(self._limits))
        self._problems: dict[str, str] = {}
        self._stopping = threading.Event()
        self._soon = threading.Event()
        self._ending = contextlib.ExitStack()
        self.address = ""

    def __enter__(self) -> Daemon:
        try:
            self._start()
        except BaseException:
            self._ending.close()
            raise
        return self

    def _start(self) -> None:
        membership, ending = self.membership, self._ending
        ending.callback(membership.close)
        ending.enter_context(DaemonLock(membership.folder, membership.network.name))
        ending.callback(self._pacer.close)
        answers, own = self._answers(self._lenders), self._answers(None)

        def talk(member: Member) -> None:
            if not member.greeting.may_be_asked:
                answers.talk(member)
            elif self._lenders is not None:
                self._lenders.keep(member)

        reception = Reception(
            self._host,
            self._port,
            membership.network,
            membership.identity,
            talk=talk,
            greet=self._greet,
            blocked=self._blocked,
        )
        ending.callback(reception.close)
        if self._lenders is not None:
            ending.callback(self._lenders.close)
        self._port = reception.port
        self.address = f"{self._host}:{reception.port}"
        membership.greeting = Greeting(port=reception.port, is_giver=self._gives)
        if self._gives:
            self._lending = Lending(self._call, own.talk)
            membership.wanted_by = self._lending.call
            ending.callback(self._lending.close)
        thread = threading.Thread(target=self._spread, name="cargobike-gossip", daemon=True)
        thread.start()
        ending.callback(thread.join, _END_S)
        ending.callback(self._stop)
        if self._announces:
            beacons = Beacons(
                membership.network, membership.identity, reception.port, self._heard, interface=self._interface
            )
            ending.callback(beacons.close)
        ending.callback(ControlServer(membership.folder, self._answer).close)

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._ending.close()

    def _answers(self, lenders: Lenders | None) -> Answers:
        membership = self.membership
        return Answers(
            membership.catalogue,
            membership.holdings if self._gives else None,
            self._giving,
            known_peers=membership.book.told,
            met=self._met,
            pace=self._paced,
            lenders=lenders,
        )

    def _greet(self, member: Member) -> Greeting:
        """Say who we are, and have a member that we cannot dial call once more, so that we can ask it."""
        wants = (
            self._lenders is not None
            and member.greeting.is_giver
            and member.publisher != self.membership.identity.publisher
            and self._lenders.wants(member.publisher)
            and self.membership.book.is_unreachable(dialled_at(member), member.publisher)
        )
        return msgspec.structs.replace(self.membership.greeting, wants_call=wants)

    def _call(self, address: str) -> Member:
        greeting = msgspec.structs.replace(self.membership.greeting, may_be_asked=True)
        return self.membership.dial(address, greeting=greeting)

    def run(self) -> None:
        """Wait until a signal or a request says that it is to end."""
        with _signals(self._stop):
            while not self._stopping.wait(1.0):
                pass

    def _stop(self) -> None:
        self._stopping.set()
        self._soon.set()

    @contextlib.contextmanager
    def _paced(self, member: Member) -> Iterator[Handle]:
        with self._pacer.attach(member.channel.socket, member.publisher) as handle:
            yield handle

    def _blocked(self) -> frozenset[str]:
        return frozenset(key for key, (word, _) in self.membership.catalogue.standings().items() if word == "blocked")

    def _met(self, member: Member, address: str) -> None:
        if address:
            if address not in self.membership.book.peers():
                self._soon.set()
            self.membership.book.hear(address)

    def _heard(self, address: str) -> None:
        if address != self.address and address not in self.membership.book.peers():
            self.membership.book.hear(address)
            self._soon.set()

    def _spread(self) -> None:
        """Compare catalogues with members every now and then, and at once with one that is new."""
        rounds = 0
        while not self._stopping.is_set():
            self._soon.clear()
            try:
                self._gossip(rounds)
            except Exception:  # noqa: BLE001 - the next comparison may work
                _log.exception("Comparing catalogues failed")
                self._stopping.wait(1.0)
            rounds += 1
            self._soon.wait(self._gossip_s)

    def _gossip(self, rounds: int) -> int:
        book = self.membership.book
        due = [
            address
            for address, peer in book.peers().items()
            if peer.failures < _RETRIED or rounds % min(peer.failures, 120) == 0
        ]
        outcome = self.membership.gossip_with_all(due)
        for address, problem in outcome.items():
            if problem is None:
                self._problems.pop(address, None)
            elif self._problems.get(address) != str(problem):
                self._problems[address] = str(problem)
                _log.info("%s: %s", address, problem)
        if book.has_untried():  # others have told of a member that is new
            self._soon.set()
        return sum(problem is None for problem in outcome.values())

    def _answer(self, request: Request) -> Reply:
        if isinstance(request, AskStatus):
            return self.status()
        if isinstance(request, (Pause, Resume)):
            self._giving.is_paused = isinstance(request, Pause)
            return Done(words="paused" if self._giving.is_paused else "giving")
        if isinstance(request, SetLimits):
            limits = merged(self._limits, request)
            self._pacer.limits = as_limits(limits)
            self._limits = limits
            write_limits(self.membership.folder, limits)
            return Done(words="limits are set")
        if isinstance(request, AddPeer):
            self.membership.book.name([request.address])
            self._soon.set()
            return Done(words=f"{request.address} is asked soon")
        if isinstance(request, Gossip):
            return Done(words=f"{self._gossip(0)} members were asked")
        if isinstance(request, AskHolders):
            return Holders(holders=tuple(self._holders(request.reference)))
        assert isinstance(request, Stop)
        self._stop()
        return Done(words="ending")

    def _holders(self, reference: str) -> list[Holder]:
        """Ask all members what they have of a publication, those that lend included."""
        catalogue = self.membership.catalogue
        plan = Plan.of(catalogue.manifest(catalogue.entry(*read_reference(reference))))
        found = ask_all(self.membership, plan, self.membership.book.addresses())
        roots = [file.root for file in plan.files[:MOST_ROOTS]]  # of more files, these stand for all
        lent = {} if self._lenders is None or not roots else self._lenders.have(roots, plan.piece_size)
        for publisher, sets in lent.items():
            flags = [flag for index, bits in enumerate(sets) for flag in flags_of(bits, len(plan.pieces_of(index)))]
            found.append(Holder(address="calls us", publisher=publisher, share=share_of(flags, plan)))
        return sorted(found, key=lambda one: (-one.share, -one.rate, one.address))

    def status(self) -> Status:
        """Return how it is."""
        membership = self.membership
        with self._giving.lock:
            given = tuple(
                GivenTo(publisher=key, address=one.address, pieces=one.pieces, size=one.size, last_at=one.last_s)
                for key, one in self._giving.by_member.items()
            )
        return Status(
            network=membership.network.name,
            publisher=membership.identity.publisher,
            address=self.address,
            pid=os.getpid(),
            since=self._since,
            is_paused=self._giving.is_paused,
            records=membership.catalogue.count(),
            shared=tuple(
                Shared(reference=f"{one.name}@{short(one.publisher)}:{one.version}", place=one.place, size=one.size)
                for one in membership.holdings.publications()
            ),
            given=given,
            peers=tuple(
                Known(
                    address=address,
                    publisher=peer.publisher,
                    met_at=peer.met_at,
                    failures=peer.failures,
                    problem=self._problems.get(address, ""),
                )
                for address, peer in membership.book.peers().items()
            ),
            limits=self._limits,
            lenders=self._lenders.publishers if self._lenders is not None else (),
            lent_to=self._lending.addresses if self._lending is not None else (),
            paths=tuple(
                PathState(
                    peer=path.peer,
                    connections=path.connections,
                    phase=path.phase,
                    rate=path.rate,
                    delivered_rate=path.delivered_rate,
                    base_delay_s=path.base_delay_s,
                    queueing_delay_s=path.queueing_delay_s,
                )
                for path in self._pacer.status()
            ),
        )


def serve(project: ProjectFolder, network: Network | str, **options: object) -> None:
    """Serve a network until a signal or a request ends it; options are those of `Daemon`."""
    with Daemon(project, network, **options) as daemon:  # type: ignore[arg-type]
        _log.info("Serving %s at %s", daemon.membership.network.name, daemon.address)
        daemon.run()


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """End properly when asked to by SIGTERM or Ctrl-C; only the main thread can be asked."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def told(_number: int, _frame: FrameType | None) -> None:
        stop()

    old = {number: signal.signal(number, told) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
