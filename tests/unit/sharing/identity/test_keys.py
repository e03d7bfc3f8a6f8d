"""Keys are made once, kept from others, and have one text."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.sharing.identity.keys import Identity, is_signed, load_identity, read_key, replace_identity, write_key


def test_a_key_is_made_on_first_use_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    first = load_identity(project)
    assert load_identity(project).publisher == first.publisher
    (key,) = (path for path in (tmp_path / "sharing" / "identity").iterdir())
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.parent.stat().st_mode & 0o777 == 0o700


def test_a_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    load_identity(ProjectFolder(tmp_path))
    key = tmp_path / "sharing" / "identity" / "key"
    key.chmod(0o644)
    with pytest.raises(StoreError, match=r"mode 644.*chmod 600"):
        load_identity(ProjectFolder(tmp_path))
    key.chmod(0o600)
    key.write_bytes(b"short")
    with pytest.raises(StoreError, match="5 bytes instead of 32"):
        load_identity(ProjectFolder(tmp_path))


def test_a_key_that_is_replaced_stays_beside_the_new_one(tmp_path: Path) -> None:
    project, new = ProjectFolder(tmp_path), Identity.new()
    old = load_identity(project)
    kept = replace_identity(project, new)
    assert load_identity(project).publisher == new.publisher
    assert Identity.from_bytes(kept.read_bytes()).publisher == old.publisher
    assert kept.stat().st_mode & 0o777 == 0o600


def test_one_key_has_one_text() -> None:
    key = bytes(range(32))
    text = write_key(key)
    assert read_key(text) == key
    # The last character holds two bits that say nothing: another one there would be the same key in another text.
    twin = text[:-1] + chr(ord(text[-1]) + 1)
    for wrong in (twin, text + "=", text[:-1], text.replace("ed25519", "ED25519"), "", text + "\n"):
        with pytest.raises(InvalidInputError, match="no key of a publisher"):
            read_key(wrong)


def test_what_another_key_signed_is_not_signed() -> None:
    one, two = Identity.new(), Identity.new()
    signature = one.sign(b"message")
    assert is_signed(one.publisher, b"message", signature)
    assert not is_signed(two.publisher, b"message", signature)
    assert not is_signed(one.publisher, b"massage", signature)
    assert not is_signed("nonsense", b"message", signature)
    assert not is_signed(one.publisher, b"message", b"short")
