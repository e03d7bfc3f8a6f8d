"""What a front and the process of its inference log say to each other, over a pair of sockets."""

from __future__ import annotations

from typing import Final

import msgspec

from cargobike.serving.wire import Said


class LogConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the process of a log is started with, on standard input: addresses may hold secrets.

    Attributes:
        specification: What was asked for, as JSON.
        project: The project's address.
        model: The name of the model.
        connection: The number of the file descriptor of its socket, inherited.
    """

    specification: bytes
    project: str
    model: str
    connection: int


class Signed(Said, frozen=True, tag="signed"):
    """What a version takes and returns, as JSON; comes before its first requests."""

    version: int
    signature: bytes


class Requests(Said, frozen=True, tag="requests"):
    """Requests of one version as a `Packet` packs them.

    Attributes:
        version: The version that answered them.
        count: How many there are.
        ids: Their ids, one in each line.
        figures: `FIGURES` doubles for each.
        rows: Their rows in MessagePack, one after the other; nil for a request without rows.
        answers: As many answers, nil where there is none.
    """

    version: int
    count: int
    ids: bytes
    figures: bytes
    rows: bytes
    answers: bytes


class Counted(Said, frozen=True, tag="counted"):
    """What became of all requests so far."""

    written: int
    dropped: int
    failures: int


to_log: Final = msgspec.msgpack.Decoder(Signed | Requests)
from_log: Final = msgspec.msgpack.Decoder(Counted)
