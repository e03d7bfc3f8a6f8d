"""Callers that send too slowly, too much, or nothing; and those that do not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from cargobike.serving.front.web.connections import (
    BODY_S,
    HEAD_S,
    KEEP_ALIVE_S,
    LINGER_BYTES,
    LINGER_S,
    LONGEST_HEAD,
    READ_S,
    Connection,
    sweep,
)

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter, ServerState], Awaitable[None]]


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Read the whole body, and answer with as many bytes as the path says; or refuse to read it."""
    if scope["path"] == "/refuse":
        headers = [(b"content-length", b"2"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": b"no"})
        return
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message.get("more_body", False)
    size = int(scope["path"].strip("/") or 2)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(size).encode())]})
    await send({"type": "http.response.body", "body": b"x" * size})


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, ServerState]]:
    config = uvicorn.Config(app, http=Connection, lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(config, state, {}), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            while not state.connections:
                await asyncio.sleep(0)
            yield reader, writer, state
        finally:
            writer.close()
            for connection in list(state.connections):
                connection.transport.abort()
            await asyncio.sleep(0)


def talk(conversation: Talk) -> None:
    async def run() -> None:
        async with connected() as (reader, writer, state):
            await asyncio.wait_for(conversation(reader, writer, state), 20)

    asyncio.run(run())


def later(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


def test_a_connection_that_says_nothing_is_closed() -> None:
    async def conversation(reader: asyncio.StreamReader, _: asyncio.StreamWriter, state: ServerState) -> None:
        sweep(state.connections, later(HEAD_S - 1))
        assert len(state.connections) == 1
        sweep(state.connections, later(HEAD_S + 1))
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")

    talk(conversation)


@pytest.mark.parametrize(
    ("sent", "patience_s"),
    [(b"POST / HTTP/1.1\r\nHost: a\r\n", HEAD_S), (b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc", BODY_S)],
)
def test_a_request_that_does_not_come_to_its_end_is_answered_with_408(sent: bytes, patience_s: float) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, state: ServerState) -> None:
        writer.write(sent)
        [connection] = state.connections
        assert isinstance(connection, Connection)
        while not connection.head_bytes:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        sweep(state.connections, later(patience_s - 1))
        assert not connection.transport.is_closing()
        sweep(state.connections, later(patience_s + 1))
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")

    talk(conversation)


def test_a_connection_that_was_answered_is_not_awaited() -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, state: ServerState) -> None:
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await reader.readuntil(b"xx")
            sweep(state.connections, later(KEEP_ALIVE_S - 1))
        assert len(state.connections) == 1
        sweep(state.connections, later(KEEP_ALIVE_S + 1))
        assert await reader.read() == b""

    talk(conversation)


def test_headers_without_end_are_refused() -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: ServerState) -> None:
        writer.write(b"GET / HTTP/1.1\r\n")
        for number in range(LONGEST_HEAD // 1000 + 10):
            writer.write(b"X-%d: " % number + b"a" * 1000 + b"\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 431 ")

    talk(conversation)


def test_a_caller_that_sends_all_before_it_reads_gets_its_refusal() -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: ServerState) -> None:
        writer.write(b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 30000000\r\n\r\n")
        for _number in range(30):
            writer.write(b"x" * 1_000_000)
            await writer.drain()
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert answer.endswith(b"no")

    talk(conversation)


@pytest.mark.parametrize("is_slow", [True, False])
def test_a_refused_caller_that_does_not_come_to_its_end_is_closed(is_slow: bool) -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, state: ServerState) -> None:
        writer.write(b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\nabc")
        await reader.readuntil(b"no")
        [connection] = state.connections
        assert isinstance(connection, Connection)
        sweep(state.connections, later(LINGER_S - 1))
        assert not connection.transport.is_closing()
        if is_slow:
            sweep(state.connections, later(LINGER_S + 1))
        else:
            connection.lingered_bytes = LINGER_BYTES
            writer.write(b"one more")
        assert await reader.read() == b""

    talk(conversation)


def test_a_caller_that_does_not_read_its_answer_is_cut_off() -> None:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, state: ServerState) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /50000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        [connection] = state.connections
        assert isinstance(connection, Connection)
        while not connection.transport.get_write_buffer_size():
            await asyncio.sleep(0.001)
        sweep(state.connections, later(0))
        sweep(state.connections, later(READ_S + 1))
        await asyncio.sleep(0.01)
        assert not state.connections

    talk(conversation)
