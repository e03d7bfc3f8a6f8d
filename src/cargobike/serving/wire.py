"""What the processes of a deployment say to each other: supervisor, front, replicas.

The front listens on two sockets in a folder that only this user can enter: replicas connect to one, the supervisor to
the other. A message is its length in four bytes, the lowest first, and MessagePack; nothing is unpickled.

```
supervisor --control.sock--> front <--replicas.sock-- replica
```

A replica gets one batch at a time. The supervisor can be lost and come back: the front goes on, and tells a new one how
things stand. So can the front: replicas connect to the next one.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

CONTROL: Final = "control.sock"
REPLICAS: Final = "replicas.sock"
LONGEST: Final = 1 << 30


class Said(msgspec.Struct, frozen=True, tag_field="is"):
    """Base of all messages."""


# --- from a replica ---------------------------------------------------------------------------------------------------


class Ready(Said, frozen=True, tag="ready"):
    """The first message of a replica: its model is loaded and warm."""

    replica: int
    version: int
    pid: int
    secret: str


class Answers(Said, frozen=True, tag="answers"):
    """One answer for each row of a batch, in their order."""

    batch: int
    answers: list[Any]
    took_s: float = 0.0


class Failed(Said, frozen=True, tag="failed"):
    """A batch raised an error, or gave another number of answers than rows."""

    batch: int
    error: str
    message: str
    rows_at_fault: list[int] = []
    """The rows that are to blame, if that is known: the others can be answered."""


class Piece(Said, frozen=True, tag="piece"):
    """A part of the answer to a batch of one row that is answered piece by piece; the last says so."""

    batch: int
    value: Any = None
    is_last: bool = False


FromReplica = Ready | Answers | Failed | Piece


# --- to a replica -----------------------------------------------------------------------------------------------------


class Predict(Said, frozen=True, tag="predict"):
    """A batch of rows."""

    batch: int
    rows: list[Any]
    streams: bool = False


class Leave(Said, frozen=True, tag="leave"):
    """End: there will be no more batches."""


ToReplica = Predict | Leave


# --- from the supervisor to the front ---------------------------------------------------------------------------------


class Route(msgspec.Struct, frozen=True):
    """A version, and the share of requests that goes to it; shares need not sum to 1."""

    version: int
    weight: float = 1.0


class Routes(Said, frozen=True, tag="routes"):
    """Where requests go from now on; takes effect at once.

    Attributes:
        routes: Versions that answer, with their shares.
        shadow: A version that gets copies of requests; its answers are compared and not served. 0 for none.
        by: A field of rows by which versions are chosen: equal values always meet the same version. Empty: by chance.
    """

    routes: list[Route]
    shadow: int = 0
    by: str = ""


class Drain(Said, frozen=True, tag="drain"):
    """Give a replica no more batches; `Drained` follows when it has none."""

    replica: int


class Expect(Said, frozen=True, tag="expect"):
    """How many replicas are on their way: with none, requests that find no replica are refused at once."""

    starting: int


class EndFront(Said, frozen=True, tag="end-front"):
    """Take no more connections, answer what is there, end."""

    within_s: float = 30.0


class AdminAnswer(Said, frozen=True, tag="admin-answer"):
    """What became of an `AdminRequest`."""

    number: int
    status: int
    body: Any = None


ToFront = Routes | Drain | Expect | EndFront | AdminAnswer


# --- from the front to the supervisor ---------------------------------------------------------------------------------


class FrontIs(Said, frozen=True, tag="front-is"):
    """How things stand, to every supervisor that connects: its process, its port, the replicas that it has."""

    pid: int
    port: int
    replicas: dict[int, int]
    """The version of each replica, by its number."""


class ReplicaReady(Said, frozen=True, tag="replica-ready"):
    """A replica has connected and takes batches."""

    replica: int
    version: int
    pid: int


class ReplicaGone(Said, frozen=True, tag="replica-gone"):
    """A replica has closed its connection, or was given up."""

    replica: int
    why: Literal["closed", "hung", "wrong"]


class Drained(Said, frozen=True, tag="drained"):
    """A replica has no batch any more, and gets none."""

    replica: int


class VersionLoad(msgspec.Struct, frozen=True):
    """What happened at one version since the last message."""

    answered: int = 0
    failed: int = 0
    latency_sum_s: float = 0.0
    latencies: list[int] = []
    """How many requests took at most 2**k * 0.1 ms, for k = 0, 1, … and not less; the last counts all longer ones."""
    differed: int = 0
    """For a shadow: how many answers were not those that were served."""


class Load(Said, frozen=True, tag="load"):
    """How busy it is; sent four times a second, and at once when a request waits and there is no replica."""

    at_s: float
    arrived: int
    waiting: int
    at_work: int
    longest_wait_s: float
    refused: int = 0
    versions: dict[int, VersionLoad] = {}


class AdminRequest(Said, frozen=True, tag="admin-request"):
    """A request of a client with the scope `administer`: `roll`, `rollback`, `scale`, `status`, `stop`."""

    number: int
    verb: str
    body: Any = None


FromFront = FrontIs | ReplicaReady | ReplicaGone | Drained | Load | AdminRequest


class FrontConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a front is started with, through a pipe: it holds secrets.

    Attributes:
        specification: What was asked for, as JSON.
        project: The project's address.
        folder: Where its sockets are.
        listener: The number of the file descriptor of the socket to accept connections from, inherited.
        secret: What replicas and supervisors must say first.
        tokens: Who may call: the SHA-256 of each token, and its scopes. Empty: every caller may predict.
        signatures: What each version that was ever routed to takes and returns, as JSON, by version.
    """

    specification: bytes
    project: str
    folder: str
    listener: int
    secret: str
    tokens: dict[str, list[Literal["predict", "administer"]]] = {}
    signatures: dict[int, bytes] = {}
