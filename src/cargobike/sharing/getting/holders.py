"""Who has a publication, how much of it, and how fast: asked of all members that can be reached, at once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from cargobike.core.errors import CargobikeError
from cargobike.core.layout import ProjectFolder
from cargobike.sharing.catalogue.entry import read_reference
from cargobike.sharing.getting.from_members import ask_flags
from cargobike.sharing.getting.own_daemon import own_daemon
from cargobike.sharing.network.membership import Membership
from cargobike.sharing.network.network import Network
from cargobike.sharing.pieces.plan import Plan
from cargobike.sharing.shapes import Holder
from cargobike.sharing.wire.messages import AskPiece
from cargobike.store.files.project import prepare

_AT_ONCE: Final = 8


def holders(
    reference: str, *, network: Network | str, peers: Iterable[str] = (), project: ProjectFolder | None = None
) -> list[Holder]:
    """Ask all members that are known what they have of a publication; those with the most come first.

    Raises:
        NotFoundError: If nothing of that name is known here.
    """
    with Membership(project or prepare(), network, peers) as membership:
        catalogue = membership.catalogue
        plan = Plan.of(catalogue.manifest(catalogue.entry(*read_reference(reference))))
        return ask_all(membership, plan, [*own_daemon(membership), *membership.book.addresses()])


def ask_all(membership: Membership, plan: Plan, addresses: Iterable[str]) -> list[Holder]:
    """Ask members at some addresses what they have of a publication, several at once."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="cargobike-holders") as threads:
        found = list(threads.map(lambda address: _ask(membership, address, plan), addresses))
    return sorted(found, key=lambda one: (-one.share, -one.rate, one.address))


def share_of(flags: Sequence[bool], plan: Plan) -> float:
    """Return how much of a publication one has who has these pieces, from 0 to 1."""
    total = sum(file.size for file in plan.files)
    return sum(plan.spot(piece).length for piece, flag in enumerate(flags) if flag) / total if total else 1.0


def _ask(membership: Membership, address: str, plan: Plan) -> Holder:
    try:
        with membership.dial(address) as member:
            began = time.monotonic()
            flags, through = ask_flags(member, plan)
            answered_s = time.monotonic() - began
            rate = 0.0
            if any(flags):
                spot = plan.spot(flags.index(True))
                began = time.monotonic()
                try:
                    _, data = member.ask(AskPiece(root=spot.root, piece_size=plan.piece_size, number=spot.number))
                    rate = len(data) / max(time.monotonic() - began, 1e-6)
                except ConnectionError:
                    rate = 0.0  # it has it, and does not give it now
            return Holder(
                address=address,
                publisher=member.publisher,
                share=share_of(flags, plan),
                round_trip_s=answered_s,
                rate=rate,
                through=tuple(sorted(through)),
            )
    except (CargobikeError, OSError) as error:
        return Holder(address=address, problem=str(error))
