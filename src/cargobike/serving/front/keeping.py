"""The inference log as the front sees it: a place to put requests and answers that never makes it wait."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from cargobike.core.errors import CargobikeError
from cargobike.core.signatures import Signature
from cargobike.serving.front.desk.tickets import Ticket
from cargobike.serving.front.protocols.rows import RowCodec
from cargobike.serving.inference_log.log import InferenceLog
from cargobike.serving.inference_log.sink import Counts, Entry
from cargobike.serving.specification import Specification

_log: Final = logging.getLogger(__name__)
_clock_began_at: Final = time.time() - time.monotonic()
"""When the desk's clock stood at 0: requests are logged with the time of day."""


class Log(Protocol):
    """Keeps requests and answers.

    Guarantees: `take_later` never waits and never raises; what cannot be kept is counted.
    """

    @property
    def counts(self) -> Counts:
        """What became of requests."""
        ...

    def take_later(self, request_id: bytes, size: int, entry: Callable[[], Entry]) -> None:
        """Keep one request, which is made into an entry later, in another thread."""
        ...

    def close(self, within_s: float = 5.0) -> None:
        """Keep what was taken, and end."""
        ...


def open_log(
    specification: Specification, project: str, model: str, signatures: Mapping[int, Signature | None]
) -> Log | None:
    """Return the log that was asked for; `None` if there is none, or it cannot be opened: requests come first."""
    if not specification.logging.sample:
        return None
    try:
        return InferenceLog(specification, project, model, signatures)
    except CargobikeError as error:
        _log.error("requests are not logged: %s", error)
        return None


def entry_of(request_id: bytes, ticket: Ticket, codec: RowCodec) -> Entry:
    """Return a request that has ended as the log keeps it."""
    at = ticket.arrived_s + _clock_began_at
    latency_s = ticket.ended_s - ticket.arrived_s
    answers = ticket.answers if ticket.status == 200 else None
    if ticket.streams and answers is not None:
        answers = [answers]
    return request_id.decode(), at, latency_s, ticket.version, ticket.status, codec.plain(ticket.rows), answers
