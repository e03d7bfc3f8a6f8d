"""Connections that take no longer than they may: to send a request, to read an answer, to say anything at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from cargobike.serving.front.web.answering import CLOSE, Reply, headers_of

if TYPE_CHECKING:
    from uvicorn._types import HTTPScope

LONGEST_HEAD: Final = 64 << 10
HEAD_S: Final = 20.0
"""How long a caller may take to send the line and the headers of a request, and a new one to say anything."""
BODY_S: Final = 60.0
"""How long a caller may take to send a body."""
READ_S: Final = 60.0
"""How long a caller may leave an answer unread."""
LINGER_S: Final = 10.0
"""How long what a caller still sends is thrown away after it was refused: many read no answer before all is sent."""
LINGER_BYTES: Final = 256 << 20
"""How much of that at most."""
KEEP_ALIVE_S: Final = 75.0
"""How long a connection is kept for the next request."""

_USUAL: Final = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\nx-request-id: %b\r\n\r\n%b"
"""What most answers look like."""


class Lane(Protocol):
    """The short way for requests that need no task."""

    def begin(self, scope: dict[str, Any]) -> Callable[[bytes, Exchange], None] | None:
        """Return what to call with the body of a request; `None` if the application is to answer it."""
        ...


class Connection(HttpToolsProtocol):
    """A connection of uvicorn that remembers since when it waits for its caller.

    Nothing is set or cancelled for each request: `sweep` looks at all of them once in a while.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self.awaited_since_s = self.loop.time()
        self.unread_since_s = 0.0
        self.is_in_head = True
        self.head_bytes = 0
        self.idle_since_s = 0.0
        self.lingers_since_s = 0.0
        self.lingered_bytes = 0
        self.is_last_request: bool = getattr(self.app, "is_leaving", False)
        self.lane: Lane | None = getattr(self.app, "lane", None)
        self.submit: Callable[[bytes, Exchange], None] | None = None

    def on_message_begin(self) -> None:
        """Begin a request, with what our application looks at."""
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        scope: dict[str, Any] = {"type": "http", "client": self.client, "headers": self.headers}
        self.scope = cast("HTTPScope", scope)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to the head of a request, and what comes after a refusal."""
        self.idle_since_s = 0.0
        if self.lingers_since_s:
            self.lingered_bytes += len(data)
            if self.lingered_bytes > LINGER_BYTES:
                self.transport.close()
                return
        if self.is_in_head:
            if not self.awaited_since_s:
                self.awaited_since_s = self.loop.time()
            self.head_bytes += len(data)
        super().data_received(data)
        if self.is_in_head and self.head_bytes > LONGEST_HEAD:
            self.refuse(b"431 Request Header Fields Too Large", b"the headers are too long")

    def on_headers_complete(self) -> None:
        """Begin an exchange, and to wait for its body; a request that came before the last answer waits."""
        self.is_in_head = False
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        scope = self.scope
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["query_string"] = url.query or b""
        last = cast("Exchange | None", self.cycle)  # there is none before the first request
        self.cycle = Exchange(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=not self.is_last_request
            and self.parser.get_http_version() != "1.0"
            and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if last is None or last.response_complete:
            self.submit = self.lane.begin(cast("dict[str, Any]", scope)) if self.lane is not None else None
            if self.submit is None:
                self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_message_complete(self) -> None:
        """Wait for nothing until the answer is sent."""
        super().on_message_complete()
        self.is_in_head = True
        self.head_bytes = 0
        self.awaited_since_s = 0.0
        if self.lingers_since_s:
            self.transport.close()
        submit, self.submit = self.submit, None
        if submit is not None:
            submit(bytes(self.cycle.body), cast("Exchange", self.cycle))

    def on_response_complete(self) -> None:
        """Take up the next request, if it came already; otherwise be idle, which `sweep` ends."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.cycle.response_complete and not self.cycle.keep_alive:
            self.lingers_since_s = self.loop.time()
        elif self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self.idle_since_s = self.loop.time()

    def refuse(self, status: bytes, why: bytes) -> None:
        """Answer without the application, and close."""
        body = b'{"error":"' + why + b'"}'
        head = b"HTTP/1.1 " + status + b"\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: "
        if not self.transport.is_closing():
            cycle = cast("RequestResponseCycle | None", self.cycle)  # there is none before the first request
            if cycle is None or not cycle.response_started or cycle.response_complete:
                self.transport.write(head + str(len(body)).encode() + b"\r\n\r\n" + body)
            self.transport.close()


class Exchange(RequestResponseCycle):
    """A request and its answer; one that is sent whole is written at once, since a system call costs more than we do.

    uvicorn writes the head and the body of an answer one after the other, and looks for forbidden characters in every
    header. Ours are made here, but for the request's id, which was checked.
    """

    async def send(self, message: Any) -> None:
        """Write an answer; its head waits for what follows."""
        if message["type"] == "http.response.start":
            self.response_started = True
            self.waiting_for_100_continue = False
            self._start = message
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        more: bool = message.get("more_body", False)
        body: bytes = message["body"]
        if self.chunked_encoding is None:
            self.chunked_encoding = more
            head = self._head(self._start["status"], self._start["headers"])
            if self.scope["method"] == "HEAD":
                body = b""
            body = head + (_chunk(body) if more else body)
        elif self.chunked_encoding:
            body = _chunk(body) if more else _chunk(body) + b"0\r\n\r\n"
        self.transport.write(body)
        if not more:
            self._finish()

    def reply(self, reply: Reply, request_id: bytes) -> None:
        """Write a whole answer, without waiting."""
        if self.disconnected or self.response_complete:
            return
        self.response_started = True
        if reply.status == 200 and self.keep_alive and not reply.headers:
            self.transport.write(_USUAL % (reply.content_type, len(reply.body), request_id, reply.body))
        else:
            self.transport.write(self._head(reply.status, headers_of(reply, request_id)) + reply.body)
        self._finish()

    def _finish(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive and not self.more_body:
            self.transport.close()
        self.on_response()

    def _head(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        lines = [STATUS_LINE[status]]
        for name, value in headers:
            lines += (name, b": ", value, b"\r\n")
        if CLOSE in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close\r\n")
        if self.chunked_encoding:
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        return b"".join(lines)


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body) if body else b""


def part(connections: Iterable[Any]) -> None:
    """Have connections end with the answer to the request that is there, or else to the next one.

    One that is closed without a request may meet one that is on its way, which its caller would see fail.
    """
    for connection in list(connections):
        if isinstance(connection, Connection):
            connection.is_last_request = True
            cycle = cast("Exchange | None", connection.cycle)  # there is none before the first request
            if cycle is not None and not cycle.response_complete:
                cycle.keep_alive = False


def sweep(connections: Iterable[Any], now_s: float) -> None:
    """Close connections whose callers are too slow."""
    for connection in list(connections):
        if not isinstance(connection, Connection):
            continue
        patience_s = HEAD_S if connection.is_in_head else BODY_S
        if connection.awaited_since_s and now_s - connection.awaited_since_s > patience_s:
            connection.refuse(b"408 Request Timeout", b"the request took too long to arrive")
            connection.awaited_since_s = now_s
        if connection.idle_since_s and now_s - connection.idle_since_s > KEEP_ALIVE_S:
            connection.transport.close()
        if connection.lingers_since_s and now_s - connection.lingers_since_s > LINGER_S:
            connection.transport.close()
        if not connection.transport.get_write_buffer_size():
            connection.unread_since_s = 0.0
        elif not connection.unread_since_s:
            connection.unread_since_s = now_s
        elif now_s - connection.unread_since_s > READ_S:
            connection.transport.abort()
