"""What a supervisor and the hosts of its replicas say to each other, over a socket in the runtime folder.

Messages travel as those between supervisor and front do (`framed`, `Frames`). A host greets each supervisor that
connects with `HostIs`, and the listening socket of the deployment comes with it: so the next supervisor gets it, too.
"""

from __future__ import annotations

from typing import Final

import msgspec

from cargobike.serving.wire import Said

SOCKET: Final = "host-{}.sock"
SOCKETS: Final = "host-*.sock"
GRACE_S: Final = 30.0
"""How long front, hosts and replicas go on without a supervisor."""


class HostConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a host is started with, through a pipe: the environment may hold secrets.

    Attributes:
        socket: The path that it listens on.
        logs: The folder for what replicas print.
        libraries: Modules to import before the first fork.
        environment: Environment variables of the replicas.
        paths: Where else to look for modules.
        listener: The descriptor of the deployment's listening socket, which it keeps for the next supervisor.
        grace_s: How long it goes on without a supervisor.
    """

    socket: str
    logs: str
    libraries: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    paths: tuple[str, ...] = ()
    listener: int = -1
    grace_s: float = GRACE_S


class Fork(Said, frozen=True, tag="fork"):
    """Start a replica; `config` is a `ReplicaConfig`."""

    replica: int
    config: bytes


class End(Said, frozen=True, tag="end"):
    """End a replica: `SIGTERM`, and `SIGKILL` if that does not help, or at once."""

    replica: int
    kill: bool = False


class EndHost(Said, frozen=True, tag="end-host"):
    """End, and all replicas with it."""


class HostIs(Said, frozen=True, tag="host-is"):
    """The first message to every supervisor; `failed` are libraries that could not be imported, and why."""

    pid: int
    libraries: tuple[str, ...]
    failed: dict[str, str]
    replicas: dict[int, int]
    """The version of each replica, by its number."""


class Gone(Said, frozen=True, tag="gone"):
    """A replica has ended; `error` is what it raised before it was ready, with its traceback."""

    replica: int
    reason: str
    error: str = ""


class Using(Said, frozen=True, tag="using"):
    """How much memory replicas use, in bytes, by their numbers; once a second."""

    memory: dict[int, int]


ToHost = Fork | End | EndHost
FromHost = HostIs | Gone | Using
