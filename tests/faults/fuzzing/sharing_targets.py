"""What members of a network send: records, and what a catalogue is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.sharing.catalogue.entry import Question, read_reference
from cargobike.sharing.catalogue.store import Catalogue
from cargobike.sharing.records import Manifest, Note, RecordError, Signed, canonical, sign, verify
from faults.fuzzing.target import Target
from support.publications import NETWORK, identity_of, manifest, opinion

_ALICE, _BOB = identity_of("alice"), identity_of("bob")
_DOMAIN = b"cargobike sharing record 1\0"


@contextmanager
def sharing_targets(folder: Path) -> Iterator[list[Target]]:
    """Yield the parsers of records, a catalogue that keeps what they let through, and its questions."""
    folder.mkdir(parents=True, exist_ok=True)
    manifests = (canonical(manifest(_ALICE)), canonical(manifest(_ALICE, 2, version=2, supersedes=1, rows=None)))
    notes = (canonical(opinion(_ALICE, _BOB)), canonical(opinion(_ALICE, _ALICE, 3, what="withdrawn", rating=0)))
    signed = (msgspec.msgpack.encode(sign(manifest(_ALICE), _ALICE)),)
    words = (b"higgs@alice:3", b"fraud transactions", b'"a" OR b*')
    refused = (RecordError,)
    with Catalogue(folder / "catalogue.sqlite", NETWORK) as catalogue:
        yield [
            Target("manifest", lambda data: _take(catalogue, "manifest", data), manifests, "json", refused, 40),
            Target("note", lambda data: _take(catalogue, "note", data), notes, "json", refused, 20),
            Target("signed-record", _verify, signed, "msgpack", refused, 20),
            Target("catalogue-question", lambda data: _ask(catalogue, data), words, "text", (InvalidInputError,), 10),
        ]


def _take(catalogue: Catalogue, kind: str, data: bytes) -> None:
    """Give a catalogue bytes that a publisher really has signed, whatever they are."""
    try:
        body = msgspec.json.encode(msgspec.json.decode(data), order="sorted")  # otherwise few would get far
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        body = data
    signature = _ALICE.sign(_DOMAIN + kind.encode() + b"\0" + body)
    record = Signed(kind=kind, body=body, publisher=_ALICE.publisher, signature=signature)  # type: ignore[arg-type]
    verified = verify(record, NETWORK)
    assert isinstance(verified, Manifest | Note)
    assert canonical(verified) == body
    if isinstance(verified, Manifest):
        for file in verified.files:
            assert not file.path.startswith("/")
            assert ".." not in file.path.split("/")
    catalogue.add(record)


def _verify(data: bytes) -> None:
    try:
        record = msgspec.msgpack.decode(data, type=Signed)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError("malformed", "it is no record") from error
    verify(record, NETWORK)


def _ask(catalogue: Catalogue, data: bytes) -> None:
    text = data.decode(errors="replace")
    catalogue.find(Question(words=(text,), tags=(text,), columns=(text,)))
    try:
        catalogue.entry(*read_reference(text))
    except NotFoundError:
        pass
