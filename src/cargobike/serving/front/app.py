"""The ASGI application: finds out what is asked for, and by whom; everything else is done elsewhere."""

from __future__ import annotations

import logging
import re
from typing import Any, Final

import msgspec

from cargobike.core.errors import nearest
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.core.version import __version__
from cargobike.serving.front.desk.problems import Problem, Refused
from cargobike.serving.front.hub import Hub
from cargobike.serving.front.keeping import LogKeeper
from cargobike.serving.front.lane import Lane
from cargobike.serving.front.predicting import Predicting, Reader
from cargobike.serving.front.protocols import kserve_v1, open_inference, plain
from cargobike.serving.front.served import Served
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
from cargobike.serving.front.web.openapi import document
from cargobike.serving.front.web.try_page import try_page

_V2: Final = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?(/ready|/infer)?")
_V1: Final = re.compile(r"/v1/models/([^/:]+)(:predict)?")
_VERBS: Final = ("roll", "rollback", "scale", "status", "stop")
_log: Final = logging.getLogger(__name__)


class App:
    """Answers requests.

    Args:
        hub: Where rows are answered.
        access: Who may ask.
        log: Where requests and answers are kept, if they are.
    """

    def __init__(self, hub: Hub, access: Access, log: LogKeeper | None) -> None:
        self._hub = hub
        self.access = access
        self.predicting = Predicting(hub, access, log)
        self.served = Served(hub)
        self.metrics = Metrics(hub.desk, hub.specification.name, None if log is None else log.counts)
        self.lane = Lane(self.predicting, self.metrics)

    @property
    def is_leaving(self) -> bool:
        """Whether callers are to come back on another connection."""
        return self._hub.is_leaving

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
        if reply is None:  # sent already, piece by piece
            self.metrics.count(200)
            return
        self.metrics.count(reply.status)
        await send_reply(request, reply)

    async def _reply(self, request: Request) -> Reply | None:
        path = request.path
        if path == "/predict":
            _check_method(request, "POST")
            content_type = _stream_type(request)
            if content_type:
                await self.predicting.stream(request, plain.read, content_type)
                return None
            return await self._predict(request, plain.read)
        if path.startswith("/v2"):
            return await self._open_inference(request)
        if path.startswith("/v1/models/"):
            return await self._kserve_v1(request)
        if path.startswith("/admin/"):
            return await self._administer(request, path.removeprefix("/admin/"))
        return self._look(request)

    async def _predict(self, request: Request, read: Reader, pinned: int = 0) -> Reply:
        reply = await self.predicting.predict(request, read, pinned)
        self.lane.learn(request.path, read, pinned)
        return reply

    def _look(self, request: Request) -> Reply:
        """Answer what can be looked at without a token, and metrics."""
        _check_method(request, "GET")
        if request.path == "/healthz":
            return json_reply({"status": "ok"})
        if request.path == "/":
            return try_page()
        self.access.client_of(request.headers, request.address, "predict")
        if request.path == "/metrics":
            return Reply(200, self.metrics.text(), b"text/plain; version=0.0.4; charset=utf-8")
        if request.path == "/openapi.json":
            return json_reply(self._described())
        raise Refused(Problem(404, "no-such-path", f"There is nothing at {request.path}."))

    def _described(self) -> dict[str, Any]:
        version = self._hub.desk.version_for(0.0)
        codec = self._hub.codec(version)
        has_tokens = bool(self._hub.config.tokens)
        return document(self._hub.specification.name, self._hub.model, version, codec, has_tokens=has_tokens)

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
        name = self.served.known_name(match[1])
        pinned = self.served.known_version(match[2])
        if match[3] == "/infer":
            _check_method(request, "POST")
            return await self.predicting.predict(
                request, lambda body, codec: open_inference.read(body, codec, name), pinned
            )
        _check_method(request, "GET")
        if match[3] == "/ready":
            return self._readiness(pinned)
        self.access.client_of(request.headers, request.address, "predict")
        return json_reply(self.served.metadata(name, pinned))

    async def _kserve_v1(self, request: Request) -> Reply:
        match = _V1.fullmatch(request.path)
        if match is None:
            raise Refused(Problem(404, "no-such-path", f"There is nothing at {request.path}."))
        name = self.served.known_name(match[1])
        if match[2]:
            _check_method(request, "POST")
            return await self._predict(request, kserve_v1.read)
        _check_method(request, "GET")
        return json_reply({"name": name, "ready": self._hub.desk.is_ready})

    def _readiness(self, pinned: int = 0) -> Reply:
        is_ready = self.served.is_ready(pinned)
        return json_reply({"ready": is_ready}, 200 if is_ready else 503)

    # --- administering ------------------------------------------------------------------------------------------------

    async def _administer(self, request: Request, verb: str) -> Reply:
        _check_method(request, "POST")
        self.access.client_of(request.headers, request.address, "administer")
        if verb not in _VERBS:
            known = ", ".join(_VERBS)
            raise Refused(Problem(404, "no-such-verb", f"{verb[:40]!r} is none of {known}.{nearest(verb, _VERBS)}"))
        body = await request.body(1 << 20)
        try:
            asked: Any = msgspec.json.decode(body) if body else None
        except UNDECODABLE as error:
            raise Refused(Problem(400, "not-json", f"The body is not JSON: {error}.")) from None
        answer = await self._hub.ask_supervisor(verb, asked)
        return json_reply(answer.body, answer.status)


def _check_method(request: Request, method: str) -> None:
    if request.method != method and not (method == "GET" and request.method == "HEAD"):
        raise Refused(Problem(405, "wrong-method", f"{request.path} is asked for with {method}."))


def _stream_type(request: Request) -> bytes:
    """Return as what an answer is wanted piece by piece; empty if it is wanted whole."""
    accepted = request.headers.get(b"accept", b"")
    if b"text/event-stream" in accepted:
        return b"text/event-stream"
    if b"application/x-ndjson" in accepted:
        return b"application/x-ndjson"
    is_asked_for = request.query == b"stream" or request.query.startswith((b"stream=", b"stream&"))
    return b"application/x-ndjson" if is_asked_for else b""
