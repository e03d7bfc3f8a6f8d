"""What the processes of a deployment say to each other: supervisor, front, replicas.

The front listens on two sockets in a folder that only this user can enter: replicas connect to one, the supervisor to
the other. A message is its length in four bytes, the lowest first, and MessagePack (`framed`, `Frames`); nothing is
unpickled. The first message of a replica is `Ready`, the first of a supervisor `Supervise`: both hold the secret. The
front answers a supervisor with `FrontIs`.

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
    """The first message of a replica: its model is loaded and warm.

    Attributes:
        replica: Its number.
        version: The version of the model that it has loaded.
        pid: Its process.
        secret: What it was told, so that the front knows it.
        signature: What callers send and get, as JSON: of the model, or of what stands before and after it. Empty if
            that is not known.
        keys: What a row must have besides where features are looked up.
        example: A few rows to try it with.
        streams: Whether it can answer a row piece by piece.
    """

    replica: int
    version: int
    pid: int
    secret: str
    signature: bytes = b""
    keys: tuple[str, ...] = ()
    example: list[Any] = []
    streams: bool = False


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
    """The rows that are to blame, if that is known; the others are in `answers`."""
    answers: list[Any] = []
    """As long as the batch: an answer for each row that is not at fault, `None` for the others. Empty if unknown."""
    is_input: bool = False
    """Whether the rows are wrong, and not the model."""


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


class PackedPredict(Said, frozen=True, tag="predict"):
    """What `Predict` is once its rows are encoded; a replica cannot tell the difference."""

    batch: int
    rows: msgspec.Raw
    streams: bool = False


class Stop(Said, frozen=True, tag="stop"):
    """The rest of an answer that comes piece by piece is not wanted any more; its last piece is."""

    batch: int


class Leave(Said, frozen=True, tag="leave"):
    """End: there will be no more batches."""


ToReplica = Predict | Stop | Leave


# --- from the supervisor to the front ---------------------------------------------------------------------------------


class Supervise(Said, frozen=True, tag="supervise"):
    """The first message of a supervisor; a front has one, and a new one takes the place of the last."""

    secret: str


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
    """How many replicas are on their way.

    Requests that find no replica wait until their deadline while replicas are starting, and a few seconds while none
    is: a supervisor that scales from zero or replaces a lost replica needs a moment to say so.
    """

    starting: int
    refuse: bool = False
    """Refuse requests that find no replica at once: none will come (the model cannot be loaded)."""


class EndFront(Said, frozen=True, tag="end-front"):
    """Take no more connections, answer what is there, end."""

    within_s: float = 30.0


class AdminAnswer(Said, frozen=True, tag="admin-answer"):
    """What became of an `AdminRequest`."""

    number: int
    status: int
    body: Any = None


ToFront = Supervise | Routes | Drain | Expect | EndFront | AdminAnswer


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
        signatures: What versions take and return, as JSON, by version, for the time until a replica has said so.
        grace_s: How long it goes on without a supervisor before it drains and ends.
        grpc_port: The port for gRPC, which it binds itself; 0 if it is not spoken.
    """

    specification: bytes
    project: str
    folder: str
    listener: int
    secret: str
    tokens: dict[str, list[Literal["predict", "administer"]]] = {}
    signatures: dict[int, bytes] = {}
    grace_s: float = 30.0
    grpc_port: int = 0


class ReplicaConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a replica is started with (`serving.replica.process.run_replica`).

    Attributes:
        specification: What was asked for, as JSON.
        project: The project's address.
        folder: Where the sockets of the front are.
        replica: Its number, which no other replica of this deployment ever has.
        version: The version of the model to load.
        secret: What it must say first.
        grace_s: How long it waits for a front before it ends.
    """

    specification: bytes
    project: str
    folder: str
    replica: int
    version: int
    secret: str
    grace_s: float = 30.0


# --- how messages travel ----------------------------------------------------------------------------------------------

_encoder: Final = msgspec.msgpack.Encoder()


def packed(rows: list[Any]) -> bytes:
    """Return the rows of a batch as they travel; raises as msgspec does if they cannot."""
    return _encoder.encode(rows)


def framed(message: Said) -> bytes:
    """Return a message as it travels."""
    body = _encoder.encode(message)
    return len(body).to_bytes(4, "little") + body


class Frames:
    """Cuts what arrives on a connection into the bodies of messages.

    Example:
        >>> frames = Frames()
        >>> (
        ...     frames.feed(framed(Leave())[:3]),
        ...     msgspec.msgpack.decode(frames.feed(framed(Leave())[3:])[0], type=ToReplica),
        ... )
        ([], Leave())
    """

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the bodies of the messages that are complete now.

        Raises:
            ValueError: If a message says that it is longer than `LONGEST`.
        """
        rest = self._rest
        if not rest and len(data) >= 4 and len(data) == 4 + int.from_bytes(data[:4], "little"):
            return [data[4:]]
        rest += data
        bodies = []
        start = 0
        while len(rest) - start >= 4:
            length = int.from_bytes(rest[start : start + 4], "little")
            if length > LONGEST:
                raise ValueError(f"a message of {length} bytes; at most {LONGEST} are read")
            if len(rest) - start - 4 < length:
                break
            bodies.append(bytes(rest[start + 4 : start + 4 + length]))
            start += 4 + length
        del rest[:start]
        return bodies
