"""Records are refused unless everything about them is as an honest publisher writes it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cargobike.sharing.records import (
    Column,
    File,
    Manifest,
    Note,
    RecordError,
    Signed,
    canonical,
    replacement_message,
    sign,
    verify,
)
from support.publications import NETWORK, identity_of, manifest, opinion

ALICE, BOB = identity_of("alice"), identity_of("bob")
ROOT = "ab" * 32


def why(signed: Signed, network: str = NETWORK) -> str:
    with pytest.raises(RecordError) as raised:
        verify(signed, network)
    return raised.value.why


def forced(record: Manifest | Note, body: bytes | None = None) -> Signed:
    """Sign something that an honest publisher could not sign."""
    kind = "manifest" if isinstance(record, Manifest) else "note"
    body = canonical(record) if body is None else body
    message = b"cargobike sharing record 1\0" + kind.encode() + b"\0" + body
    return Signed(kind=kind, body=body, publisher=ALICE.publisher, signature=ALICE.sign(message))  # type: ignore[arg-type]


def test_what_was_signed_comes_back() -> None:
    for record in (manifest(ALICE), opinion(ALICE, BOB, text="Fine.")):
        assert verify(sign(record, ALICE), NETWORK) == record


def test_a_changed_byte_another_key_and_another_kind_are_forgeries() -> None:
    signed = sign(manifest(ALICE), ALICE)
    changed = msgspec.structs.replace(signed, body=signed.body.replace(b"CC-BY", b"CC-XX"))
    assert why(changed) == "forged"
    assert why(msgspec.structs.replace(signed, publisher=BOB.publisher)) == "forged"
    assert why(msgspec.structs.replace(signed, signature=bytes(64))) == "forged"
    assert why(msgspec.structs.replace(signed, kind="note")) == "forged"
    assert why(forced(manifest(BOB))) == "forged"


def test_a_record_of_another_network_is_refused() -> None:
    assert why(sign(manifest(ALICE), ALICE), "office") == "network"


def test_a_record_of_a_newer_format_says_so() -> None:
    record = manifest(ALICE)
    body = canonical(record).replace(b'"format":1', b'"format":2,"future":[]')
    with pytest.raises(RecordError, match="a newer Cargobike may read it"):
        verify(forced(record, body), NETWORK)


def test_bytes_in_another_order_are_refused() -> None:
    record = manifest(ALICE)
    assert why(forced(record, msgspec.json.encode(record))) == "malformed"
    assert why(forced(record, canonical(record) + b" ")) == "malformed"
    assert why(forced(record, b"{}")) == "malformed"
    assert why(forced(record, b"[" * 100_000)) == "malformed"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "../up", "a/../../up", "a//b", "./a", "a/.", "a\\b", "C:/x", "a\0b", "a\nb", "x/", ".pad/4",
        "n" * 256, "/".join("d" * 60),
    ],
)  # fmt: skip
def test_a_path_that_leaves_the_folder_is_refused(path: str) -> None:
    assert why(forced(manifest(ALICE, files=(File(path=path, size=3000, root=ROOT),)))) == "path"


def test_files_that_cannot_lie_beside_each_other_are_refused() -> None:
    both = (File(path="a", size=1000, root=ROOT), File(path="a/b/c", size=2000, root=ROOT))
    twice = (File(path="a", size=1000, root=ROOT), File(path="a", size=2000, root=ROOT))
    assert why(forced(manifest(ALICE, files=both))) == why(forced(manifest(ALICE, files=twice))) == "path"


def test_a_bomb_of_tiny_files_is_refused() -> None:
    def files(number: int, size: int) -> dict[str, Any]:
        return {"files": tuple(File(path=f"f/{i}", size=size, root=ROOT) for i in range(number)), "size": number * size}

    assert why(forced(manifest(ALICE, **files(1001, 1)))) == "files"
    assert why(forced(manifest(ALICE, **files(50_001, 2000)))) == "malformed"
    verify(sign(manifest(ALICE, **files(1000, 1)), ALICE), NETWORK)
    verify(sign(manifest(ALICE, **files(1001, 1024)), ALICE), NETWORK)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"size": 2999}, "size"),
        ({"files": ()}, "files"),
        ({"files": (File(path="a", size=3000, root=""),)}, "size"),
        ({"piece_size": 1000}, "malformed"),
        ({"name": "a/b"}, "name"),
        ({"name": ""}, "name"),
        ({"version": 2, "supersedes": 2}, "version"),
        ({"columns": (Column(name="a", type="x"), Column(name="a", type="y"))}, "columns"),
        ({"sample": ({"a": "x" * 70_000},)}, "sample"),
        ({"tags": ("  ",)}, "tags"),
        ({"web_seeds": ("https://user:secret@host/x",)}, "web seed"),
        ({"web_seeds": ("file:///etc",)}, "web seed"),
        ({"web_seeds": ("http://[::1",)}, "web seed"),
        ({"kind": "virus"}, "malformed"),
        ({"sequence": 0}, "malformed"),
        ({"publisher": "ed25519:" + "*" * 43}, "forged"),
    ],
)
def test_a_manifest_that_does_not_add_up_is_refused(changes: dict[str, Any], word: str) -> None:
    assert why(forced(manifest(ALICE, **changes))) == word


def test_an_address_with_a_password_is_not_repeated_in_the_error() -> None:
    with pytest.raises(RecordError) as raised:
        sign(manifest(ALICE, web_seeds=("https://user:secret@host/x",)), ALICE)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"rating": 0},
        {"what": "withdrawn", "rating": 0},
        {"successor": BOB.publisher},
        {"what": "replaced", "successor": ALICE.publisher},
    ],
)
def test_a_note_that_says_nothing_or_too_much_is_refused(changes: dict[str, Any]) -> None:
    assert why(forced(opinion(ALICE, BOB, **changes))) == "note"


def test_only_a_key_that_agreed_becomes_a_successor() -> None:
    def replaced(proof: bytes) -> Note:
        nothing = {"about": "", "name": "", "version": 0, "rating": 0}
        return opinion(ALICE, BOB, what="replaced", successor=BOB.publisher, proof=proof, **nothing)

    agreed = replaced(BOB.sign(replacement_message(ALICE.publisher, NETWORK)))
    assert verify(sign(agreed, ALICE), NETWORK) == agreed
    assert why(forced(replaced(b""))) == "forged"
    assert why(forced(replaced(BOB.sign(replacement_message(ALICE.publisher, "office"))))) == "forged"
    assert why(forced(replaced(ALICE.sign(replacement_message(ALICE.publisher, NETWORK))))) == "forged"
