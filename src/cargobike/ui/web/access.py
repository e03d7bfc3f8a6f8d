"""The rules of access to the dashboard's server: hosts it answers to, its token, and what callers may change."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Access:
    """Rules that hold for every request.

    Attributes:
        hosts: Names in the `Host` header that are answered. A request from a page of another site whose
            name was made to point at this machine has that site's name, and is refused.
        any_address: Whether a bare IP address is answered too: it cannot be made to point elsewhere by a name server.
        token: What callers must send; `None` if none is needed.
        may_stop: Whether experiments can be stopped.
    """

    hosts: frozenset[str] = LOOPBACK_NAMES
    any_address: bool = False
    token: str | None = None
    may_stop: bool = True

    def answers_to(self, host_header: str) -> bool:
        """Tell whether a request with this `Host` header is meant for this server."""
        host = host_of(host_header)
        if host is None:
            return False
        return host in self.hosts or (self.any_address and _is_address(host))

    def accepts(self, token: str) -> bool:
        """Tell whether a token is the right one, in constant time."""
        return self.token is not None and hmac.compare_digest(token.encode(), self.token.encode())

    def accepts_cookie(self, cookie: str) -> bool:
        """Tell whether a cookie was made by `cookie`, in constant time."""
        return self.token is not None and hmac.compare_digest(cookie.encode(), self.cookie.encode())

    @property
    def cookie(self) -> str:
        """What a browser keeps instead of the token, which cannot be read from it."""
        return hmac.new((self.token or "").encode(), b"cargobike dashboard cookie", hashlib.sha256).hexdigest()


def access_for(host: str, *, names: Iterable[str] = (), token: str | None = None, may_stop: bool = True) -> Access:
    """Make the rules for a server that listens on `host`; a token is generated if one is needed and none given."""
    if is_loopback(host):
        hosts = LOOPBACK_NAMES | {host.lower(), *_lower(names)}
        return Access(hosts=hosts, token=token, may_stop=may_stop)
    own = {socket.gethostname(), socket.getfqdn(), host}
    return Access(
        hosts=LOOPBACK_NAMES | {*_lower(own), *_lower(names)},
        any_address=True,
        token=token or new_token(),
        may_stop=may_stop,
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
