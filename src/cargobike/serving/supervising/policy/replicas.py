"""Which replicas to start and to end, so that there are as many of each version as are wanted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from cargobike.serving.facts import ReplicaEnded, ReplicaStarted
from cargobike.serving.specification import Limits
from cargobike.serving.supervising.policy.events import (
    Command,
    DrainReplica,
    EndReplica,
    Record,
    StartReplica,
)

State = Literal["starting", "ready", "draining", "ending"]

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 30.0
LONGEST_PAUSE_OF_READY_S: Final = 1.0
"""The longest pause after replicas that died while they served: requests wait for the next."""
PROVEN_S: Final = 10.0
"""A replica that was ready for so long did not die of being started."""
COME_BACK_S: Final = 10.0
"""How long replicas may take to connect to a new front."""
DRAIN_S: Final = 60.0
"""How long a replica may take for the requests that it has; beyond what one batch may take."""
ROUTED_S: Final = 5.0
"""How long after requests went to a version last a replica of it, of which we have not heard, may have one."""
HOPELESS: Final = 5
"""After so many deaths in a row, none of them ready before, requests are refused and not kept waiting."""


@dataclass(slots=True)
class Replica:
    """One replica, as the supervisor sees it."""

    number: int
    version: int
    since: float
    state: State = "starting"
    was_ready: bool = False
    is_retiring: bool = False
    deadline_s: float = 0.0
    memory_bytes: int = 0


@dataclass(slots=True)
class Deaths:
    """How often replicas of a version have died in a row, and when the next may start."""

    count: int = 0
    unready: int = 0
    next_at: float = 0.0
    last_error: str = ""


def pause_after(deaths: int, longest_s: float = LONGEST_PAUSE_S) -> float:
    """Return how long to wait after so many deaths in a row: not at all after the first, then twice as long each time.

    Example:
        >>> [pause_after(deaths) for deaths in (1, 2, 3, 4, 100)]
        [0.0, 0.1, 0.2, 0.4, 30.0]
    """
    return 0.0 if deaths <= 1 else min(longest_s, FIRST_PAUSE_S * 2.0 ** min(deaths - 2, 30))


@dataclass
class Fleet:
    """The replicas of a deployment.

    Guarantees: a replica that is ready is drained before it is ended, unless the front gave it up or it broke a limit;
    one that is to be replaced (it has grown too large) is drained only when as many others are ready as are wanted. A
    version whose replicas keep dying is started again after pauses that double.
    """

    limits: Limits
    last_number: int = 0
    replicas: dict[int, Replica] = field(default_factory=dict)
    deaths: dict[int, Deaths] = field(default_factory=dict)
    routed_at: dict[int, float] = field(default_factory=dict)

    def adopt(self, at: float, found: Mapping[int, int]) -> None:
        """Take over replicas that run already; they count once they are connected."""
        for number, version in found.items():
            self.replicas[number] = Replica(number, version, at, deadline_s=COME_BACK_S)
            self.last_number = max(self.last_number, number)

    def ready(self, version: int) -> int:
        """Return how many replicas of a version take requests."""
        return sum(each.version == version and each.state == "ready" for each in self.replicas.values())

    def starting(self, version: int) -> int:
        """Return how many replicas of a version are on their way."""
        return sum(each.version == version and each.state == "starting" for each in self.replicas.values())

    def forget_deaths(self, version: int) -> None:
        """Give a version that is asked for anew all its attempts."""
        self.deaths.pop(version, None)

    def is_hopeless(self, version: int) -> bool:
        """Tell whether replicas of a version keep dying before they are ready."""
        deaths = self.deaths.get(version)
        return deaths is not None and deaths.unready >= HOPELESS and not self.ready(version)

    def up(self, at: float, number: int, version: int) -> list[Command]:
        """A replica is connected to the front; one that is not ours, or was to go, goes."""
        replica = self.replicas.get(number)
        if replica is None or replica.version != version:
            return [DrainReplica(number), EndReplica(number, kill=True)]
        if replica.state == "draining":  # by a front that is gone; the next one does not know
            return [DrainReplica(number)]
        if replica.state == "starting":
            replica.state, replica.since, replica.was_ready = "ready", at, True
            self.deaths.setdefault(version, Deaths()).unready = 0
        return []

    def front_is_gone(self, at: float, come_back_s: float = 0.0) -> None:
        """Count no replica as ready: they are connected to no front."""
        for replica in self.replicas.values():
            if replica.was_ready and replica.state != "ending":
                replica.state = "starting" if replica.state == "ready" else replica.state
                replica.since, replica.deadline_s = at, come_back_s

    def front_is_new(self, at: float, replicas: Mapping[int, int]) -> list[Command]:
        """Expect replicas to connect to a new front; those that it knows are connected already."""
        commands: list[Command] = []
        self.front_is_gone(at, COME_BACK_S)
        for number, version in replicas.items():
            commands += self.up(at, number, version)
        return commands

    def down(self, at: float, number: int, reason: str, error: str = "") -> tuple[Replica | None, list[Command]]:
        """The process of a replica has ended; returns the replica if that was not wanted."""
        replica = self.replicas.pop(number, None)
        if replica is None:
            return None, []
        was_wanted = replica.state in {"draining", "ending"} or replica.is_retiring
        why = error.strip().splitlines()[-1] if error.strip() else reason
        fact = ReplicaEnded(at=at, replica=number, model_version=replica.version, reason=why, wanted=was_wanted)
        if was_wanted:
            return None, [Record(fact)]
        deaths = self.deaths.setdefault(replica.version, Deaths())
        proven = replica.was_ready and at - replica.since >= PROVEN_S
        deaths.count = 1 if proven else deaths.count + 1
        deaths.unready = 0 if replica.was_ready else deaths.unready + 1
        deaths.last_error = error or reason
        # What dies while it serves is asked for now; what dies before that may never be able to serve.
        of_ready = pause_after(deaths.count, LONGEST_PAUSE_OF_READY_S)
        deaths.next_at = at + (of_ready if replica.was_ready else max(of_ready, pause_after(deaths.unready)))
        return replica, [Record(fact)]

    def lost(self, at: float, number: int, why: str) -> list[Command]:
        """The front has given a replica up: nothing is to be hoped from it."""
        replica = self.replicas.get(number)
        if replica is None:
            return [EndReplica(number, kill=True)]
        if why == "closed" and replica.state != "draining":
            # Most likely it has died, and its end is about to be reported; else it has a moment to connect again.
            if replica.state == "ready":
                replica.state, replica.since, replica.deadline_s = "starting", at, COME_BACK_S
            return []
        return [EndReplica(number, kill=True)]

    def drained(self, at: float, number: int) -> list[Command]:
        """A replica has no requests any more."""
        replica = self.replicas.get(number)
        if replica is None or replica.state != "draining":
            return []
        replica.state, replica.since = "ending", at
        return [EndReplica(number)]

    def grew(self, number: int, memory_bytes: int) -> None:
        """Retire a replica that uses more memory than it may."""
        replica = self.replicas.get(number)
        if replica is not None:
            replica.memory_bytes = memory_bytes
            if self.limits.memory_bytes and memory_bytes > self.limits.memory_bytes:
                replica.is_retiring = True

    def overdue(self, at: float) -> list[Command]:
        """End what has taken too long to load, to connect again, or to drain."""
        commands: list[Command] = []
        for replica in self.replicas.values():
            limit_s = replica.deadline_s or self.limits.load_s
            if replica.state == "draining":
                limit_s = DRAIN_S + self.limits.predict_s
            elif replica.state in {"ready", "ending"}:
                continue
            if at - replica.since >= limit_s:
                replica.state, replica.since = ("ending" if replica.state == "draining" else replica.state), at
                commands.append(EndReplica(replica.number, kill=True))
        return commands

    def settle(self, at: float, wanted: Mapping[int, int], routed: Collection[int]) -> list[Command]:
        """Start what is missing, and end what is too much.

        Args:
            at: The time.
            wanted: How many replicas of each version there are to be.
            routed: Versions that requests go to: a replica of these may have a request before we know that it is ready.
        """
        commands: list[Command] = []
        self.routed_at.update(dict.fromkeys(routed, at))
        versions = {*wanted, *(replica.version for replica in self.replicas.values())}
        for version in sorted(versions):
            is_routed = at - self.routed_at.get(version, -math.inf) < ROUTED_S
            commands += self._settle_version(at, version, wanted.get(version, 0), is_routed=is_routed)
        return commands

    def _settle_version(self, at: float, version: int, wanted: int, *, is_routed: bool) -> list[Command]:
        commands: list[Command] = []
        ours = [each for each in self.replicas.values() if each.version == version]
        lasting = [each for each in ours if each.state in {"starting", "ready"} and not each.is_retiring]
        deaths = self.deaths.setdefault(version, Deaths())
        if wanted > len(lasting) and at >= deaths.next_at:
            # One at a time while they die, so that a model that cannot be started is not tried in a crowd.
            missing = (
                wanted - len(lasting) if deaths.count < 2 else int(not any(e.state == "starting" for e in lasting))
            )
            for _ in range(missing):
                self.last_number += 1
                self.replicas[self.last_number] = Replica(self.last_number, version, at)
                commands.append(Record(ReplicaStarted(at=at, replica=self.last_number, model_version=version)))
                commands.append(StartReplica(self.last_number, version))
        surplus = len(lasting) - wanted
        for replica in sorted(lasting, key=lambda each: (each.state == "ready", -each.number))[: max(0, surplus)]:
            if replica.state == "ready" or not is_routed:
                commands += self._let_go(at, replica)
        ready = sum(each.state == "ready" for each in lasting)
        for replica in ours:
            if replica.is_retiring and replica.state == "ready" and ready >= min(wanted, 1):
                commands += self._let_go(at, replica)
        return commands

    @staticmethod
    def _let_go(at: float, replica: Replica) -> list[Command]:
        if replica.state == "ready":
            replica.state, replica.since = "draining", at
            return [DrainReplica(replica.number)]
        replica.state, replica.since = "ending", at
        return [EndReplica(replica.number, kill=True)]

    def next_due(self, at: float, wanted: Mapping[int, int]) -> list[float]:
        """Return when pauses end after which something is started."""
        return [
            deaths.next_at
            for version, deaths in self.deaths.items()
            if deaths.next_at > at and wanted.get(version, 0) > self.ready(version) + self.starting(version)
        ]

    def copy_of(self, number: int) -> Replica | None:
        """Return what is known of a replica, for people."""
        replica = self.replicas.get(number)
        return None if replica is None else dataclasses.replace(replica)
