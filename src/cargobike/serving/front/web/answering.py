"""Requests and answers as the application sees them, and how answers are sent."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec

from cargobike.serving.front.desk.problems import Problem, Refused

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON: Final = b"application/json"
CLOSE: Final = (b"connection", b"close")

_encoder: Final = msgspec.json.Encoder()
_prefix: Final = os.urandom(5).hex()
_numbers: Final = itertools.count(1)
_REQUEST_ID: Final = re.compile(rb"[\x21-\x7e]{1,128}")


class Request:
    """One request.

    Attributes:
        method: Such as `GET`.
        path: Decoded.
        query: What follows the `?`.
        headers: By name in lower case; the last of a name counts.
        address: The caller's.
        id: What the caller calls it (`X-Request-Id`), or a name of ours.
    """

    __slots__ = ("address", "headers", "id", "method", "path", "query", "receive", "send")

    def __init__(self, scope: Message, receive: Receive | None = None, send: Send | None = None) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        client = scope.get("client")
        self.address: str = client[0] if client else ""
        self.receive = cast(Receive, receive)
        self.send = cast(Send, send)
        given = self.headers.get(b"x-request-id")
        if given is not None and _REQUEST_ID.fullmatch(given):
            self.id = given
        else:
            self.id = f"{_prefix}-{next(_numbers):x}".encode()

    async def body(self, limit: int) -> bytes:
        """Return the body, counted as it arrives; raises `Refused` if it is too long, or does not come."""
        stated = self.headers.get(b"content-length")
        if stated is not None and len(stated) < 20 and int(stated) > limit:
            raise _too_long(limit)
        message = await self.receive()
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            parts, length = [body], len(body)
            while message.get("more_body") and length <= limit:
                message = await self.receive()
                parts.append(message.get("body", b""))
                length += len(parts[-1])
            body = b"".join(parts)
        if message["type"] == "http.disconnect":
            raise Refused(Problem(499, "caller-gone", "The caller has closed the connection.", closes=True))
        if len(body) > limit:
            raise _too_long(limit)
        return body


@dataclass(frozen=True, slots=True)
class Reply:
    """What is sent back."""

    status: int
    body: bytes
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


def json_reply(value: Any, status: int = 200) -> Reply:
    """Return plain values as a JSON answer."""
    return Reply(status, _encoder.encode(value))


def problem_reply(problem: Problem, request_id: bytes) -> Reply:
    """Return a problem as an answer."""
    headers: list[tuple[bytes, bytes]] = []
    if problem.retry_after_s:
        headers.append((b"retry-after", str(math.ceil(problem.retry_after_s)).encode()))
    if problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if problem.closes:
        headers.append(CLOSE)
    return Reply(problem.status, problem_body(problem, request_id), headers=tuple(headers))


def problem_body(problem: Problem, request_id: bytes) -> bytes:
    """Return a problem as JSON: `error` for people, `kind` for programs, `mistakes` if there are some."""
    content: dict[str, Any] = {"error": problem.message, "kind": problem.kind, "request_id": request_id.decode()}
    if problem.mistakes:
        content["mistakes"] = problem.mistakes
    return _encoder.encode(content)


def headers_of(reply: Reply, request_id: bytes) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer that is sent whole."""
    return [
        (b"content-type", reply.content_type),
        (b"content-length", str(len(reply.body)).encode()),
        (b"x-request-id", request_id),
        *reply.headers,
    ]


async def send_reply(request: Request, reply: Reply) -> None:
    """Send an answer whole."""
    headers = headers_of(reply, request.id)
    await request.send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await request.send({"type": "http.response.body", "body": reply.body})


def _too_long(limit: int) -> Refused:
    return Refused(
        Problem(413, "body-too-long", f"The body is longer than {limit} bytes. Send fewer rows at once.", closes=True)
    )
