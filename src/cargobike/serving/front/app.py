"""The ASGI application: finds out what is asked for, and by whom; everything else is done elsewhere."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from cargobike.core.errors import nearest
from cargobike.core.version import __version__
from cargobike.serving.front.desk.problems import Problem, Refused
from cargobike.serving.front.desk.routing import share_of
from cargobike.serving.front.desk.tickets import Ticket
from cargobike.serving.front.hub import Hub
from cargobike.serving.front.protocols import kserve_v1, open_inference, plain
from cargobike.serving.front.protocols.rows import Asked, RowCodec
from cargobike.serving.front.web.access import Access
from cargobike.serving.front.web.answering import (
    Message,
    Receive,
    Reply,
    Request,
    Send,
    json_reply,
    problem_reply,
    send_reply,
)
from cargobike.serving.front.web.metrics import Metrics
from cargobike.serving.front.web.rates import Rates
from cargobike.serving.inference import Log

Reader = Callable[[bytes, RowCodec], Asked]

_V2: Final = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?(/ready|/infer)?")
_V1: Final = re.compile(r"/v1/models/([^/:]+)(:predict)?")
_VERBS: Final = ("roll", "rollback", "scale", "status", "stop")
_log: Final = logging.getLogger(__name__)


class App:
    """Answers requests.

    Args:
        hub: Where rows are answered.
        access: Who may ask.
        log: Where requests and answers are kept.
    """

    def __init__(self, hub: Hub, access: Access, log: Log) -> None:
        self._hub = hub
        self._access = access
        self._log = log
        self._limits = hub.specification.limits
        self._rates = Rates(self._limits.requests_per_s)
        self._names = (hub.specification.name, hub.specification.model.partition("@")[0].partition(":")[0])
        self._loop = asyncio.get_running_loop()
        self.metrics = Metrics(hub.desk, hub.specification.name)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send)
        try:
            reply = await self._reply(request)
        except Refused as refusal:
            reply = problem_reply(refusal.problem, request.id)
        except Exception:  # noqa: BLE001 - the caller gets an answer, the log the traceback
            _log.exception("a request could not be answered")
            reply = problem_reply(Problem(500, "internal", "This is a mistake of the server."), request.id)
        self.metrics.count(reply.status)
        await send_reply(request, reply)

    async def _reply(self, request: Request) -> Reply:
        path = request.path
        if path == "/predict":
            return await self._predict(request, plain.read)
        if path.startswith("/v2"):
            return await self._open_inference(request)
        if path.startswith("/v1/models/"):
            return await self._kserve_v1(request)
        if path.startswith("/admin/"):
            return await self._administer(request, path.removeprefix("/admin/"))
        return self._look(request)

    def _look(self, request: Request) -> Reply:
        """Answer what can be looked at without a token, and metrics."""
        _check_method(request, "GET")
        if request.path == "/healthz":
            return json_reply({"status": "ok"})
        self._access.client_of(request.headers, request.address, "predict")
        if request.path == "/metrics":
            return Reply(200, self.metrics.text(), b"text/plain; version=0.0.4; charset=utf-8")
        raise Refused(Problem(404, "no-such-path", f"There is nothing at {request.path}."))

    # --- protocols ----------------------------------------------------------------------------------------------------

    async def _open_inference(self, request: Request) -> Reply:
        path = request.path.rstrip("/")
        if path == "/v2":
            return json_reply({"name": "cargobike", "version": __version__, "extensions": []})
        if path == "/v2/health/live":
            return json_reply({"live": True})
        if path == "/v2/health/ready":
            return self._readiness()
        match = _V2.fullmatch(path)
        if match is None:
            raise Refused(Problem(404, "no-such-path", f"There is nothing at {request.path}."))
        name = self._known_name(match[1])
        pinned = self._known_version(match[2])
        if match[3] == "/infer":
            return await self._predict(request, lambda body, codec: open_inference.read(body, codec, name), pinned)
        _check_method(request, "GET")
        if match[3] == "/ready":
            return self._readiness(pinned)
        self._access.client_of(request.headers, request.address, "predict")
        desk = self._hub.desk
        versions = sorted({*desk.routed, *desk.replicas.values()})
        codec = self._hub.codec(desk.version_for(0.0, pinned))
        return json_reply(open_inference.metadata(name, [pinned] if pinned else versions, codec))

    async def _kserve_v1(self, request: Request) -> Reply:
        match = _V1.fullmatch(request.path)
        if match is None:
            raise Refused(Problem(404, "no-such-path", f"There is nothing at {request.path}."))
        name = self._known_name(match[1])
        if match[2]:
            return await self._predict(request, kserve_v1.read)
        _check_method(request, "GET")
        return json_reply({"name": name, "ready": self._hub.desk.is_ready})

    def _readiness(self, pinned: int = 0) -> Reply:
        desk = self._hub.desk
        is_ready = pinned in desk.replicas.values() if pinned else desk.is_ready
        return json_reply({"ready": is_ready}, 200 if is_ready else 503)

    def _known_name(self, name: str) -> str:
        if name not in self._names:
            raise Refused(
                Problem(404, "no-such-model", f"There is no model {name!r} here.{nearest(name, self._names)}")
            )
        return name

    def _known_version(self, text: str | None) -> int:
        if text is None:
            return 0
        if not text.isdecimal() or len(text) > 9:
            raise Refused(Problem(404, "no-such-version", f"{text[:40]!r} is no version: versions are numbers."))
        return int(text)

    # --- predicting ---------------------------------------------------------------------------------------------------

    async def _predict(self, request: Request, read: Reader, pinned: int = 0) -> Reply:
        _check_method(request, "POST")
        now_s = self._hub.now_s()
        client = self._admitted(request, now_s)
        deadline_s = now_s + self._deadline_s(request)
        body = await request.body(self._limits.body_bytes)
        hub = self._hub
        share = random.random()
        codec = hub.codec(hub.desk.version_for(share, pinned))
        asked = read(body, codec)
        if hub.desk.routes.by:
            share = _share_by(hub.desk.routes.by, codec.plain(asked.rows[:1])[0], share)
        future: asyncio.Future[None] = self._loop.create_future()

        def wake(_: Ticket) -> None:
            if not future.done():
                future.set_result(None)

        ticket = Ticket(
            asked.rows,
            client=client,
            arrived_s=now_s,
            deadline_s=deadline_s,
            share=share,
            pinned=pinned,
            on_end=wake,
        )
        hub.submit(ticket)
        await future
        self._keep(request, ticket, codec)
        if ticket.problem is not None:
            raise Refused(ticket.problem)
        return Reply(200, asked.reply(ticket.answers, ticket.version))

    def _admitted(self, request: Request, now_s: float) -> str:
        """Return what to call the caller, if it may predict, and may do that now."""
        client = self._access.client_of(request.headers, request.address, "predict")
        if self._rates.per_s:
            wait_s = self._rates.wait_s(client, now_s)
            if wait_s:
                most = f"{self._rates.per_s:g} requests per second"
                raise Refused(Problem(429, "too-often", f"Each client may send {most}.", wait_s, closes=True))
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

    def _keep(self, request: Request, ticket: Ticket, codec: RowCodec) -> None:
        self._log.take(
            request_id=request.id.decode(),
            at=time.time(),
            latency_s=ticket.ended_s - ticket.arrived_s,
            version=ticket.version,
            status=ticket.status,
            rows=codec.plain(ticket.rows),
            answers=ticket.answers,
        )

    # --- administering ------------------------------------------------------------------------------------------------

    async def _administer(self, request: Request, verb: str) -> Reply:
        _check_method(request, "POST")
        self._access.client_of(request.headers, request.address, "administer")
        if verb not in _VERBS:
            known = ", ".join(_VERBS)
            raise Refused(Problem(404, "no-such-verb", f"{verb[:40]!r} is none of {known}.{nearest(verb, _VERBS)}"))
        body = await request.body(1 << 20)
        try:
            asked: Any = msgspec.json.decode(body) if body else None
        except msgspec.DecodeError as error:
            raise Refused(Problem(400, "not-json", f"The body is not JSON: {error}.")) from None
        answer = await self._hub.ask_supervisor(verb, asked)
        return json_reply(answer.body, answer.status)


def _check_method(request: Request, method: str) -> None:
    if request.method != method and not (method == "GET" and request.method == "HEAD"):
        raise Refused(Problem(405, "wrong-method", f"{request.path} is asked for with {method}."))


def _share_by(name: str, row: Any, otherwise: float) -> float:
    return share_of(row[name]) if isinstance(row, dict) and name in row else otherwise
