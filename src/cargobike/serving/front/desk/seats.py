"""A replica as the desk sees it: a seat with at most one batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cargobike.serving.front.desk.tickets import WAITING, Part, Ticket


@dataclass(slots=True)
class Seat:
    """A replica, and the batch that it has.

    Attributes:
        number: Its number.
        version: The version of the model that it has.
        batch: The number of its batch; 0 if it has none.
        parts: What is in the batch.
        rows: How many rows that is.
        since_s: When it got the batch, or the last sign of life of an answer that comes piece by piece.
        has_begun: Whether a piece of the answer was sent on.
        is_draining: Whether it gets no more batches.
    """

    number: int
    version: int
    batch: int = 0
    parts: list[Part] = field(default_factory=list)
    rows: int = 0
    since_s: float = 0.0
    has_begun: bool = False
    is_draining: bool = False

    def single_rows(self) -> list[Ticket]:
        """Return the requests of the batch, in the order of its rows, if each has one row and was sent by a caller.

        Empty if one of them is anything else, or has ended already.
        """
        tickets = [part.ticket for part in self.parts]
        for ticket in tickets:
            if ticket.status != WAITING or len(ticket.rows) != 1 or not ticket.request_id or ticket.streams:
                return []
        return tickets


@dataclass(frozen=True, slots=True)
class Order:
    """A batch that is to be sent."""

    replica: int
    batch: int
    rows: list[Any]
    streams: bool
