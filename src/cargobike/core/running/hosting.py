"""What engines, workers and drivers must agree on: where a driver listens, and the orders to a host process."""

from __future__ import annotations

import msgspec

from cargobike.core.running.ending import Ending


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where the driver listens for an engine's workers.

    Attributes:
        bind: Address to listen on; loopback unless the workers are elsewhere.
        reach: Name or address by which workers reach it; the same as `bind` if empty.
        port: Port to listen on, for networks that let only some through; any free one if 0.
    """

    bind: str = "127.0.0.1"
    reach: str = ""
    port: int = 0


# What an engine and the host process that it starts say to each other, over a socket that both inherited.


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """First order to a host; the descriptors of the payload and of the liveness socket come with it.

    The engine shuts the liveness socket down when it is closed, while its process may go on.
    `environment` holds what is set unless the user has set it, before any library is loaded; `workers` is how many
    there will be.
    """

    version: str
    environment: dict[str, str] = {}
    workers: int = 1


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    """Start an agent; the descriptors of its config and of its connection, if it inherits one, come with it."""

    name: str
    gpus: tuple[str, ...] = ()


class Warm(msgspec.Struct, frozen=True, tag="warm"):
    """The host has imported what it could; `failed` says what not."""

    failed: dict[str, str] = {}


class Forked(msgspec.Struct, frozen=True, tag="forked"):
    """An agent was started."""

    name: str
    pid: int


class Gone(msgspec.Struct, frozen=True, tag="gone"):
    """An agent has ended."""

    name: str
    ending: Ending


HostOrder = Begin | Fork
HostNews = Warm | Forked | Gone
decode_order = msgspec.msgpack.Decoder(HostOrder).decode
decode_news = msgspec.msgpack.Decoder(HostNews).decode
