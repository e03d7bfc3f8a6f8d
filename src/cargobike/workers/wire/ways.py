"""How a worker reaches its driver: what it is told, and what both ends offer, whatever carries the messages.

There are two ways. Workers that descend from the driver's own process inherit a pair of sockets (`pairs.py`): nobody
else can reach it, so there is nothing to prove and nothing to encrypt. All others come over the network, with keys
(`server.py`, `connection.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from cargobike.workers.wire.messages import Message

Heard = TypeVar("Heard")


class AgentConfig(msgspec.Struct, frozen=True):
    """What an agent must know; handed over by the engine, in memory only.

    `driver_silence_s` is for machines where only silence shows that the driver has ended. On the driver's own machine
    a pipe shows it, and a driver that was stopped with Ctrl-Z may go on after an hour.

    `folder` is where the program works, inside `project`. `marker` names a file in it: where that is missing, the
    folder is a different one, and files are transferred to and from `files_address`.

    Keys are empty for a worker that inherits its connection.
    """

    worker: str
    address: str
    server_key: bytes
    public_key: bytes
    secret_key: bytes
    folder: str
    project: str
    reuse: bool
    driver_silence_s: float | None = None
    files_address: str = ""
    marker: str = ""

    def encode(self) -> bytes:
        """Turn into bytes."""
        return msgspec.msgpack.encode(self)

    @staticmethod
    def decode(data: bytes) -> AgentConfig:
        """Undo `encode`."""
        return _decode_config(data)


_decode_config = msgspec.msgpack.Decoder(AgentConfig).decode
# Made before any fork: to find out what the fields are takes an agent longer than all else that it does to begin.


class Ticket(msgspec.Struct, frozen=True):
    """What a worker needs to reach the driver.

    Attributes:
        address: Where the driver is.
        server_key: The public key by which the driver is known.
        public_key: The worker's own.
        secret_key: The other half of it.
        descriptor: The worker's end of a pair of sockets, to be inherited; -1 if it has to connect.
    """

    address: str
    server_key: bytes = b""
    public_key: bytes = b""
    secret_key: bytes = b""
    descriptor: int = -1

    def __repr__(self) -> str:  # no keys in a log
        return f"Ticket(address={self.address!r}, descriptor={self.descriptor})"


class DriverEnd(Protocol[Heard]):
    """The driver's end of the wire."""

    def issue(self, worker: str) -> Ticket:
        """Admit a worker; returns what it needs to come."""

    def forget(self, worker: str) -> None:
        """Stop admitting a worker."""

    def watch(self, descriptor: int) -> None:
        """Make `poll` also return when this descriptor becomes readable."""

    def poll(self, timeout_ms: int) -> bool:
        """Wait until something happens on our sockets or on a descriptor that is watched."""

    def receive(self) -> tuple[list[tuple[str, Heard]], list[str]]:
        """Return the messages that have arrived, in order, and the workers whose connection has closed."""

    def send(self, worker: str, message: Message) -> None:
        """Put a message on its way; `flush` sends it."""

    @property
    def has_mail(self) -> bool:
        """Whether something is on its way."""

    def acknowledge_all(self) -> None:
        """Tell every worker that the driver is alive and what has arrived, where that does not show otherwise."""

    def flush(self) -> None:
        """Send everything that is on its way."""

    def close(self) -> None:
        """Close all sockets."""


class Poller(Protocol):
    """Waits for several descriptors at once."""

    def register(self, source: Any, flags: int, /) -> object:
        """Wait for something on a descriptor, from now on or in another way than before."""

    def unregister(self, source: Any, /) -> object:
        """Do not wait for it any more."""

    def poll(self, timeout_ms: int, /) -> list[tuple[Any, int]]:
        """Wait; returns what has happened where."""


class AgentEnd(Protocol):
    """An agent's end of the wire.

    Attributes:
        is_closed: Whether the driver has closed it for good.
    """

    is_closed: bool

    @property
    def poller(self) -> Poller:
        """Waits for the driver, and for what else is registered."""

    def begin(self, hello: bytes) -> None:
        """Introduce ourselves, now and whenever the connection is new."""

    def has_come(self, ready: Mapping[Any, int]) -> bool:
        """Tell from what the poller has found whether the driver has said something."""

    def receive(self) -> Sequence[bytes | msgspec.Raw]:
        """Return the messages that have arrived."""

    def send(self, items: list[bytes]) -> None:
        """Send some messages."""

    @property
    def in_flight(self) -> int:
        """How much of what was sent may not have arrived yet."""

    def close(self, linger_ms: int) -> None:
        """Close, giving what was sent some time to leave."""
