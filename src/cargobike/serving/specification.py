"""What a deployment is to be: one frozen record, made once at the door, journaled, and rendered for Kubernetes."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

_STOP_S: Final = 30.0

ScaleBy = Literal["concurrency", "requests", "queue"]


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """How many replicas there are, and when there are more.

    Attributes:
        least: The fewest replicas; with 0 the last one ends after `idle_s`, and the next request waits for one.
        most: The most replicas.
        by: What is watched: requests at work or waiting for each replica, requests per second for each replica, or the
            seconds that a request waits before a replica takes it.
        target: The value of that for which the number of replicas is right.
        idle_s: How long without requests until the last replica ends, if `least` is 0.
        window_s: How long less load must last before replicas end; more load is answered at once.
    """

    least: int = 1
    most: int = 1
    by: ScaleBy = "concurrency"
    target: float = 32.0
    idle_s: float = 300.0
    window_s: float = 30.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one request, and all of them, may take.

    Attributes:
        batch: The most rows that a replica gets at once.
        queue: The most rows that wait; what comes beyond is refused with 429 and `Retry-After`.
        body_bytes: The longest body.
        deadline_s: How long a request may take if it does not say (`X-Deadline-S`); then it is answered with 504.
        load_s: How long a replica may take until it is ready; then it is ended.
        predict_s: How long a replica may take for a batch; then it is ended and replaced.
        requests_per_s: The most requests of one token, or one address, in a second; 0 for any number.
        memory_bytes: The most memory of a replica; one with more is replaced. 0 for any.
        leave_s: How long requests are still taken after it was told to end: it says that it is not ready, and asks
            callers to come back on another connection. For what stands behind a load balancer.
    """

    batch: int = 64
    queue: int = 2048
    body_bytes: int = 16 << 20
    deadline_s: float = 30.0
    load_s: float = 300.0
    predict_s: float = 60.0
    requests_per_s: float = 0.0
    memory_bytes: int = 0
    leave_s: float = 0.0

    @property
    def stop_s(self) -> float:
        """How long requests that are there may take when everything is to end: none is cut off before its deadline."""
        return self.leave_s + max(_STOP_S, self.deadline_s)


class Logging(msgspec.Struct, frozen=True, kw_only=True):
    """What of the requests and answers is kept.

    Attributes:
        sample: The share of requests that is kept, from 0 (none) to 1 (all).
        redact: Fields of rows and answers whose values are left out.
        kafka: The servers of a broker, `host:port`, to which they go instead of files of the project.
        topic: The broker's topic; by default the deployment's name.
        flush_s: How long at most until what was answered is kept.
        url: Where the files lie, if not in the project: the address of another.
        keep_days: How many days of files are kept; 0 for all.
    """

    sample: float = 1.0
    redact: tuple[str, ...] = ()
    kafka: str = ""
    topic: str = ""
    flush_s: float = 2.0
    url: str = ""
    keep_days: float = 0.0


class Specification(msgspec.Struct, frozen=True, kw_only=True):
    """A deployment as it was asked for.

    Attributes:
        name: Its name in the project.
        model: What it serves, as asked: `digits@champion`.
        version: The version that this meant.
        host: The address that it listens on.
        port: The port; 0 for any that is free.
        grpc_port: The port for gRPC, 0 for any that is free; `None` if only HTTP is spoken.
        view: The feature view whose features are looked up by the keys in a request; empty if rows come whole.
        view_project: The address of the project that has the view; empty for the deployment's own.
        functions: Functions before and after the model, pickled: what a user gave as `before` and `after`.
        retry: Whether a request whose replica died may be given to another.
        tls_certificate: A file; with `tls_key` requests are encrypted.
        trust: Whether code in a model that came from elsewhere may run.
        resources: For Kubernetes: `{"cpu": "1", "memory": "1Gi"}`.
        environment: Environment variables of the replicas; values may be secrets and are never shown.
    """

    name: str
    model: str
    version: int = 0
    host: str = "127.0.0.1"
    port: int = 0
    grpc_port: int | None = None
    scaling: Scaling = Scaling()
    limits: Limits = Limits()
    logging: Logging = Logging()
    view: str = ""
    view_project: str = ""
    functions: bytes = b""
    retry: bool = True
    tls_certificate: str = ""
    tls_key: str = ""
    trust: bool = False
    resources: dict[str, Any] = {}
    environment: dict[str, str] = {}
