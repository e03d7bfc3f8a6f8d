"""Where a server is, and whether a token may be sent there."""

from __future__ import annotations

import ipaddress
import ssl
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from cargobike.core import settings
from cargobike.core.errors import InvalidInputError


class Address(NamedTuple):
    """Where a server is.

    Attributes:
        is_tls: Whether the connection is encrypted, and the server proves its name.
        host: Its name or address.
        port: Its port.
        prefix: What stands before `/api/v1` where a proxy put it there; empty otherwise.
    """

    is_tls: bool
    host: str
    port: int
    prefix: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}{self.prefix}"

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine, so that nothing travels over a network."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """Return the address of a server: `https://tower:8520`.

    Raises:
        InvalidInputError: If it is none; a password in it is not repeated.
    """
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as error:
        raise InvalidInputError(
            f"That is no address of a server: {error}. Give one such as https://tower:8520."
        ) from None
    if "@" in parts.netloc:
        raise InvalidInputError("The address of a server holds no user and no password; give the token apart from it.")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInputError(f"{text!r} is no address of a server; give one such as https://tower:8520.")
    if parts.query or parts.fragment:
        raise InvalidInputError(
            f"{parts.scheme}://{parts.netloc} is the address; leave out what follows it. "
            "What stands behind # is the token: give it apart."
        )
    is_tls = parts.scheme == "https"
    prefix = parts.path.rstrip("/").removesuffix("/api/v1")
    return Address(is_tls, parts.hostname.lower(), port or (443 if is_tls else 80), prefix)


def check_private(address: Address, *, has_token: bool, allow_http: bool) -> None:
    """Check that a token would not travel in the clear.

    Raises:
        InvalidInputError: If it would, and that was not allowed.
    """
    if has_token and not address.is_tls and not address.is_here and not allow_http:
        raise InvalidInputError(
            f"The token would travel to {address} unencrypted, readable on the way. Use https://, or an "
            "SSH tunnel (ssh -L 8520:127.0.0.1:8520 HOST, then http://127.0.0.1:8520), or allow it: allow_http=True "
            f"({settings.ALLOW_HTTP}=1)."
        )


def tls_context(ca_file: str | Path | None) -> ssl.SSLContext:
    """Return how servers are checked: against the authorities of this machine, or those in a file.

    Raises:
        InvalidInputError: If the file holds no certificates.
    """
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise InvalidInputError(
            f"The certificates in {ca_file} cannot be used ({error}); give a file in PEM form."
        ) from error
