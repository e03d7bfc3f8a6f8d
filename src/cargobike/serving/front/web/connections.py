"""Connections that take no longer than they may: to send a request, to read an answer, to say anything at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

LONGEST_HEAD: Final = 64 << 10
HEAD_S: Final = 20.0
"""How long a caller may take to send the line and the headers of a request, and a new one to say anything."""
BODY_S: Final = 60.0
"""How long a caller may take to send a body."""
READ_S: Final = 60.0
"""How long a caller may leave an answer unread."""


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

    def data_received(self, data: bytes) -> None:
        """Count what belongs to the head of a request."""
        if self.is_in_head:
            if not self.awaited_since_s:
                self.awaited_since_s = self.loop.time()
            self.head_bytes += len(data)
        super().data_received(data)
        if self.is_in_head and self.head_bytes > LONGEST_HEAD:
            self.refuse(b"431 Request Header Fields Too Large", b"the headers are too long")

    def on_headers_complete(self) -> None:
        """Begin to wait for the body."""
        self.is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Wait for nothing until the answer is sent."""
        super().on_message_complete()
        self.is_in_head = True
        self.head_bytes = 0
        self.awaited_since_s = 0.0

    def refuse(self, status: bytes, why: bytes) -> None:
        """Answer without the application, and close."""
        body = b'{"error":"' + why + b'"}'
        head = b"HTTP/1.1 " + status + b"\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: "
        if not self.transport.is_closing():
            cycle: RequestResponseCycle | None = self.cycle
            if cycle is None or not cycle.response_started or cycle.response_complete:
                self.transport.write(head + str(len(body)).encode() + b"\r\n\r\n" + body)
            self.transport.close()


def sweep(connections: Iterable[Any], now_s: float) -> None:
    """Close connections whose callers are too slow."""
    for connection in list(connections):
        if not isinstance(connection, Connection):
            continue
        patience_s = HEAD_S if connection.is_in_head else BODY_S
        if connection.awaited_since_s and now_s - connection.awaited_since_s > patience_s:
            connection.refuse(b"408 Request Timeout", b"the request took too long to arrive")
            connection.awaited_since_s = now_s
        if not connection.transport.get_write_buffer_size():
            connection.unread_since_s = 0.0
        elif not connection.unread_since_s:
            connection.unread_since_s = now_s
        elif now_s - connection.unread_since_s > READ_S:
            connection.transport.abort()
