"""The whole of what a supervisor decides: releases, scaling and replicas, put together."""

from __future__ import annotations

from typing import Final

import msgspec

from cargobike.serving.facts import (
    DeploymentStopped,
    FrontEnded,
    Routed,
    Scaled,
    Share,
)
from cargobike.serving.record import DeploymentRecord
from cargobike.serving.supervising.policy.events import (
    Asked,
    Began,
    Command,
    EndFront,
    EndReplica,
    Event,
    Expect,
    Finish,
    FrontDown,
    FrontUp,
    LoadSeen,
    PromoteAsked,
    Record,
    ReplicaDown,
    ReplicaDrained,
    ReplicaGrew,
    ReplicaLost,
    ReplicaUp,
    RollAsked,
    RollbackAsked,
    Route,
    ScaleAsked,
    StartFront,
    StopAsked,
    Tell,
)
from cargobike.serving.supervising.policy.release import Release, versions_of
from cargobike.serving.supervising.policy.replicas import PROVEN_S, Fleet, pause_after
from cargobike.serving.supervising.policy.scaling import Scaler

END_S: Final = 10.0
"""How long processes may take to end after that."""


class Supervisor:
    """Decides what is to be done about one deployment.

    Guarantees: every decision is a fact, recorded before what follows from it is done. Requests are never routed to a
    version without a replica that was ready, except where there is no other. After `StopAsked` nothing is started, and
    `Finish` comes when every process has ended, or was given up: `END_S` after requests had the time that they have.

    Args:
        record: What the journal says.
    """

    def __init__(self, record: DeploymentRecord, at: float) -> None:
        specification = record.specification
        scaling = msgspec.structs.replace(specification.scaling, least=record.least, most=record.most)
        self.fleet = Fleet(specification.limits, record.last_replica)
        self.release = Release(
            current=record.current,
            previous=record.previous,
            candidate=record.candidate,
            plan=record.plan,
        )
        self.scaler = Scaler(scaling, at)
        self._stop_s = specification.limits.stop_s
        self.front_is_up = False
        self._front_deaths = 0
        self._front_since = at
        self._front_next_at: float | None = None
        self._routed: tuple[tuple[Share, ...], int, str] | None = None
        self._expected: Expect | None = None
        self._stopping_at: float | None = None
        self._stop_asks: list[int] = []
        self._reason = ""
        self._is_finished = False
        self._error = ""

    @property
    def is_stopping(self) -> bool:
        """Whether it was asked to end."""
        return self._stopping_at is not None

    @property
    def wanted(self) -> dict[int, int]:
        """How many replicas of each version there are to be."""
        return self.release.wanted(self.scaler.replicas)

    def handle(self, event: Event) -> list[Command]:
        """Take in what happened, and return what is to be done."""
        if self._is_finished:
            return []
        commands = self._heard(event)
        if self._stopping_at is not None:
            return [*commands, *self._stop(event.at)]
        return [*commands, *self._settle(event.at)]

    def next_due(self, at: float) -> list[float]:
        """Return when something is due although nothing happens."""
        if self._stopping_at is not None:
            return []
        front = [] if self._front_next_at is None else [self._front_next_at]
        return [*self.fleet.next_due(at, self.wanted), *front]

    def _heard(self, event: Event) -> list[Command]:
        at = event.at
        match event:
            case Began():
                self.fleet.adopt(at, event.found)
                self.release.go_on(at)
                return [StartFront()] if not self.front_is_up else []
            case FrontUp():
                self.front_is_up, self._front_since, self._front_next_at = True, at, None
                self._routed = self._expected = None  # a front that was just started knows nothing
                return self.fleet.front_is_new(at, event.replicas)
            case FrontDown():
                return self._front_down(at, event.reason)
            case ReplicaUp():
                return self.fleet.up(at, event.replica, event.version)
            case ReplicaDown():
                replica, commands = self.fleet.down(at, event.replica, event.reason, event.error)
                if replica is not None and self._stopping_at is None:
                    commands += self.release.died(at, replica.version, event.reason, event.error)
                return commands
            case ReplicaLost():
                return self.fleet.lost(at, event.replica, event.why)
            case ReplicaDrained():
                return self.fleet.drained(at, event.replica)
            case ReplicaGrew():
                self.fleet.grew(event.replica, event.memory_bytes)
            case LoadSeen():
                before = self.scaler.replicas
                self.scaler.see(at, event.load)
                return [*self._scaled(at, before), *self.release.see(at, event.load.versions)]
            case Asked():
                return self._asked(event)
        return []

    def _asked(self, event: Asked) -> list[Command]:
        at = event.at
        if self._stopping_at is not None and not isinstance(event, StopAsked):
            return [Tell(event.ask, "the deployment is being stopped")]
        match event:
            case RollAsked():
                if event.version not in self.wanted:
                    self.fleet.forget_deaths(event.version)
                return self.release.begin(at, event.version, event.plan, event.ask, event.step)
            case PromoteAsked():
                return self.release.promote(at, event.ask)
            case RollbackAsked():
                return self.release.rollback(at, event.ask, event.reason, event.step)
            case ScaleAsked():
                self.scaler.bound(at, event.least, event.most)
                fact = Scaled(
                    at=at, replicas=self.scaler.replicas, least=event.least, most=event.most, reason="a user asked"
                )
                return [Record(fact), Tell(event.ask, body={"least": event.least, "most": event.most})]
            case StopAsked():
                self._stop_asks.append(event.ask)
                self._reason = self._reason or event.reason
                if self._stopping_at is None:
                    self._stopping_at = at
                    return [EndFront(self._stop_s)] if self.front_is_up else []
        return []

    def _front_down(self, at: float, reason: str) -> list[Command]:
        was_up, self.front_is_up = self.front_is_up, False
        if self._stopping_at is not None:
            return []
        self.fleet.front_is_gone(at)
        self._front_deaths = 1 if was_up and at - self._front_since >= PROVEN_S else self._front_deaths + 1
        self._front_next_at = at + pause_after(self._front_deaths)
        return [Record(FrontEnded(at=at, reason=reason))]

    def _scaled(self, at: float, before: int) -> list[Command]:
        scaler = self.scaler
        if scaler.replicas == before:
            return []
        why = "more is asked for" if scaler.replicas > before else "less is asked for"
        fact = Scaled(at=at, replicas=scaler.replicas, least=scaler.scaling.least, most=scaler.scaling.most, reason=why)
        return [Record(fact)]

    def _settle(self, at: float) -> list[Command]:
        commands: list[Command] = []
        if self._front_next_at is not None and at >= self._front_next_at:
            self._front_next_at = None
            commands.append(StartFront())
        before = self.scaler.replicas
        self.scaler.decide(at)
        commands += self._scaled(at, before)
        commands += self.fleet.overdue(at)
        ready = {version: self.fleet.ready(version) for version in self.wanted}
        commands += self.release.look(at, ready, self.scaler.replicas)
        if not self.release.current and not self.release.candidate and self.release.last_error:
            self._stopping_at, self._error = at, self.release.last_error
            self._reason = "its first version could not be started"
            return [*commands, EndFront(kill=True), *self._stop(at)]
        routes = self.release.routes()
        if routes != self._routed and self.front_is_up and routes[0]:
            self._routed = routes
            commands += [Record(Routed(at=at, routes=routes[0], shadow=routes[1], by=routes[2])), Route(*routes)]
        commands += self.fleet.settle(at, self.wanted, versions_of(routes[0], routes[1]))
        return [*commands, *self._expect()]

    def _expect(self) -> list[Command]:
        if not self.front_is_up:
            return []
        versions = self.wanted
        starting = sum(self.fleet.starting(version) for version in versions)
        if self.scaler.replicas == 0 and not starting:
            starting = 1  # one will be started for the first request
        missing = sum(max(0, count - self.fleet.ready(version)) for version, count in versions.items())
        refuse = bool(self.release.current) and self.fleet.is_hopeless(self.release.current)
        expect = Expect(0 if refuse else max(starting, missing), refuse)
        if expect == self._expected:
            return []
        self._expected = expect
        return [expect]

    def _stop(self, at: float) -> list[Command]:
        assert self._stopping_at is not None
        commands: list[Command] = []
        late_s = at - self._stopping_at
        if self.front_is_up:
            return [EndFront(kill=True)] if late_s >= self._stop_s + 1.0 else []
        for replica in self.fleet.replicas.values():
            if replica.state != "ending":
                replica.state, replica.since = "ending", at
                commands.append(EndReplica(replica.number))
            elif at - replica.since >= END_S / 2:
                replica.since = at
                commands.append(EndReplica(replica.number, kill=True))
        if self.fleet.replicas and late_s < self._stop_s + END_S:
            return commands
        self._is_finished = True
        commands.append(Record(DeploymentStopped(at=at, reason=self._reason)))
        commands += [Tell(ask) for ask in self._stop_asks]
        return [*commands, Finish(self._error)]
