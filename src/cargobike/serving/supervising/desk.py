"""Where users are answered: handles and commands over the supervisor's socket, administrators through the front."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from cargobike.serving import wire
from cargobike.serving.facts import Plan
from cargobike.serving.record import DeploymentRecord
from cargobike.serving.status import ReplicaStatus, State, Status, VersionFigures
from cargobike.serving.supervising.calling import Reply, Request
from cargobike.serving.supervising.crew import Crew
from cargobike.serving.supervising.finding import Finder, Version
from cargobike.serving.supervising.links import Link
from cargobike.serving.supervising.policy import events
from cargobike.serving.supervising.policy.supervisor import Supervisor
from cargobike.serving.supervising.traffic import TrafficCount

VERBS: Final = ("status", "roll", "promote", "rollback", "scale", "stop")


class Roll(msgspec.Struct, frozen=True):
    """What `roll` needs to know."""

    model: str
    plan: Plan = Plan()
    step: str = ""


class Scale(msgspec.Struct, frozen=True):
    """What `scale` needs to know."""

    least: int
    most: int


class Supervising(Protocol):
    """What the desk needs of the loop."""

    crew: Crew
    policy: Supervisor
    record: DeploymentRecord
    traffic: TrafficCount
    versions: dict[int, Version]
    trouble: str

    @property
    def url(self) -> str: ...  # noqa: D102 - described there
    @property
    def clock(self) -> Any: ...  # noqa: D102
    def handle(self, event: events.Event) -> None: ...  # noqa: D102
    def watch(self, link: Link[Any], act: Callable[[], None]) -> None: ...  # noqa: D102
    def unwatch(self, what: Any) -> None: ...  # noqa: D102


class Desk:
    """Takes what users ask for to the policy, and its answers back to them."""

    def __init__(self, loop: Supervising, wake: Callable[[], None]) -> None:
        self._loop = loop
        self.finder = Finder(loop.record.specification.model, wake)
        self._number = 0
        self._waiting: dict[int, Callable[[str, Any], None]] = {}
        self._links: set[Link[Request]] = set()

    def welcome(self, connection: socket.socket) -> None:
        """Hear what a user's process wants."""
        link: Link[Request] = Link(connection, Request)
        self._links.add(link)
        self._loop.watch(link, lambda: self._hear(link))

    def administer(self, request: wire.AdminRequest) -> None:
        """Hear what an administrator wants who came through the front."""

        def answer(error: str, body: Any) -> None:
            status = 200 if not error else 409
            self._loop.crew.tell_front(
                wire.AdminAnswer(request.number, status, {"error": error} if error else msgspec.to_builtins(body))
            )

        self._take(request.verb, request.body if isinstance(request.body, dict) else {}, answer)

    def tell(self, ask: int, error: str, body: Any) -> None:
        """Answer a question that the policy has decided about."""
        answer = self._waiting.pop(ask, None)
        if answer is not None:
            answer(error, body)

    def found(self, about: Any, result: Version | str) -> None:
        """Go on with a release whose version was looked for."""
        ask, plan, step = about
        if isinstance(result, str):
            self.tell(ask, result, None)
            return
        self._loop.versions[result.version] = result
        at = self._loop.clock.now()
        self._loop.handle(events.RollAsked(at=at, ask=ask, version=result.version, plan=plan, step=step))

    def close(self) -> None:
        """Close all connections."""
        for link in self._links:
            link.close()
        self._links.clear()

    def _hear(self, link: Link[Request]) -> None:
        messages = link.hear()
        if messages is None:
            self._leave(link)
            return
        for request in messages:
            self._take(request.verb, request.body, lambda error, body: self._reply(link, error, body))

    def _leave(self, link: Link[Request]) -> None:
        self._loop.unwatch(link)
        self._links.discard(link)
        link.close()

    def _reply(self, link: Link[Request], error: str, body: Any) -> None:
        if link in self._links:
            link.say(Reply(error, body))

    def _take(self, verb: str, body: dict[str, Any], answer: Callable[[str, Any], None]) -> None:
        if verb == "status":
            answer("", msgspec.to_builtins(self.status(), str_keys=False))
            return
        self._number += 1
        ask, at = self._number, self._loop.clock.now()
        self._waiting[ask] = answer
        try:
            self._ask(verb, body, ask, at)
        except (msgspec.ValidationError, ValueError) as error:
            self.tell(ask, f"{verb}: {error}", None)

    def _ask(self, verb: str, body: dict[str, Any], ask: int, at: float) -> None:
        match verb:
            case "roll":
                roll = msgspec.convert(body, Roll)
                self.finder.look(roll.model, (ask, roll.plan, roll.step))
            case "promote":
                self._loop.handle(events.PromoteAsked(at=at, ask=ask))
            case "rollback":
                reason, step = str(body.get("reason", "")), str(body.get("step", ""))
                self._loop.handle(events.RollbackAsked(at=at, ask=ask, reason=reason, step=step))
            case "scale":
                bounds = msgspec.convert(body, Scale)
                if not 0 <= bounds.least <= bounds.most or bounds.most < 1:
                    raise ValueError(
                        f"{bounds.least}:{bounds.most} was given; it must be 0 <= least <= most, most >= 1"
                    )
                self._loop.handle(events.ScaleAsked(at=at, ask=ask, least=bounds.least, most=bounds.most))
            case "stop":
                self._loop.handle(events.StopAsked(at=at, ask=ask, reason=str(body.get("reason", "a user asked"))))
            case _:
                self.tell(ask, f"there is no {verb!r}; there is {', '.join(VERBS)}", None)

    def status(self) -> Status:
        """Return how the deployment is doing."""
        loop = self._loop
        policy, crew = loop.policy, loop.crew
        release, fleet, scaling = policy.release, policy.fleet, policy.scaler.scaling
        shares, shadow, _ = release.routes()
        state: State = "serving"
        if policy.is_stopping:
            state = "stopping"
        elif release.candidate and release.current:
            state = "releasing"
        elif not policy.front_is_up or not (fleet.ready(release.current) or policy.scaler.replicas == 0):
            state = "starting"
        errors = [fleet.deaths[version].last_error for version in policy.wanted if fleet.is_hopeless(version)]
        return Status(
            name=loop.record.specification.name,
            model=loop.record.specification.model,
            state=state,
            url=loop.url,
            grpc_address=loop.record.grpc_address,
            version=release.current,
            previous=release.previous,
            candidate=release.candidate,
            routes={share.version: share.weight for share in shares},
            shadow=shadow,
            replicas=tuple(
                ReplicaStatus(each.number, each.version, each.state, each.memory_bytes)
                for each in fleet.replicas.values()
            ),
            least=scaling.least,
            most=scaling.most,
            wanted=sum(policy.wanted.values()),
            traffic=loop.traffic.summary(loop.clock.now()),
            figures=tuple(
                VersionFigures(version, each.requests, each.failed, each.latency_s * 1e3, each.differed)
                for version, each in (release.figures.items() if release.candidate else ())
            ),
            last_error=errors[0] if errors else release.last_error,
            trouble=loop.trouble,
            pid=os.getpid(),
            front_pid=0 if crew.front is None else crew.front.process.pid,
            host_pids=tuple(host.process.pid for host in crew.hosts),
        )
