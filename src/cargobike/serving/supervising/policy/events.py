"""What a supervisor hears (events), and what it wants done (commands).

Time arrives in `at`, in seconds of any clock that never runs backwards. Commands are carried out in their order.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cargobike.serving.facts import AnyServingFact, Plan, Share
from cargobike.serving.wire import Load


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all events."""

    at: float


class Began(Event, frozen=True):
    """The supervisor is there; `found` are replicas that run already, with their versions."""

    found: dict[int, int] = {}


class Ticked(Event, frozen=True):
    """Time has passed."""


class FrontUp(Event, frozen=True):
    """A front answers; it knows these replicas."""

    replicas: dict[int, int] = {}


class FrontDown(Event, frozen=True):
    """The front has ended."""

    reason: str


class ReplicaUp(Event, frozen=True):
    """A replica is loaded, warm, and connected to the front."""

    replica: int
    version: int


class ReplicaDown(Event, frozen=True):
    """The process of a replica has ended; `error` is what loading its model raised, if that was the end of it."""

    replica: int
    reason: str
    error: str = ""


class ReplicaLost(Event, frozen=True):
    """The front has given a replica up: its connection was closed, it hung, or it said what makes no sense."""

    replica: int
    why: str


class ReplicaDrained(Event, frozen=True):
    """A replica has no request any more, and gets none."""

    replica: int


class ReplicaGrew(Event, frozen=True):
    """A replica uses so much memory."""

    replica: int
    memory_bytes: int


class LoadSeen(Event, frozen=True):
    """How busy it is."""

    load: Load


class Asked(Event, frozen=True, kw_only=True):
    """A user wants something; `ask` is what the answer is told by, 0 if there is no one to tell."""

    ask: int = 0


class RollAsked(Asked, frozen=True, kw_only=True):
    """Bring in a version; `step` names the step of a pipeline that asks."""

    version: int
    plan: Plan = Plan()
    step: str = ""


class PromoteAsked(Asked, frozen=True, kw_only=True):
    """Give all requests to the version that is watched."""


class RollbackAsked(Asked, frozen=True, kw_only=True):
    """Take back what is being brought in, or go back to the version before."""

    reason: str = ""
    step: str = ""


class ScaleAsked(Asked, frozen=True, kw_only=True):
    """Other bounds for the number of replicas."""

    least: int
    most: int


class StopAsked(Asked, frozen=True, kw_only=True):
    """Answer what is there, and end."""

    reason: str = ""


class Command(msgspec.Struct, frozen=True):
    """Base of all commands."""


class Record(Command, frozen=True):
    """Write a fact down, before what follows."""

    fact: AnyServingFact


class StartFront(Command, frozen=True):
    """Start the process that answers requests."""


class EndFront(Command, frozen=True):
    """Have the front answer what is there, and end; `kill` ends it at once."""

    within_s: float = 30.0
    kill: bool = False


class Route(Command, frozen=True):
    """Tell the front where requests go."""

    routes: tuple[Share, ...]
    shadow: int = 0
    by: str = ""


class Expect(Command, frozen=True):
    """Tell the front how many replicas are coming; `refuse` if none will."""

    starting: int
    refuse: bool = False


class StartReplica(Command, frozen=True):
    """Start a replica."""

    replica: int
    version: int


class DrainReplica(Command, frozen=True):
    """Have the front give it no more requests."""

    replica: int


class EndReplica(Command, frozen=True):
    """End a replica; `kill` leaves it no time."""

    replica: int
    kill: bool = False


class Tell(Command, frozen=True):
    """Answer a user; `error` is empty if it was done."""

    ask: int
    error: str = ""
    body: Any = None


class Finish(Command, frozen=True):
    """End the supervisor: nothing is left to do; `error` says why if that was not wanted."""

    error: str = ""
