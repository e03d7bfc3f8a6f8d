"""How a deployment is doing: one record for handles, commands and pages."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["starting", "serving", "releasing", "stopping", "stopped", "lost"]


class ReplicaStatus(msgspec.Struct, frozen=True):
    """One replica: its state is `starting`, `ready`, `draining` or `ending`."""

    replica: int
    version: int
    state: str
    memory_bytes: int = 0


class Traffic(msgspec.Struct, frozen=True):
    """What was asked and answered in the last minute, and since the supervisor started.

    Attributes:
        per_s: Requests in a second, over the last ten.
        waiting: Requests that wait now.
        at_work: Requests that replicas work at now.
        p50_ms: Half of the requests of the last minute took at most so long; `None` without any.
        p99_ms: 99 of 100 of them took at most so long.
        answered: How many were answered since the start.
        failed: How many failed since the start.
        refused: How many were refused since the start, because too many waited.
    """

    per_s: float = 0.0
    waiting: int = 0
    at_work: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None
    answered: int = 0
    failed: int = 0
    refused: int = 0


class VersionFigures(msgspec.Struct, frozen=True):
    """What happened at a version since a release began that is watched; `differed` counts answers of a shadow."""

    version: int
    requests: int
    failed: int
    latency_ms: float
    differed: int = 0


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How a deployment is doing.

    Attributes:
        state: `starting`, `serving`, `releasing` (a version is being brought in), `stopping`, `stopped`, or `lost`: its
            supervisor died and no other has taken over yet.
        url: Where requests go.
        grpc_address: Where calls over gRPC go; empty if it is not spoken.
        version: The version that serves; 0 before the first.
        previous: The version before it; 0 if there was none.
        candidate: The version that is being brought in; 0 if there is none.
        routes: The share of requests of each version.
        shadow: The version that gets copies; 0 if there is none.
        replicas: All replicas.
        wanted: How many replicas there are to be.
        figures: How versions compare while one is watched.
        last_error: Why the last release failed, or replicas keep dying; empty if all is well.
        trouble: What the supervisor cannot do, such as write its journal; empty if all is well.
    """

    name: str
    model: str
    state: State
    url: str = ""
    grpc_address: str = ""
    version: int = 0
    previous: int = 0
    candidate: int = 0
    routes: dict[int, float] = {}
    shadow: int = 0
    replicas: tuple[ReplicaStatus, ...] = ()
    least: int = 1
    most: int = 1
    wanted: int = 0
    traffic: Traffic = Traffic()
    figures: tuple[VersionFigures, ...] = ()
    last_error: str = ""
    trouble: str = ""
    pid: int = 0
    front_pid: int = 0
    host_pids: tuple[int, ...] = ()

    @property
    def ready(self) -> int:
        """How many replicas take requests."""
        return sum(replica.state == "ready" for replica in self.replicas)

    @property
    def served(self) -> str:
        """The model with the version that serves now, which after a roll is not the one that was asked for first."""
        return served_version(self.model, self.version)

    def __str__(self) -> str:
        head = f"{self.name}: {self.state}" + (f" at {self.url}" if self.url else "")
        lines = [head, f"  model     {self.served}"]
        if self.grpc_address:
            lines.append(f"  grpc      {self.grpc_address}")
        if self.candidate:
            share = self.routes.get(self.candidate)
            how = f"gets {share:.0%}" if share else "shadow" if self.shadow else "starting"
            lines.append(f"  release   version {self.candidate}: {how}")
        lines += [
            f"  {figures.version:>7} : {figures.requests} requests, {figures.failed} failed, "
            f"{figures.latency_ms:.1f} ms" + (f", {figures.differed} differed" if figures.differed else "")
            for figures in self.figures
        ]
        bounds = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        lines.append(f"  replicas  {self.ready} ready of {self.wanted} wanted ({bounds})")
        lines.append(f"  traffic   {traffic_line(self.traffic)}")
        if self.last_error:
            lines.append(f"  error     {self.last_error.strip().splitlines()[-1]}")
        if self.trouble:
            lines.append(f"  trouble   {self.trouble}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def served_version(model: str, version: int) -> str:
    """Return what serves: `digits:4`, also where `digits:2` or `digits@champion` was asked for.

    Example:
        >>> served_version("digits:2", 4)
        'digits:4'
    """
    return f"{model.partition('@')[0].partition(':')[0]}:{version}" if version else model


def traffic_line(traffic: Traffic) -> str:
    """Return traffic in one line."""
    times = ""
    if traffic.p50_ms is not None and traffic.p99_ms is not None:
        times = f", p50 {traffic.p50_ms:.1f} ms, p99 {traffic.p99_ms:.1f} ms"
    return (
        f"{traffic.per_s:.1f} requests/s{times}, {traffic.waiting} waiting, {traffic.answered} answered, "
        f"{traffic.failed} failed, {traffic.refused} refused"
    )
