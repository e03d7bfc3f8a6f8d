"""What a framework needs so that its ranks find each other: something to offer, and variables to read."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from cargobike.experiments.trial.context import TrialContext
from cargobike.experiments.trial.messages import Membership


class Offer(msgspec.Struct, frozen=True):
    """What a member has ready for one framework: a port, 0 for none, and whether something listens on it already."""

    port: int = 0
    is_open: bool = False


class Peer(msgspec.Struct, frozen=True):
    """What a member tells the other members about itself.

    Attributes:
        address: Where its ports are.
        offers: What it has ready, by framework.
        gpus: The devices that its worker was given.
        checkpoint: The newest checkpoint that rank 0 sees: what all of them begin with.
    """

    address: str
    offers: dict[str, Offer]
    gpus: tuple[str, ...]
    checkpoint: str

    def endpoint(self, way: str) -> str:
        """Return where a framework of this member listens, as `address:port`."""
        return f"{self.address}:{self.offers[way].port}"


@dataclass(frozen=True, slots=True)
class Party:
    """All members once they have met, as one of them sees it; peers are in the order of members."""

    here: TrialContext
    membership: Membership
    peers: list[Peer]

    @property
    def first(self) -> Peer:
        """Rank 0, with which frameworks meet."""
        return self.peers[0]


class Ports:
    """The ports that this member holds, for as long as the train function runs.

    Args:
        address: The address of this host that others can reach.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._held: list[socket.socket] = []

    def hold(self) -> int:
        """Bind a port that only this process can listen on."""
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("", 0))  # on all addresses, as gRPC will
        self._held.append(holder)
        return int(holder.getsockname()[1])

    def close(self) -> None:
        """Give all of them back; a runner leaves that to the end of its process."""
        for holder in self._held:
            holder.close()
        self._held.clear()


class Way(ABC):
    """How the ranks of one framework meet. One is made for each attempt, and lives as long as it."""

    name: ClassVar[str]

    @abstractmethod
    def offer(self, ports: Ports, *, leads: bool, world_size: int) -> Offer:
        """Prepare what the others need of this member; `leads` is true for rank 0."""

    @abstractmethod
    def variables(self, party: Party) -> dict[str, str]:
        """Return what the framework reads from the environment."""

    def prepare(self, party: Party) -> None:  # noqa: B027 - most frameworks need nothing
        """Prepare the framework itself in this process, once it is known where all members are."""

    def leave(self) -> bool:
        """Prepare to leave; returns whether others may need a moment to finish with what is offered here."""
        return False
