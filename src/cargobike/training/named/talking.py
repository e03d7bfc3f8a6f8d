"""Asks for operations and hears what was decided: in rank 0, where it is decided, and in the others, which ask it.

None of this waits: `read` is called for a connection on which something has arrived.

In a gang of two, rank 0 lets rank 1 know of its own requests at once. Where both ask for the same, and neither has
anything else on its way (`Request.sole`), nothing is left to be decided: both know so from the same two requests, and
begin without a decision that would have to travel first.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from cargobike.core.errors import ConnectionLostError
from cargobike.training.named.channel import Link
from cargobike.training.named.negotiation import Coordinator, Decision
from cargobike.training.named.requests import Agreed, Request

_log = logging.getLogger(__name__)

Frames = deque[list[Agreed]]
"""What was decided and has not been done yet, in order."""


class Talk(Protocol):
    """One rank's side of the negotiation; puts what was decided into `frames`."""

    links: dict[int, Link]
    frames: Frames

    def ask(self, request: Request) -> None:
        """Say what this rank wants to do. May be called from any thread."""

    def read(self, rank: int) -> None:
        """Read what has come from a rank.

        Raises:
            ConnectionLostError: If nothing more can be decided, because rank 0 is gone.
        """

    def look_at_clock(self) -> None:
        """Give up what has waited for too long."""


class Asking:
    """The talk of ranks other than 0."""

    def __init__(self, links: dict[int, Link], frames: Frames) -> None:
        self.links, self.frames = links, frames
        self._lock = threading.Lock()
        self._own: Request | None = None
        self._known: dict[str, Request] = {}

    def ask(self, request: Request) -> None:
        """Send it to rank 0."""
        with self._lock:
            self.links[0].send([request])
            if request.sole:
                self._own = request
                self._foresee()

    def read(self, rank: int) -> None:
        """Take decisions off the connection."""
        try:
            frames = self.links[rank].receive_agreed()
        except (OSError, ValueError) as error:
            with self._lock:  # what is being asked for may be foreseen: rank 0 has done it, and left
                pass
            raise ConnectionLostError(f"rank 0, which decides, is gone: {error}") from error
        with self._lock:
            for frame in frames:
                self._take(frame)

    def _take(self, frame: list[Agreed]) -> None:
        for agreed in frame:
            if not agreed.is_decided:
                self._known[agreed.request.name] = agreed.request
                self._foresee()
            else:
                self._known.pop(agreed.request.name, None)
                if self._own is not None and self._own.name == agreed.request.name:
                    self._own = None
        decided = [agreed for agreed in frame if agreed.is_decided]
        if decided:
            self.frames.append(decided)

    def _foresee(self) -> None:
        """Take what both ranks ask for as decided."""
        if self._own is not None and self._known.get(self._own.name) == self._own:
            del self._known[self._own.name]
            self.frames.append([Agreed(self._own, is_foreseen=True)])
            self._own = None

    def look_at_clock(self) -> None:
        """Do nothing: rank 0 looks at it."""


class Deciding:
    """The talk of rank 0.

    Args:
        links: To the others.
        frames: Where this rank's own decisions go.
        stall_s: How long an operation waits for ranks that do not submit it.
        warn_s: After how long a line in the log says who is missing.
    """

    def __init__(self, links: dict[int, Link], frames: Frames, stall_s: float, warn_s: float) -> None:
        self.links, self.frames = links, frames
        self._stall_s, self._warn_s = stall_s, warn_s
        self._coordinator = Coordinator(len(links) + 1)
        self._lock = threading.Lock()

    def ask(self, request: Request) -> None:
        """Decide, if this is the last rank to ask."""
        with self._lock:
            if request.sole:
                for rank in self.links:
                    self._send(rank, [Agreed(request, is_decided=False)])
            self._tell(self._coordinator.request(0, request, time.monotonic()))

    def read(self, rank: int) -> None:
        """Hear what another rank asks for, or that it is gone."""
        try:
            requests = self.links[rank].receive_requests()
        except (OSError, ValueError):
            with self._lock:
                self.links.pop(rank).close()
                self._tell(self._coordinator.leave(rank, "is gone: its process ended or closed the connection"))
            return
        self._decide(rank, requests)

    def look_at_clock(self) -> None:
        """Warn of what has waited long, give up what has waited too long."""
        now = time.monotonic()
        with self._lock:
            oldest = self._coordinator.oldest
            if oldest is None or now - oldest < min(self._warn_s, self._stall_s):
                return
            for text in self._coordinator.stalled(now - self._warn_s):
                _log.warning("%s, for more than %g s", text, self._warn_s)
            self._tell(self._coordinator.give_up(now - self._stall_s))

    def _decide(self, rank: int, requests: Iterable[Request]) -> None:
        with self._lock:
            decisions: list[Decision] = []
            for request in requests:
                if request.kind == "leave":
                    decisions += self._coordinator.leave(rank, "has left the job (shutdown)")
                else:
                    decisions += self._coordinator.request(rank, request, time.monotonic())
            self._tell(decisions)

    def _tell(self, decisions: list[Decision]) -> None:
        """Tell ranks what was decided; called with the lock held, so that all hear the same order."""
        frames: dict[int, list[Agreed]] = {}
        for decision in decisions:
            # An error also ends what a rank knows of another's request: it may not take it for one that stands.
            everybody = decision.agreed.error and len(self.links) == 1 and decision.agreed.request.sole
            for rank in (0, *self.links) if everybody else decision.ranks:
                if rank == 0 or not decision.agreed.is_foreseen:
                    frames.setdefault(rank, []).append(decision.agreed)
        for rank, frame in frames.items():
            if rank == 0:
                self.frames.append(frame)
            elif rank in self.links:
                self._send(rank, frame)

    def _send(self, rank: int, frame: list[Agreed]) -> None:
        with contextlib.suppress(OSError):  # that it is gone is noticed where its requests are read
            self.links[rank].send(frame)
