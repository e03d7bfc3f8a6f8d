"""A deployment without processes: a front, hosts and replicas in virtual time, for the supervisor's policy to lead.

It carries out commands as the real ones do, after delays of its own, and notes every command that would lose a request.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cargobike.serving.facts import AnyServingFact, Plan, ReleaseEnded, Share
from cargobike.serving.record import DeploymentRecord
from cargobike.serving.specification import Limits, Scaling, Specification
from cargobike.serving.supervising.policy import events
from cargobike.serving.supervising.policy.supervisor import Supervisor
from cargobike.serving.wire import Load, VersionLoad


@dataclass
class Running:
    """A replica that runs."""

    number: int
    version: int
    is_loaded: bool = False
    is_connected: bool = False
    is_drained: bool = False
    is_draining: bool = False


@dataclass
class World:
    """Everything around a supervisor."""

    least: int = 1
    most: int = 1
    load_s: float = 1.0
    limits: Limits = field(default_factory=Limits)
    scaling: Scaling | None = None
    record: DeploymentRecord | None = None

    def __post_init__(self) -> None:
        scaling = self.scaling or Scaling(least=self.least, most=self.most)
        specification = Specification(name="m", model="m", version=1, scaling=scaling, limits=self.limits)
        record = self.record or DeploymentRecord(specification, least=scaling.least, most=scaling.most)
        self.now = 1000.0
        self.policy = Supervisor(record, self.now)
        self.facts: list[AnyServingFact] = []
        self.running: dict[int, Running] = {}
        self.routes: tuple[Share, ...] = ()
        self.shadow = 0
        self.by = ""
        self.expected: events.Expect | None = None
        self.front_is_up = False
        self.told: dict[int, tuple[str, Any]] = {}
        self.finished: events.Finish | None = None
        self.lost: list[str] = []
        self.broken: dict[int, str] = {}
        """Versions that cannot be loaded, and what they raise; nothing for those that crash."""
        self.ended_fronts = 0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._routed_at: dict[int, float] = {}
        self._order = itertools.count()
        self._asks = itertools.count(1)

    # --- what a test does -----------------------------------------------------------------------------------------

    def begin(self, version: int = 1, found: dict[int, int] | None = None) -> None:
        """Start the supervisor; with a version, the first one is brought in."""
        for number, each in (found or {}).items():
            self.running[number] = Running(number, each, is_loaded=True)
        self.hear(events.Began(at=self.now, found=found or {}))
        if version:
            self.hear(events.RollAsked(at=self.now, version=version))

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with what is due in it, and ticks."""
        end = self.now + seconds
        while self.finished is None:
            tick = self.now + 0.25
            due = self._due[0][0] if self._due else tick
            step = min(due, tick, *(max(self.now + 1e-6, each) for each in self.policy.next_due(self.now)), end)
            self.now = step
            while self._due and self._due[0][0] <= self.now:
                heapq.heappop(self._due)[2]()
            self.hear(events.Ticked(at=self.now))
            if step >= end:
                return

    def hear(self, event: events.Event) -> None:
        """Have the supervisor hear something, and do what it says."""
        for command in self.policy.handle(event):
            self._do(command)

    def roll(self, version: int, plan: Plan | None = None) -> int:
        """Ask for a version; returns the number of the question."""
        ask = next(self._asks)
        self.hear(events.RollAsked(at=self.now, ask=ask, version=version, plan=plan or Plan()))
        return ask

    def ask(self, kind: Callable[..., events.Asked], **fields: Any) -> int:
        """Ask for something else."""
        ask = next(self._asks)
        self.hear(kind(at=self.now, ask=ask, **fields))
        return ask

    def load(self, **fields: Any) -> None:
        """Have the front say how busy it is."""
        values = {"at_s": self.now, "arrived": 0, "waiting": 0, "at_work": 0, "longest_wait_s": 0.0, **fields}
        self.hear(events.LoadSeen(at=self.now, load=Load(**values)))

    def traffic(self, seconds: float, **versions: VersionLoad) -> None:
        """Have the front say four times a second what happened at versions: `v1=…, v2=…`."""
        loads = {int(name[1:]): load for name, load in versions.items()}
        for _ in range(int(seconds * 4)):
            self.pass_time(0.25)
            self.load(arrived=1, versions=loads)

    def kill(self, number: int) -> None:
        """Kill a replica; its requests go to others, and the front and the host say so."""
        replica = self.running.pop(number, None)
        if replica is None:
            return
        if replica.is_connected and self.front_is_up:
            self.hear(events.ReplicaLost(at=self.now, replica=number, why="closed"))
        self.hear(events.ReplicaDown(at=self.now, replica=number, reason="was ended by SIGKILL"))

    def is_routed(self, *shares: Share, shadow: int = 0, by: str = "") -> bool:
        """Tell whether requests go to exactly these versions."""
        return (self.routes, self.shadow, self.by) == (shares, shadow, by)

    def kill_front(self) -> None:
        """Kill the front: replicas look for the next one."""
        self.front_is_up = False
        self.ended_fronts += 1
        for replica in self.running.values():
            replica.is_connected = replica.is_draining = replica.is_drained = False
        self.hear(events.FrontDown(at=self.now, reason="was ended by SIGKILL"))

    def ready(self, version: int) -> int:
        """Return how many replicas of a version take requests."""
        return sum(
            each.version == version and each.is_connected and not each.is_draining for each in self.running.values()
        )

    def outcomes(self) -> list[tuple[int, str]]:
        """Return how releases ended."""
        return [(fact.model_version, fact.outcome) for fact in self.facts if isinstance(fact, ReleaseEnded)]

    # --- what the real ones do ------------------------------------------------------------------------------------

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now + seconds, next(self._order), act))

    def _do(self, command: events.Command) -> None:
        match command:
            case events.Record():
                self.facts.append(command.fact)
            case events.StartFront():
                self._later(0.5, self._front_up)
            case events.EndFront():
                self._later(0.0 if command.kill else 0.3, self._front_leaves)
            case events.Route():
                for share in command.routes:
                    known = {route.version for route in self.routes}
                    if share.version not in known and known and not self.ready(share.version):
                        self.lost.append(f"routed to version {share.version}, which no replica has ready")
                for version in {*(route.version for route in self.routes), self.shadow}:
                    self._routed_at[version] = self.now
                self.routes, self.shadow, self.by = command.routes, command.shadow, command.by
            case events.Expect():
                self.expected = command
            case events.StartReplica():
                self.running[command.replica] = Running(command.replica, command.version)
                self._later(self.load_s, lambda: self._loaded(command.replica))
            case events.DrainReplica():
                self._drain(command.replica)
            case events.EndReplica():
                self._end(command)
            case events.Tell():
                self.told[command.ask] = (command.error, command.body)
            case events.Finish():
                self.finished = command

    def _front_up(self) -> None:
        self.front_is_up = True
        self.hear(events.FrontUp(at=self.now, replicas={}))
        for replica in list(self.running.values()):
            if not replica.is_loaded:
                continue
            self._later(0.05, lambda number=replica.number: self._connected(number))  # type: ignore[misc]

    def _front_leaves(self) -> None:
        if self.front_is_up:
            self.front_is_up = False
            self.hear(events.FrontDown(at=self.now, reason="exited with code 0"))

    def _loaded(self, number: int) -> None:
        replica = self.running.get(number)
        if replica is None:
            return
        if replica.version in self.broken:
            del self.running[number]
            error = self.broken[replica.version]
            self.hear(events.ReplicaDown(at=self.now, replica=number, reason="exited with code 1", error=error))
        else:
            replica.is_loaded = True
            self._connected(number)

    def _connected(self, number: int) -> None:
        replica = self.running.get(number)
        if replica is None or not self.front_is_up or replica.is_connected:
            return
        replica.is_connected = True
        # It may have requests before the supervisor hears of it.
        self._later(0.03, lambda: self._said_up(number))

    def _said_up(self, number: int) -> None:
        replica = self.running.get(number)
        if replica is not None and replica.is_connected and self.front_is_up:
            self.hear(events.ReplicaUp(at=self.now, replica=number, version=replica.version))

    def _drain(self, number: int) -> None:
        replica = self.running.get(number)
        if replica is None or not self.front_is_up or not replica.is_connected:
            return
        replica.is_draining = True
        self._later(0.1, lambda: self._drained(number))

    def _drained(self, number: int) -> None:
        replica = self.running.get(number)
        if replica is not None and replica.is_draining and self.front_is_up:
            replica.is_drained = True
            self.hear(events.ReplicaDrained(at=self.now, replica=number))

    def _end(self, command: events.EndReplica) -> None:
        replica = self.running.pop(command.replica, None)
        if replica is None:
            return
        has_requests = replica.is_connected and not replica.is_drained and self.front_is_up
        is_routed = replica.version in {*(route.version for route in self.routes), self.shadow}
        if has_requests and (is_routed or self.now - self._routed_at.get(replica.version, 0.0) < 0.5):
            self.lost.append(f"replica {command.replica} of version {replica.version} was ended with requests")
        reason = "was ended by SIGTERM"
        self._later(0.02, lambda: self.hear(events.ReplicaDown(at=self.now, replica=command.replica, reason=reason)))
