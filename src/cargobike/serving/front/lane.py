"""The short way of most requests: a small body, asked for as before, answered by callbacks without a task of its own.

A task, an event and a future for each request cost as much as everything else that is done for it. What is unusual in
any way (a long or chunked body, a stream, a path that was not asked for before, a caller who may not) goes the long
way through the application, which decides and words everything.
"""

from __future__ import annotations

import logging
from typing import Final

from cargobike.serving.front.desk.problems import Problem, Refused
from cargobike.serving.front.desk.tickets import Ticket
from cargobike.serving.front.predicting import Caller, Predicting, Reader
from cargobike.serving.front.web.answering import Message, Reply, Request, problem_reply
from cargobike.serving.front.web.connections import Exchange
from cargobike.serving.front.web.metrics import Metrics

MOST_BYTES: Final = 99_999
MOST_PATHS: Final = 64

_log: Final = logging.getLogger(__name__)


class Lane:
    """Answers requests whose path is known.

    Args:
        predicting: How rows are asked for and read.
        metrics: Where answers are counted.
    """

    def __init__(self, predicting: Predicting, metrics: Metrics) -> None:
        self.predicting = predicting
        self.metrics = metrics
        self._most_bytes = min(MOST_BYTES, predicting.most_bytes)
        self._paths: dict[str, tuple[Reader, int]] = {}

    def learn(self, path: str, read: Reader, pinned: int) -> None:
        """Remember how a path that was answered is read."""
        if len(self._paths) < MOST_PATHS:
            self._paths[path] = (read, pinned)

    def begin(self, scope: Message) -> Errand | None:
        """Return what is to be called with the body of a request; `None` if it must go the long way."""
        known = self._paths.get(scope["path"])
        if known is None or scope["method"] != "POST" or scope["query_string"]:
            return None
        request = Request(scope)
        headers = request.headers
        length = headers.get(b"content-length", b"")
        accepted = headers.get(b"accept", b"*/*")
        if not 0 < len(length) < 6 or int(length) > self._most_bytes or b"expect" in headers:
            return None
        if b"event-stream" in accepted or b"ndjson" in accepted:
            return None
        try:
            return Errand(self.predicting, self.metrics, request, self.predicting.caller_of(request), known)
        except Refused:
            return None


class Errand:
    """One request on the short way: called with its body, it answers on the exchange when there is an answer."""

    __slots__ = ("_asked", "_caller", "_exchange", "_metrics", "_path", "_predicting", "_request")

    def __init__(
        self, predicting: Predicting, metrics: Metrics, request: Request, caller: Caller, path: tuple[Reader, int]
    ) -> None:
        self._predicting = predicting
        self._metrics = metrics
        self._request = request
        self._caller = caller
        self._path = path

    def __call__(self, body: bytes, exchange: Exchange) -> None:
        """Read a body and let its rows in."""
        self._exchange = exchange
        try:
            self._asked, share = self._predicting.read(self._request, self._caller, body, *self._path)
            ticket = self._caller.ticket(self._asked.rows, share, self._path[1])
            ticket.on_end = self._answer
            self._predicting.submit(self._request, ticket)
        except Refused as refusal:
            self._send(problem_reply(refusal.problem, self._request.id))
        except Exception:  # noqa: BLE001 - the caller gets an answer, the log the traceback
            self._break()

    def _answer(self, ticket: Ticket) -> None:
        try:
            self._predicting.keep(self._request, ticket)
            if ticket.problem is None:
                self._send(Reply(200, self._asked.reply(ticket.answers, ticket.version)))
            else:
                self._send(problem_reply(ticket.problem, self._request.id))
        except Exception:  # noqa: BLE001 - the caller gets an answer, the log the traceback
            self._break()

    def _send(self, reply: Reply) -> None:
        self._metrics.count(reply.status)
        self._exchange.reply(reply, self._request.id)

    def _break(self) -> None:
        _log.exception("a request could not be answered")
        problem = Problem(500, "internal", "This is a mistake of the server.", closes=True)
        self._send(problem_reply(problem, self._request.id))
