"""What publishers sign: manifests of what they publish, and notes about what others did.

A record is signed as canonical bytes: JSON with sorted keys and without blanks. Bytes that are not the canonical form
of what they say are refused, so that one record has one signature. The signature is checked before anything is decoded.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from cargobike.core.errors import RecordError
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.sharing.checks import check_manifest, check_note
from cargobike.sharing.identity.keys import Identity, is_signed, short
from cargobike.sharing.shapes import MOST_BYTES, Column, File, Manifest, Note, Signed

__all__ = [
    "FORMAT",
    "MOST_BYTES",
    "Column",
    "File",
    "Manifest",
    "Note",
    "RecordError",
    "Signed",
    "canonical",
    "replacement_message",
    "sign",
    "verify",
]

FORMAT: Final = 1
_DOMAIN: Final = b"cargobike sharing record 1\0"
"""Stands before what is signed, so that no signature of another kind can be taken for one of a record."""
_MANIFEST: Final = msgspec.json.Decoder(Manifest)
_NOTE: Final = msgspec.json.Decoder(Note)
_ENCODER: Final = msgspec.json.Encoder(order="sorted")


def canonical(record: Manifest | Note) -> bytes:
    """Return the bytes of a record that are signed: always the same for equal records."""
    return _ENCODER.encode(record)


def sign(record: Manifest | Note, identity: Identity) -> Signed:
    """Sign a record.

    Raises:
        RecordError: If it would be refused by others.
    """
    body, kind = canonical(record), _kind(record)
    signed = Signed(
        kind=kind,
        body=body,
        publisher=identity.publisher,
        signature=identity.sign(_DOMAIN + kind.encode() + b"\0" + body),
    )
    verify(signed, record.network)
    return signed


def verify(signed: Signed, network: str) -> Manifest | Note:
    """Return what was signed, after everything about it was checked; the signature before anything is decoded.

    Args:
        signed: What came from elsewhere.
        network: The network that it must be for.

    Raises:
        RecordError: Its `why` says in a word what is wrong: `forged`, `network`, `path`, `files`, `size`, `format`, …
    """
    if len(signed.body) > MOST_BYTES:
        raise RecordError("size", f"a record of {len(signed.body)} bytes; at most {MOST_BYTES} are taken")
    if not is_signed(signed.publisher, _DOMAIN + signed.kind.encode() + b"\0" + signed.body, signed.signature):
        raise RecordError("forged", f"its signature is not one of {signed.publisher[:60]!r}")
    record = _decoded(signed)
    if record.publisher != signed.publisher:
        raise RecordError("forged", f"it names {short(record.publisher)} and was signed by {short(signed.publisher)}")
    if record.network != network:
        raise RecordError("network", f"it belongs to the network {record.network!r}, and this is {network!r}")
    if isinstance(record, Manifest):
        check_manifest(record)
    else:
        check_note(record)
        if record.what == "replaced" and not is_signed(
            record.successor, replacement_message(record.publisher, network), record.proof
        ):
            raise RecordError("forged", f"the key {short(record.successor)} has not agreed to be its successor")
    return record


def replacement_message(publisher: str, network: str) -> bytes:
    """Return what the successor of a key signs, so that no publisher can make another key its own successor."""
    return b"cargobike sharing successor 1\0" + network.encode() + b"\0" + publisher.encode()


def _decoded(signed: Signed) -> Manifest | Note:
    try:
        record: Manifest | Note = (_MANIFEST if signed.kind == "manifest" else _NOTE).decode(signed.body)
    except UNDECODABLE as error:
        try:
            form = msgspec.json.decode(signed.body, type=_Form).format
        except UNDECODABLE:
            form = FORMAT
        if form != FORMAT:
            raise _unknown(form) from error
        raise RecordError("malformed", f"it cannot be read: {error}") from error
    if record.format != FORMAT:
        raise _unknown(record.format)
    if canonical(record) != signed.body:
        raise RecordError("malformed", "it is not written in the canonical form")
    return record


class _Form(msgspec.Struct):
    format: int


def _unknown(form: int) -> RecordError:
    return RecordError("format", f"it has the format {form}, and {FORMAT} is known here; a newer Cargobike may read it")


def _kind(record: Manifest | Note) -> Literal["manifest", "note"]:
    return "manifest" if isinstance(record, Manifest) else "note"
