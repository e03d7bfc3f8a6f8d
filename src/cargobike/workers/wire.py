"""Messages between driver, agent and runner, and the numbered link that none of them gets lost on.

Everything is msgpack, decoded into these types or refused; nothing that arrives from a socket is ever unpickled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

PROTOCOL = 1


class Message(msgspec.Struct, frozen=True, tag_field="m", omit_defaults=True, gc=False):
    """Base of all messages."""


# -- worker to driver ------------------------------------------------------------------------------------------------


class Hello(Message, frozen=True, tag="hello"):
    """An agent introduces itself, after every (re)connect."""

    worker: str
    pid: int
    host: str
    python: str
    cargobike: str
    protocol: int = PROTOCOL
    gpus: tuple[str, ...] = ()


class Beat(Message, frozen=True, tag="beat"):
    """The agent lives."""


class Point(Message, frozen=True, tag="point", gc=True):
    """A report; with `waits`, the train function stands still until a `Verdict` comes.

    With `again` it was reported by the attempt before, and may or may not have arrived.
    """

    trial: int
    attempt: int
    step: int
    metrics: dict[str, float]
    waits: bool = False
    again: bool = False


class Saved(Message, frozen=True, tag="saved"):
    """A checkpoint is durable."""

    trial: int
    attempt: int
    step: int
    path: str
    size_bytes: int = 0


class Ended(Message, frozen=True, tag="ended", gc=True):
    """An attempt is over on this worker."""

    trial: int
    attempt: int
    outcome: Literal["completed", "stopped", "paused", "failed", "lost"]
    value: float | None = None
    metrics: dict[str, float] = msgspec.field(default_factory=dict)
    error: str | None = None
    alike: str = ""
    peak_memory_bytes: int | None = None
    is_symptom: bool = False
    stack: str = ""


class Published(Message, frozen=True, tag="published"):
    """A member of a gang tells the others something."""

    trial: int
    attempt: int
    name: str
    value: bytes


class Wanted(Message, frozen=True, tag="wanted"):
    """A member of a gang waits for what others publish under a name.

    With `at_once` it waits no longer, and wants to know who is missing. With `last` it will not ask again: what all of
    them have asked for in this way can be forgotten.
    """

    trial: int
    attempt: int
    name: str
    of: str = "all"
    at_once: bool = False
    last: bool = False


class Quiet(Message, frozen=True, tag="quiet"):
    """A member of a gang has neither computed nor said anything for so long."""

    trial: int
    attempt: int
    idle_s: float


class Output(Message, frozen=True, tag="output"):
    """Captured output of a trial."""

    trial: int
    stream: Literal["stdout", "stderr"]
    data: bytes


class Bye(Message, frozen=True, tag="bye"):
    """The agent has delivered everything and leaves."""


WorkerMessage = Hello | Beat | Point | Saved | Ended | Published | Wanted | Quiet | Output | Bye


# -- driver to worker ------------------------------------------------------------------------------------------------


class Membership(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A worker's place in a gang; what is said of members is in their order: those who train first, then servers.

    Attributes:
        index: Which member this worker is.
        roles: What each member does: `worker`, `server`, or what TensorFlow calls it.
        hosts: Where each member is.
        local_rank: Which of those who train on its host it is.
        local_world_size: How many they are.
        secret: Known to the members of this attempt only.
        stall_timeout_s: How long a member may keep the others waiting.
    """

    index: int
    roles: tuple[str, ...]
    hosts: tuple[str, ...]
    local_rank: int = 0
    local_world_size: int = 1
    secret: bytes = b""
    stall_timeout_s: float | None = None

    @property
    def role(self) -> str:
        """What this worker does."""
        return self.roles[self.index]


class Assign(Message, frozen=True, tag="assign", gc=True):
    """Run a trial."""

    trial: int
    attempt: int
    params: dict[str, Any]
    seed: int
    rank: int = 0
    world_size: int = 1
    milestones: tuple[int, ...] | Literal["every"] = ()
    start_from: str | None = None
    membership: Membership | None = None


class Verdict(Message, frozen=True, tag="verdict"):
    """Go on, stop or pause at this step."""

    trial: int
    attempt: int
    step: int
    decision: Literal["continue", "stop", "pause"]


class Halt(Message, frozen=True, tag="halt"):
    """End an attempt: by asking the train function, and by force after `grace_s`; with `stack`, say where it stands."""

    trial: int
    attempt: int
    grace_s: float = 0.0
    stack: bool = False


class Gathered(Message, frozen=True, tag="gathered", gc=True):
    """What the members of a gang have published under a name, in their order; `None` of who has not."""

    trial: int
    attempt: int
    name: str
    values: list[bytes | None]


class Stored(Message, frozen=True, tag="stored"):
    """From agent to runner: a checkpoint has arrived where it is kept, or why not."""

    trial: int
    attempt: int
    path: str
    error: str = ""


class Bring(Message, frozen=True, tag="bring"):
    """From runner to agent: a file of the project is needed here."""

    path: str


class Brought(Message, frozen=True, tag="brought"):
    """From agent to runner: it is here, or why not."""

    path: str
    error: str = ""


class Release(Message, frozen=True, tag="release"):
    """Deliver everything and leave."""


DriverMessage = Assign | Verdict | Gathered | Halt | Stored | Brought | Release


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """Some messages in order, numbered, with the number of the last envelope seen from the other side."""

    seq: int
    ack: int
    items: list[msgspec.Raw]


NoMessage = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are no message: wrong types, text that is none, nesting without end."""

_encode = msgspec.msgpack.Encoder().encode
_decode_envelope = msgspec.msgpack.Decoder(Envelope).decode
encode_message = _encode
decode_worker_message = msgspec.msgpack.Decoder(WorkerMessage).decode
decode_driver_message = msgspec.msgpack.Decoder(DriverMessage).decode


class Link:
    """One end of a connection on which messages arrive exactly once and in order, over reconnects.

    Sends are numbered and kept until the other side has acknowledged them; after a reconnect `unacknowledged` is sent
    again. Receives with a number other than the next one are dropped: they are repeats, or will be repeated.
    Number 0 means "nothing but an acknowledgement".
    """

    __slots__ = ("_kept", "last_seen", "last_sent")

    def __init__(self) -> None:
        self.last_sent = 0
        self.last_seen = 0
        self._kept: deque[tuple[int, list[msgspec.Raw]]] = deque()

    def pack(self, items: Sequence[bytes]) -> bytes:
        """Number and encode some messages; an empty list gives a bare acknowledgement."""
        raws = [msgspec.Raw(item) for item in items]
        if not raws:
            return _encode(Envelope(0, self.last_seen, raws))
        self.last_sent += 1
        self._kept.append((self.last_sent, raws))
        return _encode(Envelope(self.last_sent, self.last_seen, raws))

    def unpack(self, data: bytes) -> list[msgspec.Raw]:
        """Return the new messages in an envelope; raises one of `NoMessage` for anything that is none."""
        envelope = _decode_envelope(data)
        kept = self._kept
        while kept and kept[0][0] <= envelope.ack:
            kept.popleft()
        if envelope.seq != self.last_seen + 1:
            return []
        self.last_seen = envelope.seq
        return envelope.items

    def unacknowledged(self) -> list[bytes]:
        """Return what must be sent again after a reconnect."""
        return [_encode(Envelope(seq, self.last_seen, raws)) for seq, raws in self._kept]

    @property
    def in_flight(self) -> int:
        """How many envelopes the other side has not acknowledged yet."""
        return len(self._kept)
