"""This process as one member of a gang: what it knows of itself, and how it talks to the others.

There is one answer to "which rank am I". Inside a trial it is what the driver said: the trial's context enters itself
here. Outside of any it is what a launcher such as `torchrun` wrote into the environment, and rank 0 of 1 otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

from cargobike.core.errors import InvalidInputError, WaitError

LOOPBACK: Final = "127.0.0.1"

Of = Literal["all", "workers", "servers"]
"""Whose values a member waits for."""


class Role(StrEnum):
    """What a worker is for; TensorFlow has names of its own for members that train."""

    WORKER = "worker"
    SERVER = "server"


class Gang(Protocol):
    """The members that run one trial together, as one of them sees it.

    Each name is published at most once by a member in one attempt. May be used from any thread.
    """

    address: str
    """The IP address of this host that other members can reach: what a listening socket of a member binds to."""

    def publish(self, name: str, value: bytes) -> None:
        """Tell the others something, without waiting for them."""

    def gather(self, name: str, *, of: Of = "all", timeout_s: float | None = None) -> list[bytes]:
        """Wait until all of them have published a name; returns what they said, in the order of ranks.

        Args:
            name: What to wait for.
            of: Whose values: of `"workers"`, of `"servers"`, or of workers and then servers.
            timeout_s: How long; the experiment's `stall_timeout_s` by default.

        Raises:
            WaitError: If a member is missing; the message says which.
            TrialStopped: If the trial is to end.
        """

    def exchange(self, name: str, value: bytes, *, of: Of = "all", timeout_s: float | None = None) -> list[bytes]:
        """Publish and gather; what was said can be forgotten when all have it."""

    def barrier(self, name: str = "barrier", *, timeout_s: float | None = None) -> None:
        """Wait until all workers are here; may be repeated."""

    def numbered(self, name: str) -> str:
        """Return a name for the next of several exchanges; the same in all members that make the same ones."""


class Alone:
    """A gang of one: outside any experiment, or in a trial that runs on one worker."""

    address = LOOPBACK

    def __init__(self) -> None:
        self._published: dict[str, bytes] = {}

    def publish(self, name: str, value: bytes) -> None:
        """Keep it."""
        self._published[name] = value

    def gather(self, name: str, *, of: Of = "all", timeout_s: float | None = None) -> list[bytes]:
        """Return what was published, or nothing if servers are asked for."""
        if of == "servers":
            return []
        if name not in self._published:
            raise WaitError(f"nobody has published {name!r}, and there is nobody else to wait for")
        return [self._published[name]]

    def exchange(self, name: str, value: bytes, *, of: Of = "all", timeout_s: float | None = None) -> list[bytes]:
        """Return it."""
        return [] if of == "servers" else [value]

    def barrier(self, name: str = "barrier", *, timeout_s: float | None = None) -> None:
        """Go on."""

    def numbered(self, name: str) -> str:
        """Return it: there is nobody to mistake one for another."""
        return name


class Member(Protocol):
    """One process of a gang. A trial's context is one; so is a process that a launcher has started.

    Attributes:
        role: What it does: a `Role`, or what TensorFlow calls it.
        rank: Which of those with the same role it is.
        world_size: How many train; parameter servers are not counted.
        local_rank: Which of those that train on this host it is.
        num_servers: How many parameter servers there are.
        device_index: Which of the visible GPUs is this rank's own, `None` if that was not said.
        options: What the experiment was told about how to train together, the same in every member.
        secret: Known to the members of this attempt only.
        meeting: What tells this gang from an earlier one in the same process.
        meeting_place: Where the ranks of torch meet, as `address:port`; empty for one that is alone.
    """

    @property
    def role(self) -> str: ...  # noqa: D102 - described above
    @property
    def rank(self) -> int: ...  # noqa: D102
    @property
    def world_size(self) -> int: ...  # noqa: D102
    @property
    def local_rank(self) -> int: ...  # noqa: D102
    @property
    def num_servers(self) -> int: ...  # noqa: D102
    @property
    def device_index(self) -> int | None: ...  # noqa: D102
    @property
    def options(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def secret(self) -> bytes: ...  # noqa: D102
    @property
    def meeting(self) -> str: ...  # noqa: D102
    @property
    def meeting_place(self) -> str: ...  # noqa: D102

    @property
    def gang(self) -> Gang | None:
        """How to talk to the others; `None` if only the framework that they train with can."""

    @property
    def checkpoints_root(self) -> Path:
        """Where its checkpoints are: the trial's, or those of a parameter server's share."""

    @property
    def should_stop(self) -> bool:
        """Whether it was asked to end."""


class Launched:
    """A process outside any trial: one rank of several that a launcher has started, or rank 0 of 1."""

    role = Role.WORKER
    num_servers = 0
    device_index: int | None = None
    options: Mapping[str, Any] = MappingProxyType({})
    secret = b""
    checkpoints_root = Path("checkpoints")
    should_stop = False

    def __init__(
        self, rank: int = 0, world_size: int = 1, local_rank: int = 0, meeting: str = "", meeting_place: str = ""
    ) -> None:
        self.rank = rank
        self.world_size = world_size
        self.local_rank = local_rank
        self.meeting = meeting
        self.meeting_place = meeting_place
        self.gang: Gang | None = Alone() if world_size == 1 else None


def read_environment(variables: Mapping[str, str]) -> Launched:
    """Read from the variables of `torchrun` which rank this is.

    Raises:
        InvalidInputError: If some of the variables are missing, or no whole numbers, or contradict each other.

    Example:
        >>> read_environment({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}).rank
        1
    """
    if "WORLD_SIZE" not in variables and "RANK" not in variables:
        return Launched()
    mistakes = []
    numbers = {"LOCAL_RANK": 0}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        if name not in variables:
            if name != "LOCAL_RANK":
                mistakes.append(f"{name} is not set")
            continue
        try:
            numbers[name] = int(variables[name])
        except ValueError:
            mistakes.append(f"{name} must be a whole number, not {variables[name]!r}")
    if not mistakes and not 0 <= numbers["RANK"] < numbers["WORLD_SIZE"]:
        mistakes.append(f"RANK {numbers['RANK']} is not below WORLD_SIZE {numbers['WORLD_SIZE']}")
    if not mistakes and numbers["WORLD_SIZE"] > 1:
        mistakes += [f"{name} is not set" for name in ("MASTER_ADDR", "MASTER_PORT") if name not in variables]
    if mistakes:
        raise InvalidInputError(
            "This process cannot find its gang: the variables that torchrun sets are incomplete.", mistakes
        )
    names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    meeting = " ".join(variables.get(name, "-") for name in names)
    meeting_place = ":".join(variables.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT"))
    return Launched(numbers["RANK"], numbers["WORLD_SIZE"], numbers["LOCAL_RANK"], meeting, meeting_place)


_current: Member | None = None
_find: Callable[[], Member] | None = None


def current() -> Member:
    """Return what this process is: the member that entered, or what the environment says outside any trial."""
    if _current is not None:
        return _current
    return read_environment(os.environ) if _find is None else _find()


def is_inside() -> bool:
    """Tell whether this process works on a trial."""
    return _current is not None or _find is not None


def enter(member: Member | None) -> None:
    """Make a member current; `None` to leave it."""
    global _current, _find
    _current, _find = member, None


def enter_later(find: Callable[[], Member]) -> None:
    """Have a member be current that is made when it is first asked for."""
    global _current, _find
    _current, _find = None, find
