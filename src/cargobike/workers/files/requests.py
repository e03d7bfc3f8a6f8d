"""The requests of a worker without the project's disk to the driver's file server, and the answers.

Paths are relative to the project, with slashes. A request may be repeated: none does harm when it arrives twice.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

CHUNK_BYTES = 1 << 20
MOST_BYTES = 4 * CHUNK_BYTES
"""No request is longer; answers may be, because a folder can hold any number of files."""
TEMPORARY = ".saving.0."
"""Beginning of the name of a folder that is not complete yet; abandoned folders with such a name are deleted later."""

Offset = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class Request(msgspec.Struct, frozen=True, tag_field="r", omit_defaults=True):
    """Base of all requests; the answer carries the same number."""

    number: int


class Put(Request, frozen=True, tag="put"):
    """Write some bytes of a file, cutting off what is behind them; or make a link.

    Pieces of a file are sent in order: there must be a file up to the offset. A link must lead to a place in the same
    trial's folder, by `core.open_folder.leads_inside`.
    """

    path: str
    offset: Offset = 0
    data: bytes = b""
    link: str = ""


class Settle(Request, frozen=True, tag="settle"):
    """A folder is complete: force it to disk, rename it to its final name, and delete what it replaces.

    Unless `alone`, others write such folders too: then it gets the next number if the name is taken.
    """

    path: str
    name: str
    alone: bool = True
    replaces: tuple[str, ...] = ()


class Listing(Request, frozen=True, tag="list"):
    """Name all files under a folder."""

    path: str


class Get(Request, frozen=True, tag="get"):
    """Send some bytes of a file."""

    path: str
    offset: Offset = 0


FileRequest = Put | Settle | Listing | Get


class File(msgspec.Struct, frozen=True, array_like=True):
    """A file under a folder, by its path from there."""

    path: str
    size: int
    link: str = ""


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a request; with `error`, nothing was done."""

    number: int
    error: str = ""
    data: bytes = b""
    files: list[File] = []


encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(FileRequest).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode
