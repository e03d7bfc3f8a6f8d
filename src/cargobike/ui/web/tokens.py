"""Tokens that a project gives out: each has a name, a role, and can be revoked.

The file holds no token, only what a token can be checked against. It stays on the machine that serves the project: it
is not carried to shared storage.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError, nearest, nearest_names
from cargobike.core.layout import ProjectFolder
from cargobike.ui.web.roles import Role

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class GivenToken(msgspec.Struct, frozen=True):
    """A token that was given out.

    Attributes:
        name: What people call it: whom or what it was made for.
        role: What its bearer may do.
        made_at: When, in seconds since 1970.
        token_digest: What the token is checked against.
        cookie_digest: What the cookie of a browser that showed the token is checked against.
    """

    name: str
    role: Role
    made_at: float
    token_digest: str
    cookie_digest: str


class TokenBook:
    """The tokens of one project. What another process adds or revokes counts from the next request on."""

    def __init__(self, project: ProjectFolder) -> None:
        self._file = project.root / "access" / "tokens.json"
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._tokens: dict[str, GivenToken] = {}

    def __bool__(self) -> bool:
        return bool(self._read())

    def all(self) -> list[GivenToken]:
        """Return the tokens that were given out, by name."""
        return sorted(self._read().values(), key=lambda token: token.name)

    def role_of(self, token: str) -> Role | None:
        """Return what the bearer of a token may do; `None` if it is not one of these."""
        return self._found(digest(token), "token_digest")

    def role_of_cookie(self, cookie: str) -> Role | None:
        """Return what a browser with a cookie may do; `None` if it was made for none of these tokens."""
        return self._found(digest(cookie), "cookie_digest")

    def create(self, name: str, role: Role) -> str:
        """Make a token and return it, which is the only time that it can be read.

        Raises:
            InvalidInputError: If the name cannot be used, or is in use.
        """
        if not _NAME.fullmatch(name):
            raise InvalidInputError(
                f"{name!r} cannot name a token: use letters, digits, '.', '_' and '-', at most 64, no sign first."
            )
        token = secrets.token_urlsafe(32)
        with self._changing() as tokens:
            if name in tokens:
                raise InvalidInputError(
                    f"There is a token called {name!r} already. Choose another name, or revoke it first: "
                    f"cargobike tokens revoke {name}"
                )
            tokens[name] = GivenToken(name, role, time.time(), digest(token), digest(cookie_for(token)))
        return token

    def revoke(self, name: str) -> None:
        """Take a token back; raises `NotFoundError`."""
        with self._changing() as tokens:
            if name not in tokens:
                raise NotFoundError(
                    f"There is no token called {name!r}.{nearest(name, sorted(tokens))}",
                    wanted=name,
                    nearest=nearest_names(name, sorted(tokens)),
                )
            del tokens[name]

    def _found(self, wanted: str, field: str) -> Role | None:
        role = None
        for token in self._read().values():
            if hmac.compare_digest(getattr(token, field), wanted):
                role = token.role
        return role

    def _read(self) -> dict[str, GivenToken]:
        with self._lock:
            try:
                status = self._file.stat()
            except FileNotFoundError:
                self._stamp, self._tokens = None, {}
                return {}
            stamp = status.st_mtime_ns, status.st_size, status.st_ino
            if stamp != self._stamp:
                self._tokens, self._stamp = _parsed(self._file), stamp
            return dict(self._tokens)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, GivenToken]]:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(self._file.with_name("lock")):
            tokens = _parsed(self._file) if self._file.exists() else {}
            yield tokens
            aside = self._file.with_name(f"tokens.{os.getpid()}.new")
            fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as out:
                out.write(msgspec.json.format(msgspec.json.encode(list(tokens.values()))))
                out.flush()
                os.fsync(out.fileno())
            aside.replace(self._file)


def cookie_for(token: str) -> str:
    """Return what a browser keeps instead of a token, which cannot be read from it."""
    return hmac.new(token.encode(), b"cargobike dashboard cookie", hashlib.sha256).hexdigest()


def digest(text: str) -> str:
    """Return what a token or a cookie is checked against; both are too long to be guessed."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _parsed(file: Path) -> dict[str, GivenToken]:
    try:
        tokens = msgspec.json.decode(file.read_bytes(), type=list[GivenToken])
    except msgspec.MsgspecError as error:
        raise StoreError(f"The tokens in {file} cannot be read: {error}. Delete the file to revoke all.") from error
    return {token.name: token for token in tokens}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
