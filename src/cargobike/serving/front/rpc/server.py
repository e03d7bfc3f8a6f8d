"""The server of gRPC in the front: calls become requests like any other, problems become codes."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import grpc
from google.protobuf.message import DecodeError

from cargobike.core.version import __version__
from cargobike.serving.front.app import App
from cargobike.serving.front.desk.problems import Problem, Refused
from cargobike.serving.front.predicting import Caller
from cargobike.serving.front.rpc import tensors
from cargobike.serving.front.rpc.messages import METHODS, SERVICE, message_class
from cargobike.serving.front.web.answering import Request
from cargobike.serving.specification import Specification

IDLE_MS: Final = 600_000
"""Connections without calls are closed after this; clients open new ones by themselves."""
ALIVE_MS: Final = 60_000
"""How often callers that say nothing are asked whether they are still there."""
MOST_BYTES: Final = 2**31 - 1
"""The longest message that gRPC knows."""
MOST_DETAILS: Final = 4000
"""The longest explanation: it travels in a header."""

CODES: Final = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    422: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    499: grpc.StatusCode.CANCELLED,
    500: grpc.StatusCode.INTERNAL,
    502: grpc.StatusCode.ABORTED,  # and not UNAVAILABLE: clients would send rows that end replicas again and again
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}

_log: Final = logging.getLogger(__name__)

Answer = Callable[[Request, bytes, Any], Awaitable[bytes]]


class Calls:
    """Answers the calls of the Open Inference Protocol.

    Args:
        app: What answers the same over HTTP.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    def handlers(self) -> Any:
        """Return what gRPC calls; messages come as bytes, so that a token is looked at before one is parsed."""
        answers: dict[str, Answer] = {
            "ServerLive": self._server_live,
            "ServerReady": self._server_ready,
            "ModelReady": self._model_ready,
            "ServerMetadata": self._server_metadata,
            "ModelMetadata": self._model_metadata,
            "ModelInfer": self._model_infer,
        }
        methods = {
            name: grpc.unary_unary_rpc_method_handler(functools.partial(self._call, name, answers[name]))
            for name in METHODS
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def _call(self, name: str, answer: Answer, body: bytes, context: Any) -> bytes:
        request = _request_of(name, context)
        metrics = self._app.metrics
        try:
            reply = await answer(request, body, context)
        except Refused as refusal:
            problem = refusal.problem
        except asyncio.CancelledError:
            remaining = context.time_remaining()
            metrics.count_call("CANCELLED" if remaining is None or remaining > 0 else "DEADLINE_EXCEEDED")
            raise
        except Exception:  # noqa: BLE001 - the caller gets an answer, the log the traceback
            _log.exception("a call could not be answered")
            problem = Problem(500, "internal", "This is a mistake of the server.")
        else:
            metrics.count_call("OK")
            context.set_trailing_metadata((("x-request-id", request.id.decode()),))
            return reply
        code = CODES.get(problem.status, grpc.StatusCode.FAILED_PRECONDITION)
        metrics.count_call(code.name)
        await context.abort(code, _cut(problem.message), _hints(problem, request))
        raise AssertionError("abort raises")

    # --- health and metadata ------------------------------------------------------------------------------------------

    async def _server_live(self, _: Request, body: bytes, __: Any) -> bytes:
        _message("ServerLiveRequest", body)
        return _reply("ServerLiveResponse", live=True)

    async def _server_ready(self, _: Request, body: bytes, __: Any) -> bytes:
        _message("ServerReadyRequest", body)
        return _reply("ServerReadyResponse", ready=self._app.served.is_ready())

    async def _model_ready(self, _: Request, body: bytes, __: Any) -> bytes:
        message = _message("ModelReadyRequest", body)
        served = self._app.served
        served.known_name(message.name)
        return _reply("ModelReadyResponse", ready=served.is_ready(served.known_version(message.version)))

    async def _server_metadata(self, _: Request, body: bytes, __: Any) -> bytes:
        _message("ServerMetadataRequest", body)
        return _reply("ServerMetadataResponse", name="cargobike", version=__version__)

    async def _model_metadata(self, request: Request, body: bytes, _: Any) -> bytes:
        self._app.access.client_of(request.headers, request.address, "predict")
        message = _message("ModelMetadataRequest", body)
        served = self._app.served
        pinned = served.known_version(message.version)
        return _reply("ModelMetadataResponse", **served.metadata(served.known_name(message.name), pinned))

    # --- predictions --------------------------------------------------------------------------------------------------

    async def _model_infer(self, request: Request, body: bytes, context: Any) -> bytes:
        predicting, served = self._app.predicting, self._app.served
        caller = _hurried(predicting.caller_of(request), context.time_remaining())
        message = _message("ModelInferRequest", body)
        name = served.known_name(message.model_name)
        pinned = served.known_version(message.model_version)
        return await predicting.answer(
            request, caller, body, lambda _, codec: tensors.read(message, codec, name), pinned
        )


def _request_of(name: str, context: Any) -> Request:
    """Return a call as the rest of the front knows requests."""
    headers = [
        (key.encode(), value if isinstance(value, bytes) else value.encode())
        for key, value in context.invocation_metadata() or ()
        if key != "host"
    ]
    # Which name a caller meant guards against web pages, and those cannot make calls.
    headers.append((b"host", b"localhost"))
    kind, _, place = context.peer().partition(":")
    address = unquote(place.rpartition(":")[0]).strip("[]") if kind in {"ipv4", "ipv6"} else place
    return Request(
        {
            "method": "POST",
            "path": f"/{SERVICE}/{name}",
            "query_string": b"",
            "headers": headers,
            "client": (address, 0),
        }
    )


def _hurried(caller: Caller, remaining_s: float | None) -> Caller:
    """Return a caller that waits no longer than the deadline of its call."""
    if remaining_s is None or remaining_s == math.inf:
        return caller
    return dataclasses.replace(caller, deadline_s=min(caller.deadline_s, caller.arrived_s + remaining_s))


def _message(name: str, body: bytes) -> Any:
    try:
        return message_class(name).FromString(body)
    except (DecodeError, UnicodeDecodeError) as error:
        raise Refused(Problem(400, "not-a-message", f"The body is no {name}: {error}.")) from None


def _reply(kind: str, /, **fields: Any) -> bytes:
    serialized: bytes = message_class(kind)(**fields).SerializeToString()
    return serialized


def _cut(text: str) -> str:
    return text if len(text) <= MOST_DETAILS else f"{text[:MOST_DETAILS]} …"


def _hints(problem: Problem, request: Request) -> tuple[tuple[str, str], ...]:
    """Return what a refusal says to programs, after it."""
    hints = [("x-request-id", request.id.decode()), ("cargobike-kind", problem.kind)]
    if problem.retry_after_s:
        hints.append(("retry-after", str(math.ceil(problem.retry_after_s))))
        hints.append(("grpc-retry-pushback-ms", str(math.ceil(problem.retry_after_s * 1000))))
    return tuple(hints)


async def start_server(app: App, specification: Specification, port: int) -> grpc.aio.Server:
    """Listen for calls on a port that the supervisor holds.

    Raises:
        RuntimeError: If the port cannot be bound.
    """
    server = grpc.aio.server(
        options=[
            ("grpc.so_reuseport", 1),  # with the socket that holds the port, not with other servers
            ("grpc.max_receive_message_length", min(specification.limits.body_bytes, MOST_BYTES)),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_connection_idle_ms", IDLE_MS),
            ("grpc.keepalive_time_ms", ALIVE_MS),
        ]
    )
    server.add_generic_rpc_handlers((Calls(app).handlers(),))
    host = f"[{specification.host}]" if ":" in specification.host else specification.host
    if specification.tls_certificate:
        pair = (Path(specification.tls_key).read_bytes(), Path(specification.tls_certificate).read_bytes())
        server.add_secure_port(f"{host}:{port}", grpc.ssl_server_credentials([pair]))
    else:
        server.add_insecure_port(f"{host}:{port}")
    await server.start()
    return server
