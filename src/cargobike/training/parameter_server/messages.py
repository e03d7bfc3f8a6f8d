"""What workers and servers say to each other: small typed headers; the numbers follow them as plain bytes."""

from __future__ import annotations

from typing import Literal

import msgspec

OnStale = Literal["drop", "wait"]


class TensorSpec(msgspec.Struct, frozen=True, array_like=True):
    """One parameter: its name and shape, and whether workers touch only some of its rows."""

    name: str
    shape: tuple[int, ...]
    by_rows: bool = False

    @property
    def size(self) -> int:
        """How many numbers it has."""
        size = 1
        for length in self.shape:
            size *= length
        return size


class Rule(msgspec.Struct, frozen=True):
    """How a server changes its parameters when a gradient comes."""

    kind: Literal["sgd", "adam"] = "sgd"
    lr: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False


class Terms(msgspec.Struct, frozen=True):
    """What a server accepts."""

    staleness: int | None = None
    on_stale: OnStale = "drop"
    warmup_steps: int = 0
    scale_by_delay: bool = False


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """A worker introduces itself, after it has proved that it belongs to the gang."""

    worker: str
    rank: int


class Declare(msgspec.Struct, frozen=True, tag="declare"):
    """The parameters of this shard, with their first values in the body; the first who declares is believed."""

    tensors: tuple[TensorSpec, ...]
    rule: Rule
    terms: Terms


class Pull(msgspec.Struct, frozen=True, tag="pull"):
    """Ask for parameters: all dense ones, and of others the rows whose numbers are in the body (None: all of them)."""

    codec: str = "none"
    rows: tuple[int | None, ...] = ()
    timeout_s: float = 300.0


class Push(msgspec.Struct, frozen=True, tag="push"):
    """Bring gradients: the dense ones packed by a codec, then row numbers and values of each that comes by rows."""

    base_version: int
    sequence: int
    codec: str = "none"
    count: int = 0
    rows: tuple[int, ...] = ()
    lr: float | None = None
    pull: Pull | None = None


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """Ask how the server is doing."""


class Bye(msgspec.Struct, frozen=True, tag="bye"):
    """A worker leaves, having done its work."""


class Counts(msgspec.Struct, frozen=True, tag="counts"):
    """How a server is doing; also the answer to `Hello` and `Declare`."""

    is_declared: bool
    version: int
    applied: int = 0
    dropped: int = 0
    repeated: int = 0
    restored: int = 0
    delay_sum: int = 0
    delay_max: int = 0


class Parameters(msgspec.Struct, frozen=True, tag="parameters"):
    """Parameters as they are at a version, in the body."""

    version: int


class Pushed(msgspec.Struct, frozen=True, tag="pushed"):
    """What became of a gradient; parameters follow in the body if they were asked for."""

    is_applied: bool
    version: int
    delay: int


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The server cannot do what was asked."""

    reason: Literal["undeclared", "different", "waited", "malformed"]
    message: str


Request = Hello | Declare | Pull | Push | Ask | Bye
Reply = Counts | Parameters | Pushed | Refused

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode
