"""What every request passes first: host, size, token, origin; and headers of every answer."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cargobike.ui.answers import Problem
from cargobike.ui.web.access import Access
from cargobike.ui.web.permissions import admit
from cargobike.ui.web.roles import Role

LONGEST_BODY: Final = 64 << 10
LONGEST_TARGET: Final = 48 << 10
OWN_HEADER: Final = "x-cargobike"
"""A header that no form can send, and no page of another origin without permission, which is never given."""

_OPEN_PATHS: Final = ("/static/", "/login", "/healthz")
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_METHODS: Final = _SAFE_METHODS | {"POST"}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """An ASGI layer around the whole application.

    Guarantees: nothing inside sees a request for another host, a body longer than `LONGEST_BODY`, a request without
    a token where one is needed, or a change that was not asked for by a page of ours or by a program on purpose. What
    comes inside has a role, which routes are checked against (`permissions.check_role`).
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_private = not scope["path"].startswith("/static/")

        async def send_dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if is_private:
                    headers.setdefault("cache-control", "no-store")
            await send(message)

        problem = self._problem(scope, Headers(scope=scope))
        if problem is not None:
            await _refuse(scope, send_dressed, *problem)
            return
        if scope["method"] in _SAFE_METHODS:
            await self._app(scope, receive, send_dressed)
            return
        body = await _read_body(receive)
        if body is None:
            await _refuse(scope, send_dressed, 413, f"The body is longer than {LONGEST_BODY} bytes.")
            return
        await self._app(scope, _Again(body, receive).receive, send_dressed)

    def _problem(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if not self._access.answers_to(headers.get("host", "")):
            return 421, "This server does not answer to that host name; start it with --allow-host NAME if it should."
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_TARGET:
            return 414, f"The address is longer than {LONGEST_TARGET} bytes."
        if not _is_text(scope["query_string"]):
            return 400, "What follows the ? of the address is not UTF-8; write other bytes as %XX."
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LONGEST_BODY:
            return 413, f"The body is longer than {LONGEST_BODY} bytes."
        role = self._role(scope, headers)
        if role is None:
            return 401, "A token is needed: open the address that the server printed, or send Authorization: Bearer …"
        admit(scope, role)
        if scope["method"] not in _METHODS:
            return 405, f"Nothing here is asked for with {scope['method'][:20]}."
        if scope["method"] not in _SAFE_METHODS:
            return self._foreign(scope, headers)
        return None

    def _role(self, scope: Scope, headers: Headers) -> Role | None:
        """Return what the caller may do; `None` if a token is needed that is missing or wrong."""
        if scope["path"].startswith(_OPEN_PATHS):
            return Role.READ
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._access.has_tokens:
            return self._access.role_of_token(token.strip())
        cookie = _cookie(headers.get("cookie", ""), cookie_name(scope))
        role = self._access.role_of_cookie(cookie) if cookie else None
        return role or self._access.role_without_token

    def _foreign(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Say why a change looks as if a page of another origin had asked for it."""
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 415, "Changes are asked for with Content-Type: application/json."
        if OWN_HEADER not in headers:
            return 403, "Changes need the header X-Cargobike, with any value."
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return 403, "A page of another origin must not change anything here."
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
            return 403, "A page of another origin must not change anything here."
        return None


def cookie_name(scope: Scope) -> str:
    """Return the name of our cookie: with the port, because browsers share cookies between the ports of a host."""
    server = scope.get("server") or ("", 0)
    return f"cargobike_{server[1]}"


def _is_text(query: bytes) -> bool:
    try:
        query.decode()
    except UnicodeDecodeError:
        return False
    return True


async def _read_body(receive: Receive) -> bytes | None:
    """Return the body, `None` if it is too long: it is counted as it arrives; the stated length may be wrong."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""  # the caller is gone
        body += message.get("body", b"")
        if len(body) > LONGEST_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


class _Again:
    """Returns a body that was read already, and then the messages after it."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def receive(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


def _cookie(header: str, name: str) -> str:
    try:
        cookie = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value


async def _refuse(scope: Scope, send: Send, status: int, why: str) -> None:
    is_page = status == 401 and scope["method"] == "GET" and not scope["path"].startswith("/api/")
    headers = [(b"content-type", b"application/json")]
    if is_page:
        status, headers = 303, [*headers, (b"location", b"/login")]
    elif status == 405:
        headers.append((b"allow", b"GET, POST"))
    elif status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    body = msgspec.json.encode(Problem(why))
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
