"""A request as the desk sees it: rows that wait for answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from cargobike.serving.front.desk.problems import Problem

WAITING: Final = 0
"""The status of a ticket that is not finished."""


class Ticket:
    """Rows of one request, on their way to a model and back.

    Attributes:
        rows: What was sent.
        client: Who sent it: requests of different clients take turns.
        arrived_s: When it came, on the desk's clock.
        deadline_s: When it is given up.
        share: Decides between versions: from 0 to 1, evenly spread, or the same for equal keys.
        pinned: The version that was asked for; 0 for any.
        streams: Whether the answer is wanted piece by piece.
        request_id: What the caller, or the front, calls the request; empty for copies.
        is_kept: Whether it goes into the log together with the rest of its batch.
        twin: The copy for the shadow version, or the original, until both are answered and compared.
        is_shadow: Whether this is the copy.
        answers: One for each row, when `status` is 200.
        status: `WAITING`, 200, or that of `problem`.
        problem: Why it was not answered.
        version: The version that answered.
        ended_s: When it was finished.
        on_end: Called with the ticket when it is finished, once.
        on_piece: Called with each part of an answer that comes piece by piece.
    """

    __slots__ = (
        "answers",
        "arrived_s",
        "client",
        "deadline_s",
        "ended_s",
        "is_kept",
        "is_shadow",
        "missing",
        "on_end",
        "on_piece",
        "pinned",
        "problem",
        "request_id",
        "rows",
        "share",
        "status",
        "streams",
        "twin",
        "version",
        "waiting",
    )

    def __init__(
        self,
        rows: list[Any],
        *,
        client: str = "",
        arrived_s: float = 0.0,
        deadline_s: float = 30.0,
        share: float = 0.0,
        pinned: int = 0,
        streams: bool = False,
        on_end: Callable[[Ticket], None] | None = None,
        on_piece: Callable[[Any], None] | None = None,
    ) -> None:
        self.rows = rows
        self.client = client
        self.arrived_s = arrived_s
        self.deadline_s = deadline_s
        self.share = share
        self.pinned = pinned
        self.streams = streams
        self.request_id = b""
        self.is_kept = False
        self.twin: Ticket | None = None
        self.is_shadow = False
        self.answers: list[Any] = [] if streams else [None] * len(rows)
        self.missing = len(rows)
        self.waiting = 0
        self.status = WAITING
        self.problem: Problem | None = None
        self.version = 0
        self.ended_s = 0.0
        self.on_end = on_end
        self.on_piece = on_piece


@dataclass(slots=True)
class Part:
    """Rows of one ticket that wait, or are in a batch, together.

    Attributes:
        ticket: Whose rows.
        start: The first of them.
        stop: The one after the last.
        losses: How many replicas were lost with them.
    """

    ticket: Ticket
    start: int
    stop: int
    losses: int = 0
