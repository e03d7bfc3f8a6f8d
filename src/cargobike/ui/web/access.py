"""The rules of access to the dashboard's server: hosts it answers to, its token, and what callers may change."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from cargobike.ui.web.roles import Role
from cargobike.ui.web.tokens import TokenBook, cookie_for

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Access:
    """Rules that hold for every request.

    Attributes:
        hosts: Names in the `Host` header that are answered. A request from a page of another site whose
            name was made to point at this machine has that site's name, and is refused.
        any_address: Whether a bare IP address is answered too: it cannot be made to point elsewhere by a name server.
        token: What callers must send, unless they have one of the book; `None` if none is needed.
        most: The most that any caller may do here.
        book: Tokens that the project has given out, each with a role.
    """

    hosts: frozenset[str] = LOOPBACK_NAMES
    any_address: bool = False
    token: str | None = None
    most: Role = Role.ADMINISTER
    book: TokenBook | None = None

    def answers_to(self, host_header: str) -> bool:
        """Tell whether a request with this `Host` header is meant for this server."""
        host = host_of(host_header)
        if host is None:
            return False
        return host in self.hosts or (self.any_address and _is_address(host))

    def role_of_token(self, token: str) -> Role | None:
        """Return what the bearer of a token may do; `None` if it is not known. Compares in constant time."""
        if self.token is not None and hmac.compare_digest(token.encode(), self.token.encode()):
            return self.most
        return self._capped(self.book.role_of(token) if self.book is not None else None)

    def role_of_cookie(self, cookie: str) -> Role | None:
        """Return what a browser with a cookie may do; `None` if it is not known. Compares in constant time."""
        if self.token is not None and hmac.compare_digest(cookie.encode(), cookie_for(self.token).encode()):
            return self.most
        return self._capped(self.book.role_of_cookie(cookie) if self.book is not None else None)

    @property
    def role_without_token(self) -> Role | None:
        """What callers without a token may do; `None` if one is needed."""
        return self.most if self.token is None else None

    @property
    def has_tokens(self) -> bool:
        """Whether there is any token that a caller could send."""
        return self.token is not None or bool(self.book)

    def _capped(self, role: Role | None) -> Role | None:
        return None if role is None else role.at_most(self.most)


def access_for(
    host: str,
    *,
    names: Iterable[str] = (),
    token: str | None = None,
    most: Role = Role.ADMINISTER,
    book: TokenBook | None = None,
) -> Access:
    """Make the rules for a server that listens on `host`; a token is generated if one is needed and none given."""
    if is_loopback(host):
        hosts = LOOPBACK_NAMES | {host.lower(), *_lower(names)}
        return Access(hosts=hosts, token=token, most=most, book=book)
    own = {socket.gethostname(), socket.getfqdn(), host}
    return Access(
        hosts=LOOPBACK_NAMES | {*_lower(own), *_lower(names)},
        any_address=True,
        token=token or new_token(),
        most=most,
        book=book,
    )


def new_token() -> str:
    """Make a token that cannot be guessed."""
    return secrets.token_urlsafe(32)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a server that listens on `host`."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str | None:
    """Return the name or address in a `Host` header, without the port; `None` if it is malformed."""
    text = header.strip().lower()
    if text.startswith("["):
        inside, bracket, rest = text[1:].partition("]")
        return inside if bracket and _is_port(rest) else None
    host, colon, port = text.partition(":")
    return host if host and (not colon or port.isdigit()) else None


def _is_port(rest: str) -> bool:
    return rest == "" or (rest.startswith(":") and rest[1:].isdigit())


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _lower(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names if name}
