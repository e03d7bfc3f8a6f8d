"""From the body of a request to its answer: read, checked, queued, awaited, kept."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from cargobike.serving.front.desk.problems import Problem, Refused
from cargobike.serving.front.desk.routing import share_of
from cargobike.serving.front.desk.tickets import Ticket
from cargobike.serving.front.hub import Hub
from cargobike.serving.front.keeping import LogKeeper
from cargobike.serving.front.protocols.rows import Asked, RowCodec
from cargobike.serving.front.refusals import kept_rows
from cargobike.serving.front.web.access import Access
from cargobike.serving.front.web.answering import Reply, Request, problem_body
from cargobike.serving.front.web.rates import Rates

Reader = Callable[[bytes, RowCodec], Asked]

MOST_UNREAD: Final = 10_000
"""How many pieces of a streamed answer may wait for a caller that does not read them."""

_encoder: Final = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, since when and until when."""

    client: str
    arrived_s: float
    deadline_s: float

    def ticket(self, rows: list[Any], share: float, pinned: int = 0, *, streams: bool = False) -> Ticket:
        """Return a ticket for rows of this caller."""
        return Ticket(
            rows,
            client=self.client,
            arrived_s=self.arrived_s,
            deadline_s=self.deadline_s,
            share=share,
            pinned=pinned,
            streams=streams,
        )


class Predicting:
    """Answers requests for predictions.

    Args:
        hub: Where rows are answered.
        access: Who may ask.
        log: Where requests and answers are kept, if they are.
    """

    def __init__(self, hub: Hub, access: Access, log: LogKeeper | None) -> None:
        self._hub = hub
        self._access = access
        self._log = log
        if log is not None and log.keeps_all:
            hub.keep_batch = log.take_batch
        self._limits = hub.specification.limits
        self._rates = Rates(self._limits.requests_per_s)
        self._loop = asyncio.get_running_loop()

    @property
    def most_bytes(self) -> int:
        """The longest body."""
        return self._limits.body_bytes

    async def predict(self, request: Request, read: Reader, pinned: int = 0) -> Reply:
        """Return the answer to a request."""
        caller = self.caller_of(request)
        body = await request.body(self._limits.body_bytes)
        return Reply(200, await self.answer(request, caller, body, read, pinned))

    async def answer(self, request: Request, caller: Caller, body: bytes, read: Reader, pinned: int = 0) -> bytes:
        """Return the body of the answer to a request that has arrived whole; dropped when this is cancelled."""
        asked, share = self.read(request, caller, body, read, pinned)
        future: asyncio.Future[None] = self._loop.create_future()

        def wake(_: Ticket) -> None:
            if not future.done():
                future.set_result(None)

        ticket = caller.ticket(asked.rows, share, pinned)
        ticket.on_end = wake
        self.submit(request, ticket)
        try:
            await future
        except asyncio.CancelledError:
            self._hub.forget(ticket)
            raise
        finally:
            self.keep(request, ticket)
        if ticket.problem is not None:
            raise Refused(ticket.problem)
        return asked.reply(ticket.answers, ticket.version)

    def caller_of(self, request: Request) -> Caller:
        """Return who asks, and until when; raises `Refused` if the caller may not ask, or not now."""
        now_s = self._hub.now_s()
        client = self._admitted(request, now_s)
        return Caller(client, now_s, now_s + self._deadline_s(request))

    def submit(self, request: Request, ticket: Ticket) -> None:
        """Let a request in; raises `Refused` if it is not."""
        ticket.request_id = request.id
        try:
            self._hub.submit(ticket)
        except Refused as refusal:
            self._keep_refused(request, ticket, refusal.problem)
            raise

    def keep(self, request: Request, ticket: Ticket) -> None:
        """Log a request that has ended, unless it is logged with its batch."""
        if self._log is not None and not ticket.is_kept:
            self._log.take(request.id, ticket)

    async def stream(self, request: Request, read: Reader, content_type: bytes) -> None:
        """Send the answer to one row piece by piece, as server-sent events or one JSON value in each line.

        A problem before the first piece is answered as usual; one after it is the last piece.
        """
        caller = self.caller_of(request)
        body = await request.body(self._limits.body_bytes)
        asked, share = self.read(request, caller, body, _read_single(read), 0)
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        encode = _event if content_type == b"text/event-stream" else _line

        def pass_on(value: Any) -> None:
            if pieces.qsize() > MOST_UNREAD:
                self._hub.forget(ticket)
            pieces.put_nowait(encode(_encoder.encode(value)))

        ticket = caller.ticket(asked.rows, share, streams=True)
        ticket.on_end = lambda _: pieces.put_nowait(None)
        ticket.on_piece = pass_on
        self.submit(request, ticket)
        watch = asyncio.create_task(self._forget_when_gone(request, ticket))
        try:
            await _send_pieces(request, ticket, pieces, content_type)
        finally:
            watch.cancel()
            self.keep(request, ticket)

    async def _forget_when_gone(self, request: Request, ticket: Ticket) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self._hub.forget(ticket)

    def read(self, request: Request, caller: Caller, body: bytes, read: Reader, pinned: int) -> tuple[Asked, float]:
        """Return what a body asks for, checked, and the share that chooses a version."""
        hub = self._hub
        share = random.random()
        version = hub.desk.version_for(share, pinned)
        codec = hub.codec(version)
        try:
            asked = read(body, codec)
        except Refused as refusal:
            if self._log is not None:
                fields = [field.name for field in codec.inputs]
                rows = kept_rows(body, fields, hub.specification.logging.redact)
                self._keep_refused(request, caller.ticket(rows or [], share, version), refusal.problem)
            raise
        by = hub.desk.routes.by
        if by:
            row = codec.plain(asked.rows[:1])[0]
            share = share_of(row[by]) if isinstance(row, dict) and by in row else share
        return asked, share

    def _keep_refused(self, request: Request, ticket: Ticket, problem: Problem) -> None:
        """Log a request that was read and not let in."""
        ticket.version = ticket.pinned or self._hub.desk.version_for(ticket.share)
        ticket.status = problem.status
        ticket.ended_s = self._hub.now_s()
        self.keep(request, ticket)

    def _admitted(self, request: Request, now_s: float) -> str:
        """Return what to call the caller, if it may predict, and may do that now."""
        client = self._access.client_of(request.headers, request.address, "predict")
        if self._rates.per_s:
            wait_s = self._rates.wait_s(client, now_s)
            if wait_s:
                most = f"{self._rates.per_s:g} requests per second"
                raise Refused(Problem(429, "too-often", f"Each client may send {most}.", wait_s))
        return client

    def _deadline_s(self, request: Request) -> float:
        text = request.headers.get(b"x-deadline-s")
        if text is None:
            return self._limits.deadline_s
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0.0 < value <= 86400.0:
            given = text[:40].decode("latin-1")
            raise Refused(Problem(400, "wrong-deadline", f"X-Deadline-S is {given!r}; seconds above 0 are needed."))
        return value


async def _send_pieces(
    request: Request, ticket: Ticket, pieces: asyncio.Queue[bytes | None], content_type: bytes
) -> None:
    piece = await pieces.get()
    if piece is None and ticket.problem is not None:
        raise Refused(ticket.problem)
    headers = [(b"content-type", content_type), (b"x-request-id", request.id), (b"cache-control", b"no-store")]
    await request.send({"type": "http.response.start", "status": 200, "headers": headers})
    while piece is not None:
        await request.send({"type": "http.response.body", "body": piece, "more_body": True})
        piece = await pieces.get()
    last = b"event: end\ndata: {}\n\n" if content_type == b"text/event-stream" else b""
    if ticket.problem is not None:
        body = problem_body(ticket.problem, request.id)
        last = b"event: error\n" + _event(body) if last else _line(body)
    await request.send({"type": "http.response.body", "body": last})


def _read_single(read: Reader) -> Reader:
    """Return a reader that refuses several rows."""

    def read_single(body: bytes, codec: RowCodec) -> Asked:
        asked = read(body, codec)
        if len(asked.rows) != 1:
            problem = Problem(422, "too-many-rows", f"{len(asked.rows)} rows were sent; one at a time is streamed.")
            raise Refused(problem)
        return asked

    return read_single


def _event(body: bytes) -> bytes:
    return b"data: " + body + b"\n\n"


def _line(body: bytes) -> bytes:
    return body + b"\n"
