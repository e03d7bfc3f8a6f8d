"""What the server proves its name with: files that cannot be used are refused before it listens, in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from cargobike.core.errors import InvalidInputError
from cargobike.ui.web.serving import Certificate, check_certificate
from support.remote_server import make_certificate


def test_a_certificate_with_its_key_is_fine_in_two_files_or_one(tmp_path: Path) -> None:
    made = make_certificate(tmp_path)
    check_certificate(Certificate(made.file, made.key))
    both = tmp_path / "both.pem"
    both.write_bytes(made.key.read_bytes() + made.file.read_bytes())
    check_certificate(Certificate(both, both))


def test_what_cannot_be_used_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    made, other = make_certificate(tmp_path), make_certificate(tmp_path / "other")
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    key = serialization.load_pem_private_key(made.key.read_bytes(), None)
    locked = tmp_path / "locked.key"
    encryption = serialization.BestAvailableEncryption(b"secret")
    locked.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption))
    wrong = [
        (made.file, other.key),
        (text, made.key),
        (made.file, text),
        (made.file, locked),
        (tmp_path / "nothing.pem", made.key),
    ]
    for file, its_key in wrong:
        with pytest.raises(InvalidInputError, match="cannot be used with the key"):
            check_certificate(Certificate(file, its_key))
