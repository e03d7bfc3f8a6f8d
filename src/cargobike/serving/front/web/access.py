"""Who may ask: tokens with scopes, and no pages of other origins."""

from __future__ import annotations

import functools
import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final, Literal
from urllib.parse import urlsplit

from cargobike.serving.front.desk.problems import Problem, Refused

Scope = Literal["predict", "administer"]

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class Access:
    """Decides before a body is read.

    Args:
        tokens: The SHA-256 of each token, and what it may be used for; with none, every caller may predict.
        host: The address that is listened on: on loopback, only requests for loopback are answered, so that no page
            whose name was bound to 127.0.0.1 gets anything.
    """

    def __init__(self, tokens: Mapping[str, Sequence[Scope]], host: str) -> None:
        self._tokens = [(bytes.fromhex(digest), frozenset(scopes)) for digest, scopes in tokens.items()]
        self._is_loopback = host in _LOOPBACK

    def client_of(self, headers: Mapping[bytes, bytes], address: str, scope: Scope) -> str:
        """Return what to call the caller, if it may ask for this; raises `Refused` if not."""
        if self._is_loopback and not _is_loopback_name(headers.get(b"host", b"")):
            raise Refused(
                Problem(421, "wrong-host", "This deployment answers to localhost and 127.0.0.1 only.", closes=True)
            )
        if b"origin" in headers or b"sec-fetch-site" in headers:
            _check_origin(headers)
        if not self._tokens:
            if scope == "predict":
                return address
            raise Refused(
                Problem(403, "no-token", "This deployment has no tokens, and is changed from its machine only.")
            )
        return self._known(headers.get(b"authorization", b""), scope)

    def _known(self, header: bytes, scope: Scope) -> str:
        scheme, _, token = header.partition(b" ")
        if scheme.lower() != b"bearer" or not token:
            raise Refused(Problem(401, "no-token", "A token is needed: send Authorization: Bearer …", closes=True))
        digest = sha256(token.strip()).digest()
        scopes: frozenset[str] | None = None
        for known, allowed in self._tokens:  # all of them, so that the time says nothing
            if hmac.compare_digest(known, digest):
                scopes = allowed
        if scopes is None:
            raise Refused(Problem(401, "wrong-token", "This token is not known here.", closes=True))
        if scope not in scopes:
            names = ", ".join(sorted(scopes)) or "nothing"
            raise Refused(Problem(403, "wrong-scope", f"This token is for: {names}. This needs: {scope}.", closes=True))
        return digest.hex()


@functools.lru_cache(maxsize=64)
def _is_loopback_name(header: bytes) -> bool:
    host = header.decode("latin-1")
    name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
    return name.strip("[]").lower() in _LOOPBACK


def _check_origin(headers: Mapping[bytes, bytes]) -> None:
    origin = headers.get(b"origin")
    is_foreign = headers.get(b"sec-fetch-site", b"none") not in (b"same-origin", b"none")
    if origin is not None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        is_foreign = is_foreign or urlsplit(origin.decode("latin-1")).netloc.lower() != host
    if is_foreign:
        raise Refused(Problem(403, "wrong-origin", "Pages of other origins get no answers here.", closes=True))
