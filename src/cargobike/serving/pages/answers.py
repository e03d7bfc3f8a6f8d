"""The shapes that the API of deployments answers with."""

from __future__ import annotations

from typing import Annotated, Any

from cargobike.ui.answers import Answer, Field

Count = Annotated[int, Field(ge=0)]


class TrafficAnswer(Answer):
    """What was asked and answered."""

    per_s: Annotated[float, Field(ge=0, description="Requests in a second, over the last ten.")]
    waiting: Count
    at_work: Count
    p50_ms: float | None
    p99_ms: float | None
    answered: Annotated[int, Field(ge=0, description="Since the supervisor started.")]
    failed: Count
    refused: Count


class ReplicaAnswer(Answer):
    """One replica."""

    replica: int
    version: Count
    state: Annotated[str, Field(description="`starting`, `ready`, `draining` or `ending`.")]
    memory_bytes: Count


class VersionAnswer(Answer):
    """What happened at a version while it is watched."""

    version: Count
    requests: Count
    failed: Count
    latency_ms: float
    differed: Count


class DeploymentLine(Answer):
    """One deployment, as lists show it."""

    name: str
    state: Annotated[
        str, Field(description="`starting`, `serving`, `releasing`, `stopping`, `stopped`, `lost` or `unreadable`.")
    ]
    model: str
    version: Annotated[int, Field(ge=0, description="The version that serves; 0 before the first.")]
    url: str
    ready: Count
    wanted: Count
    traffic: TrafficAnswer


class DeploymentPage(Answer):
    """A part of the list of deployments."""

    deployments: list[DeploymentLine]
    total: Count
    offset: Count
    limit: Count


class MomentAnswer(Answer):
    """Something that happened."""

    at: str
    text: str


class DeploymentDetails(Answer):
    """One deployment: how it is doing, and what happened to it."""

    deployment: DeploymentLine
    model_name: Annotated[str, Field(description="The model, without version or alias.")]
    previous: Annotated[int, Field(ge=0, description="The version before, to which a rollback goes; 0 for none.")]
    candidate: Annotated[int, Field(ge=0, description="The version that is being brought in; 0 for none.")]
    routes: Annotated[dict[str, float], Field(description="The share of requests of each version.")]
    shadow: Count
    replicas: list[ReplicaAnswer]
    least: Count
    most: Count
    figures: list[VersionAnswer]
    last_error: str
    trouble: str
    settings: Annotated[dict[str, Any], Field(description="Limits, scaling and logging, as asked for.")]
    history: Annotated[list[MomentAnswer], Field(description="The newest first, 100 at most.")]
    may_change: Annotated[bool, Field(description="Whether this server allows releases.")]


class Tail(Answer):
    """The last lines that the processes of a deployment printed."""

    text: str


class RequestLine(Answer):
    """One row of the inference log, without its content."""

    request_id: str
    at: str
    latency_ms: float
    version: Count
    status: int
    row: int | None


class LastRequests(Answer):
    """The last requests that were kept."""

    requests: list[RequestLine]
    problem: Annotated[str, Field(description="Why there are none, if they cannot be read.")]


class Release(Answer):
    """What was asked for, and how things stand."""

    state: str
    version: Count
    candidate: Count
