"""Who has a publication, how much of it, and how fast: asked of all members that can be reached, at once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from cargobike.core.errors import CargobikeError
from cargobike.core.layout import ProjectFolder
from cargobike.sharing.catalogue.entry import read_reference
from cargobike.sharing.getting.from_members import ask_flags
from cargobike.sharing.network.membership import Membership
from cargobike.sharing.network.network import Network
from cargobike.sharing.pieces.plan import Plan
from cargobike.sharing.wire.messages import AskPiece
from cargobike.store.files.project import prepare

_AT_ONCE: Final = 8


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """What one member has.

    Attributes:
        address: Where it is.
        publisher: Its key; empty if it was not reached.
        share: How much of the publication it has, from 0 to 1.
        round_trip_s: How long it took to answer a small question.
        rate: Bytes in a second at which one piece came; 0 if none was asked for.
        problem: Why it was not reached.
    """

    address: str
    publisher: str = ""
    share: float = 0.0
    round_trip_s: float = 0.0
    rate: float = 0.0
    problem: str = ""


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
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="cargobike-holders") as threads:
            found = list(threads.map(lambda address: _ask(membership, address, plan), membership.book.addresses()))
    return sorted(found, key=lambda one: (-one.share, -one.rate, one.address))


def _ask(membership: Membership, address: str, plan: Plan) -> Holder:
    try:
        with membership.dial(address) as member:
            began = time.monotonic()
            flags = ask_flags(member, plan)
            answered_s = time.monotonic() - began
            had = [piece for piece, flag in enumerate(flags) if flag]
            size, rate = sum(plan.spot(piece).length for piece in had), 0.0
            if had:
                spot = plan.spot(had[0])
                began = time.monotonic()
                try:
                    _, data = member.ask(AskPiece(root=spot.root, piece_size=plan.piece_size, number=spot.number))
                    rate = len(data) / max(time.monotonic() - began, 1e-6)
                except ConnectionError:
                    rate = 0.0  # it has it, and does not give it now
            total = sum(file.size for file in plan.files)
            share = size / total if total else 1.0
            return Holder(address=address, publisher=member.publisher, share=share, round_trip_s=answered_s, rate=rate)
    except (CargobikeError, OSError) as error:
        return Holder(address=address, problem=str(error))
