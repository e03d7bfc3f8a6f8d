"""The key that a project publishes with: made on first use, kept with mode 600, replaced on demand."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.plain_files import read_plain
from cargobike.sharing.places import identity_folder

PREFIX: Final = "ed25519:"
_FILE: Final = "key"
_LENGTH: Final = 43
"""Characters of 32 bytes in base64url without the filling."""


class Identity:
    """A publisher who can sign.

    Args:
        private: The private key.
    """

    __slots__ = ("_private", "publisher")

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.publisher = write_key(private.public_key().public_bytes_raw())

    @classmethod
    def new(cls) -> Identity:
        """Make a key."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, seed: bytes) -> Identity:
        """Return the identity of 32 secret bytes."""
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    def sign(self, message: bytes) -> bytes:
        """Return the signature of some bytes, 64 bytes."""
        return self._private.sign(message)

    def secret_bytes(self) -> bytes:
        """Return the 32 bytes that make this identity; for its file only."""
        return self._private.private_bytes_raw()

    def __repr__(self) -> str:
        return f"Identity({self.publisher})"


def write_key(public: bytes) -> str:
    """Write a public key as text: `ed25519:` and base64url."""
    return PREFIX + base64.urlsafe_b64encode(public).rstrip(b"=").decode()


def read_key(publisher: str) -> bytes:
    """Return the 32 bytes of a public key.

    Raises:
        InvalidInputError: If the text is no key, or another way to write one.
    """
    encoded = publisher.removeprefix(PREFIX)
    if publisher.startswith(PREFIX) and len(encoded) == _LENGTH:
        try:
            public = base64.b64decode(encoded + "=", altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            public = b""
        # One key has one text: otherwise a block could be evaded by writing the key differently.
        if len(public) == 32 and write_key(public) == publisher:
            return public
    raise InvalidInputError(
        f"{publisher[:80]!r} is no key of a publisher, which is {PREFIX} and {_LENGTH} letters, digits, '-' and '_'."
    )


def is_signed(publisher: str, message: bytes, signature: bytes) -> bool:
    """Tell whether a publisher has signed some bytes; what is no key has signed nothing."""
    try:
        Ed25519PublicKey.from_public_bytes(read_key(publisher)).verify(signature, message)
    except (InvalidSignature, InvalidInputError, ValueError):
        return False
    return True


def short(publisher: str) -> str:
    """Return the beginning of a key, by which people tell publishers apart."""
    return publisher.removeprefix(PREFIX)[:10]


def load_identity(project: ProjectFolder) -> Identity:
    """Return the identity of a project; made if it has none.

    Raises:
        StoreError: If its file cannot be read or is damaged, or others can read it.
    """
    path = identity_folder(project) / _FILE
    if not path.exists():
        _write_new(path, Identity.new())
    try:
        if (mode := path.stat().st_mode & 0o777) & 0o077:
            raise StoreError(
                f"The key {path} can be read by others (mode {mode:o}). If only you have read it: chmod 600 {path}. "
                f"Otherwise replace it: cargobike share key --replace."
            )
        seed = read_plain(path)
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"The key {path} cannot be read: {error.strerror}.") from error
    if len(seed) != 32:
        raise StoreError(f"The key {path} has {len(seed)} bytes instead of 32; bring back a copy of it, or remove it.")
    return Identity.from_bytes(seed)


def replace_identity(project: ProjectFolder, new: Identity) -> Path:
    """Keep another key from now on; the old one stays beside it, and is returned as a path."""
    folder = identity_folder(project)
    old = load_identity(project)
    kept = folder / f"key.{short(old.publisher)}"
    if not kept.exists():
        os.link(folder / _FILE, kept)
    temporary = folder / f".key.{secrets.token_hex(8)}"
    write_identity(temporary, new)
    temporary.replace(folder / _FILE)
    return kept


def _write_new(path: Path, identity: Identity) -> None:
    """Write a key unless another process was faster: a link appears whole, or not at all."""
    temporary = path.with_name(f".key.{secrets.token_hex(8)}")
    write_identity(temporary, identity)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def write_identity(path: Path, identity: Identity) -> None:
    """Write a key into a file that is not there yet, for its owner only."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(identity.secret_bytes())
        file.flush()
        os.fsync(file.fileno())
