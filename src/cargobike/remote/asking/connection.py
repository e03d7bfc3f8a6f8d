"""Asking a server: one request, one answer, within a deadline.

What only reads is asked again if the connection breaks; what changes something is sent once, on a connection of its
own, so that nothing is done twice. Redirects are not followed: they could lead a token elsewhere.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from cargobike.core import settings
from cargobike.core.errors import (
    AuthenticationError,
    ConnectionLostError,
    InvalidInputError,
    ServerRefusedError,
    WaitError,
)
from cargobike.core.version import __version__
from cargobike.remote.asking.address import Address
from cargobike.remote.asking.refusals import error_of

Value = str | int | float | bool | None | Sequence[str]
_Shape = TypeVar("_Shape")

API: Final = "/api/v1"
LONGEST_ANSWER: Final = 256 << 20
_ATTEMPTS: Final = 4
_FIRST_PAUSE_S: Final = 0.1
_AGAIN: Final = frozenset({502, 503, 504})
_CHUNK: Final = 1 << 20


class Connection:
    """Connections of this process to one server. May be used from several threads; each has a connection of its own.

    The token is part of no message, no log and no representation.
    """

    def __init__(
        self, address: Address, token: str | None, *, timeout_s: float, context: ssl.SSLContext | None
    ) -> None:
        if not timeout_s > 0:
            raise InvalidInputError(f"timeout_s is {timeout_s}; it must be more than 0 seconds.")
        self.address = address
        self.timeout_s = timeout_s
        self._token = token
        self._context = context
        self._kept = threading.local()

    def __repr__(self) -> str:
        return f"Connection({str(self.address)!r})"

    def __del__(self) -> None:
        if hasattr(self, "_kept"):
            self.close()

    def get(self, path: Sequence[str | int], shape: type[_Shape], /, **query: Value) -> _Shape:
        """Return what lies under a path, decoded; asked again if the connection breaks."""
        return self._decoded(self.read(path, query), shape)

    def read(self, path: Sequence[str | int], query: Mapping[str, Value], *, timeout_s: float | None = None) -> bytes:
        """Return what lies under a path as bytes; asked again if the connection breaks."""
        target = self._target(path, query)
        give_up_at = time.monotonic() + (timeout_s or self.timeout_s)
        pause_s = _FIRST_PAUSE_S
        for attempt in range(1, _ATTEMPTS + 1):
            is_last = attempt == _ATTEMPTS or time.monotonic() + pause_s > give_up_at
            try:
                status, body = self._ask("GET", target, None, give_up_at)
            except ConnectionLostError:
                if is_last:
                    raise
            else:
                if status < 300:
                    return body
                if status not in _AGAIN or is_last:
                    raise self._refusal(status, body)
            time.sleep(pause_s)
            pause_s *= 4
        raise AssertionError("the last attempt returned or raised")

    def post(
        self,
        path: Sequence[str | int],
        shape: type[_Shape],
        body: Mapping[str, object] | None = None,
        /,
        *,
        timeout_s: float | None = None,
        **query: Value,
    ) -> _Shape:
        """Ask for a change, once, and return what the server says about it."""
        give_up_at = time.monotonic() + (timeout_s or self.timeout_s)
        self.close()
        encoded = msgspec.json.encode(dict(body or {}))
        status, answered = self._ask("POST", self._target(path, query), encoded, give_up_at)
        if status >= 300:
            raise self._refusal(status, answered)
        return self._decoded(answered, shape)

    def close(self) -> None:
        """Close this thread's connection; the next question opens another."""
        kept: http.client.HTTPConnection | None = getattr(self._kept, "connection", None)
        if kept is not None and getattr(self._kept, "process", None) == os.getpid():
            kept.close()
        self._kept.connection = None

    def _target(self, path: Sequence[str | int], query: Mapping[str, Value]) -> str:
        inner = "/".join(quote(str(part), safe="") for part in path)
        pairs = [(name, _plain(value)) for name, value in query.items() if value is not None and value != ""]
        return f"{self.address.prefix}{API}/{inner}" + (f"?{urlencode(pairs, doseq=True)}" if pairs else "")

    def _ask(self, method: str, target: str, body: bytes | None, give_up_at: float) -> tuple[int, bytes]:
        headers = {"Accept": "application/json", "User-Agent": f"cargobike/{__version__}"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers |= {"Content-Type": "application/json", "X-Cargobike": "1"}
        try:
            connection = self._open(give_up_at)
            connection.request(method, target, body, headers)
            with connection.getresponse() as response:
                status, answered = response.status, self._read_body(connection, response, give_up_at)
            if response.will_close:
                self.close()
        except TimeoutError as error:
            self.close()
            raise WaitError(
                f"{self.address} has not answered in {self.timeout_s:g} s; is the server busy, or behind a wall?",
                missing=[str(self.address)],
            ) from error
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise AuthenticationError(
                f"{self.address} does not prove its name: {error.verify_message}. Is it your own certificate? Give the "
                f"authority behind it with ca_file=… ({settings.CA_FILE})."
            ) from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise ConnectionLostError(
                f"{self.address} cannot be reached: {_words(error)}. Is `cargobike ui` running there?"
            ) from error
        except BaseException:
            self.close()
            raise
        return status, answered

    def _open(self, give_up_at: float) -> http.client.HTTPConnection:
        kept: http.client.HTTPConnection | None = getattr(self._kept, "connection", None)
        if kept is None or self._kept.process != os.getpid():
            host, port = self.address.host, self.address.port
            kept = (
                http.client.HTTPSConnection(host, port, context=self._context)
                if self.address.is_tls
                else http.client.HTTPConnection(host, port)
            )
            self._kept.connection, self._kept.process = kept, os.getpid()
        kept.timeout = _left(give_up_at)
        if kept.sock is not None:
            kept.sock.settimeout(kept.timeout)
        return kept

    def _read_body(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse, give_up_at: float
    ) -> bytes:
        body = bytearray()
        while chunk := response.read(_CHUNK):
            body += chunk
            if len(body) > LONGEST_ANSWER:
                self.close()
                raise ServerRefusedError(f"{self.address} answers with more than {LONGEST_ANSWER >> 20} MiB.")
            if connection.sock is not None:
                connection.sock.settimeout(_left(give_up_at))
        return bytes(body)

    def _refusal(self, status: int, body: bytes) -> Exception:
        if 300 <= status < 400:
            return ServerRefusedError(
                f"{self.address} leads elsewhere, which is not followed; give the address behind it."
            )
        return error_of(status, body, str(self.address))

    def _decoded(self, body: bytes, shape: type[_Shape]) -> _Shape:
        try:
            return msgspec.json.decode(body, type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ServerRefusedError(
                f"{self.address} answers in a form that this version ({__version__}) does not know: {error}. "
                "Is it a server of Cargobike, of the same version?"
            ) from error


def _plain(value: Value) -> str | list[str]:
    if isinstance(value, bool):
        return "true" if value else "false"
    return [str(one) for one in value] if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def _left(give_up_at: float) -> float:
    left_s = give_up_at - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _words(error: Exception) -> str:
    with contextlib.suppress(AttributeError):
        if text := error.strerror:  # type: ignore[attr-defined]
            return str(text)
    return str(error) or type(error).__name__
