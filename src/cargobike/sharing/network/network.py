"""A private network: its name, and what shows that a process belongs to it: a secret, a list of keys, or both."""

from __future__ import annotations

import hashlib
import hmac
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.plain_files import read_plain
from cargobike.sharing.identity.keys import read_key
from cargobike.sharing.places import check_network, network_folder

LEAST_SECRET: Final = 16
_MOST_FILE_BYTES: Final = 1 << 20
_OPEN: Final = b"cargobike share network without a secret\0"
_SALT: Final = b"cargobike share network\0"


@dataclass(frozen=True, slots=True)
class Network:
    """What a member must know and be.

    Attributes:
        name: What people call it.
        key: 32 bytes that every member can compute, and with a secret no one else.
        members: The keys that belong to it; `None` if everyone who knows the secret does.
        has_secret: Whether the key is one that strangers lack.
    """

    name: str
    key: bytes = field(repr=False)
    members: frozenset[str] | None
    has_secret: bool

    def admits(self, publisher: str) -> bool:
        """Tell whether a key belongs to the network, as far as a list says so."""
        return self.members is None or publisher in self.members

    def derived(self, purpose: bytes) -> bytes:
        """Return a key for another purpose, which says nothing about this one."""
        return hmac.digest(self.key, b"cargobike share derived\0" + purpose, "sha256")


def make_network(name: str, *, secret: str = "", members: Iterable[str] | None = None) -> Network:
    """Return a network from what its members share.

    Args:
        name: Its name.
        secret: At least 16 characters that only members know.
        members: Keys of its members.

    Raises:
        InvalidInputError: If there is neither, or what is given cannot be used; says nothing of the secret itself.
    """
    check_network(name)
    keys = None if members is None else frozenset(members)
    for key in keys or ():
        read_key(key)
    if not secret and keys is None:
        raise InvalidInputError(
            f"The network {name!r} has neither a secret nor a list of keys. Set {settings.SHARE_SECRET}, or give a "
            f"file with the secret, or one with the keys of its members, one `ed25519:…` in each line."
        )
    if secret and len(secret) < LEAST_SECRET:
        raise InvalidInputError(
            f"The secret of the network {name!r} has {len(secret)} characters; it needs at least {LEAST_SECRET}. "
            f"Make one: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if not secret:
        return Network(name, hashlib.sha256(_OPEN + name.encode()).digest(), keys, has_secret=False)
    # Slow on purpose: who has recorded a handshake can try secrets against it, and people choose short ones.
    derived = hashlib.scrypt(secret.encode(), salt=_SALT + name.encode(), n=2**14, r=8, p=1, dklen=32)
    return Network(name, derived, keys, has_secret=True)


def open_network(
    project: ProjectFolder, name: str, *, secret_file: Path | str | None = None, members_file: Path | str | None = None
) -> Network:
    """Return a network by its name; its secret is in the environment, in a file that is named, or kept in the project.

    Raises:
        InvalidInputError: If there is none, or it cannot be used.
        StoreError: If a file cannot be read, or others can read the secret.
    """
    folder = network_folder(project, name)
    secret = settings.share_secret()
    if secret_file is not None:
        secret = _secret_in(Path(secret_file))
    elif not secret and (folder / "secret").exists():
        secret = _secret_in(folder / "secret")
    listed = Path(members_file) if members_file is not None else folder / "members"
    members = _keys_in(listed) if members_file is not None or listed.exists() else None
    return make_network(name, secret=secret, members=members)


def _secret_in(path: Path) -> str:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = read_plain(path)
    except OSError as error:
        raise StoreError(f"The file {path} with the network's secret cannot be read: {error.strerror}.") from error
    if mode & 0o077:
        raise StoreError(f"The file {path} with the network's secret can be read by others: chmod 600 {path}.")
    return text[:_MOST_FILE_BYTES].decode(errors="replace").strip()


def _keys_in(path: Path) -> list[str]:
    """Return the keys in a file: one in each line, with a comment behind a blank if one likes."""
    try:
        lines = read_plain(path)[:_MOST_FILE_BYTES].decode(errors="replace").splitlines()
    except OSError as error:
        raise StoreError(f"The file {path} with the members' keys cannot be read: {error.strerror}.") from error
    words = [line.split()[0] for line in lines if line.strip() and not line.lstrip().startswith("#")]
    for number, word in enumerate(words, 1):
        try:
            read_key(word)
        except InvalidInputError as error:
            raise InvalidInputError(f"Key {number} in {path}: {error}") from error
    return words
