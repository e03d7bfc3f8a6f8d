"""Decides who is let in, whose turn it is, and what becomes of requests whose replica is lost. Pure: time is passed in.

```
admit ─> queue of a version ─> dispatch: a batch for each free replica ─> answered / failed ─> ticket.on_end
                 ^                          │
                 └── each alone, once ── lost
```
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, Final

from cargobike.serving.front.desk.admission import why_full
from cargobike.serving.front.desk.problems import GoneBecause, Problem, at_fault, lost, no_replica, too_late
from cargobike.serving.front.desk.queue import FairQueue
from cargobike.serving.front.desk.routing import choose
from cargobike.serving.front.desk.seats import Order, Seat
from cargobike.serving.front.desk.shadow import has_differed, shadow_of
from cargobike.serving.front.desk.tally import Tally
from cargobike.serving.front.desk.tickets import WAITING, Part, Ticket
from cargobike.serving.specification import Limits
from cargobike.serving.wire import Failed, Routes

PATIENCE_S: Final = 5.0
"""How long requests wait where there is no replica and none is known to start."""
SLOT_S: Final = 0.05
"""Deadlines are met this exactly."""


class Desk:
    """The requests of one front.

    Guarantees: every ticket that was let in ends exactly once; answers are those of its own rows, in their order; no
    more than `limits.queue` rows wait; a row is given to at most two replicas.

    Args:
        limits: How many rows wait, and are in a batch, at most.
        retry: Whether rows whose replica was lost are given to another.
    """

    def __init__(self, limits: Limits, *, retry: bool = True) -> None:
        self._limits = limits
        self._retry = retry
        self._routes = Routes([])
        self._seats: dict[int, Seat] = {}
        self._idle: dict[int, list[Seat]] = {}
        self._queues: dict[int, FairQueue] = {}
        self._clients: dict[str, int] = {}
        self._due: defaultdict[int, set[Ticket]] = defaultdict(set)
        self._batches = 0
        self._starting = 0
        self._refuses = False
        self._empty_since_s = 0.0
        self._longest_wait_s = 0.0
        self.waiting = 0
        self.at_work = 0
        self.arrived = 0
        self.refused = 0
        self.tallies: defaultdict[int, Tally] = defaultdict(Tally)
        self.drained: list[int] = []
        """Replicas that were told to drain and have nothing left; reading this empties it."""

    # --- requests -----------------------------------------------------------------------------------------------------

    def admit(self, ticket: Ticket) -> Problem | None:
        """Let a request in, or say why not."""
        self.arrived += 1
        rows = len(ticket.rows)
        problem = self._why_not(ticket, rows)
        if problem is not None:
            self.refused += 1
            return problem
        self._enter(ticket, rows)
        if self._routes.shadow:
            self._shadow(ticket, rows)
        return None

    def _enter(self, ticket: Ticket, rows: int) -> None:
        self._due[int(ticket.deadline_s / SLOT_S) + 1].add(ticket)
        self._put(Part(ticket, 0, rows), rows)

    def _put(self, part: Part, rows: int) -> None:
        ticket = part.ticket
        version = ticket.pinned or choose(self._routes.routes, ticket.share, self._idle)
        ticket.version = version
        ticket.waiting += rows
        self.waiting += rows
        self._clients[ticket.client] = self._clients.get(ticket.client, 0) + rows
        queue = self._queues.get(version)
        if queue is None:
            queue = self._queues[version] = FairQueue()
        queue.add(part)

    def _why_not(self, ticket: Ticket, rows: int) -> Problem | None:
        limit = self._limits.queue
        if ticket.pinned and ticket.pinned not in self._idle and ticket.pinned not in self.routed:
            served = ", ".join(map(str, sorted({*self._idle, *self.routed}))) or "none"
            return Problem(404, "no-such-version", f"Version {ticket.pinned} is not served here; these are: {served}.")
        if not self._seats and self._refuses:
            return no_replica()
        own = self._clients.get(ticket.client, 0)
        return why_full(rows, limit, waiting=self.waiting, own=own, clients=len(self._clients) + (own == 0))

    def _shadow(self, ticket: Ticket, rows: int) -> None:
        version = self._routes.shadow
        is_busy = self.waiting + rows > self._limits.queue // 2
        if ticket.streams or is_busy or version == ticket.version or version not in self._idle:
            return
        self._enter(shadow_of(ticket, version), rows)

    def forget(self, ticket: Ticket, now_s: float) -> tuple[int, int] | None:
        """Drop a request whose caller is gone; return the replica, and the batch, that still answers it in pieces."""
        self._end(ticket, now_s, Problem(499, "caller-gone", "The caller has closed the connection."))
        for seat in self._seats.values():
            if ticket.streams and seat.parts and seat.parts[0].ticket is ticket:
                return seat.number, seat.batch
        return None

    # --- replicas -----------------------------------------------------------------------------------------------------

    def join(self, replica: int, version: int, now_s: float) -> None:
        """Take a replica in; one with the same number that was there before is gone."""
        self.leave(replica, "closed", now_s)
        seat = self._seats[replica] = Seat(replica, version)
        is_new = version not in self._idle
        self._idle.setdefault(version, []).append(seat)
        if is_new:
            self._sort_again()

    def leave(self, replica: int, why: GoneBecause, now_s: float) -> None:
        """Take a replica out; what it was working on goes to another, each request alone, or ends with 502."""
        seat = self._seats.pop(replica, None)
        if seat is None:
            return
        self._remove_idle(seat)
        if not self._seats:
            self._empty_since_s = now_s
        self.at_work -= seat.rows
        for part in seat.parts:
            ticket = part.ticket
            if ticket.status != WAITING:
                continue
            part.losses += 1
            if self._retry and part.losses < 2 and not (seat.has_begun and ticket.streams):
                self._put(part, part.stop - part.start)
            else:
                self._end(ticket, now_s, lost(why, part.losses))
        if seat.is_draining:
            self.drained.append(replica)
        if not self._has_seats(seat.version):
            self._sort_again()

    def drain(self, replica: int) -> None:
        """Give a replica no more batches; it is in `drained` when it has none."""
        seat = self._seats.get(replica)
        if seat is None:
            self.drained.append(replica)
            return
        if seat.is_draining:
            return
        seat.is_draining = True
        self._remove_idle(seat)
        if not seat.batch:
            self.drained.append(replica)
        if not self._has_seats(seat.version):
            self._sort_again()

    def _has_seats(self, version: int) -> bool:
        """Tell whether a version has a replica that takes batches, and forget the version otherwise."""
        if any(seat.version == version and not seat.is_draining for seat in self._seats.values()):
            return True
        self._idle.pop(version, None)
        return False

    def _remove_idle(self, seat: Seat) -> None:
        idle = self._idle.get(seat.version)
        if idle is not None and seat in idle:
            idle.remove(seat)

    # --- what the supervisor says -------------------------------------------------------------------------------------

    def route(self, routes: Routes) -> None:
        """Send requests to other versions from now on, also those that wait."""
        self._routes = routes
        self._sort_again()

    def expect(self, starting: int, *, refuse: bool, now_s: float) -> None:
        """Learn how many replicas are on their way."""
        self._starting = starting
        self._refuses = refuse
        if refuse and not self._seats:
            self._refuse_all(now_s)

    def _sort_again(self) -> None:
        """Give everything that waits to the versions that are right for it now."""
        parts = [part for queue in self._queues.values() for part in queue.drain()]
        self._queues.clear()
        parts.sort(key=lambda part: part.ticket.arrived_s)
        for part in parts:
            rows = part.stop - part.start
            self._took(part.ticket, rows)
            self._put(part, rows)

    # --- batches ------------------------------------------------------------------------------------------------------

    def dispatch(self, now_s: float) -> list[Order]:
        """Return a batch for every free replica for which something waits."""
        orders: list[Order] = []
        for version, queue in self._queues.items():
            idle = self._idle.get(version)
            while idle and queue.rows:
                most = min(self._limits.batch, math.ceil(queue.rows / len(idle)))
                parts = queue.take(most)
                if not parts:
                    break
                orders.append(self._order(idle.pop(), parts, now_s))
        return orders

    def _order(self, seat: Seat, parts: list[Part], now_s: float) -> Order:
        self._batches += 1
        rows: list[Any] = []
        for part in parts:
            ticket = part.ticket
            count = part.stop - part.start
            self._took(ticket, count)
            rows += ticket.rows if count == len(ticket.rows) else ticket.rows[part.start : part.stop]
        self._longest_wait_s = max(self._longest_wait_s, now_s - parts[0].ticket.arrived_s)
        seat.batch, seat.parts, seat.rows, seat.since_s, seat.has_begun = self._batches, parts, len(rows), now_s, False
        self.at_work += len(rows)
        tally = self.tallies[seat.version]
        tally.batches += 1
        tally.rows += len(rows)
        return Order(seat.number, seat.batch, rows, parts[0].ticket.streams)

    def _took(self, ticket: Ticket, rows: int) -> None:
        """Count rows that do not wait any more."""
        ticket.waiting -= rows
        self.waiting -= rows
        left = self._clients[ticket.client] - rows
        if left:
            self._clients[ticket.client] = left
        else:
            del self._clients[ticket.client]

    def single_rows(self, replica: int, batch: int, answers: int) -> list[Ticket]:
        """Return the requests of a batch, as `Seat.single_rows` does; none if the answers do not fit."""
        seat = self._seats.get(replica)
        return [] if seat is None or seat.batch != batch or seat.rows != answers else seat.single_rows()

    def answered(self, replica: int, batch: int, answers: list[Any], now_s: float) -> bool:
        """Give answers to the requests of a batch; return whether they fit the batch at all."""
        seat = self._seats.get(replica)
        if seat is None or seat.batch != batch or len(answers) != seat.rows:
            return False
        start = 0
        for part in self._cleared(seat, now_s):
            stop = start + part.stop - part.start
            self._fill(part, answers[start:stop], now_s)
            start = stop
        return True

    def failed(self, replica: int, failure: Failed, now_s: float) -> bool:
        """Answer the rows of a batch that can be answered, end the others; return whether the replica has the batch."""
        seat = self._seats.get(replica)
        if seat is None or seat.batch != failure.batch:
            return False
        rows = seat.rows
        fits = len(failure.answers) == rows
        places = set(failure.rows_at_fault) if fits else set(range(rows))
        start = 0
        for part in self._cleared(seat, now_s):
            stop = start + part.stop - part.start
            wrong = [place for place in range(start, stop) if place in places]
            if wrong:
                place = part.start + wrong[0] - start
                self._end(part.ticket, now_s, at_fault(failure, place))
            else:
                self._fill(part, failure.answers[start:stop], now_s)
            start = stop
        return True

    def piece(self, replica: int, batch: int, value: Any, *, is_last: bool, now_s: float) -> bool:
        """Pass on a part of an answer; return whether the replica had such a batch."""
        seat = self._seats.get(replica)
        if seat is None or seat.batch != batch or not seat.parts[0].ticket.streams:
            return False
        seat.has_begun = True
        ticket = seat.parts[0].ticket
        if is_last:
            self._cleared(seat, now_s)
            self._end(ticket, now_s)
            return True
        seat.since_s = now_s
        ticket.answers.append(value)
        if ticket.status == WAITING and ticket.on_piece is not None:
            ticket.on_piece(value)
        return True

    def _cleared(self, seat: Seat, now_s: float) -> list[Part]:
        """Make a replica free, and return the parts of the batch that it had."""
        parts = seat.parts
        self.at_work -= seat.rows
        self.tallies[seat.version].predict_s += now_s - seat.since_s
        seat.batch, seat.parts, seat.rows = 0, [], 0
        if seat.is_draining:
            self.drained.append(seat.number)
        else:
            self._idle[seat.version].append(seat)
        for part in parts:
            part.ticket.version = seat.version
        return parts

    def _fill(self, part: Part, answers: list[Any], now_s: float) -> None:
        ticket = part.ticket
        if ticket.status != WAITING:
            return
        if len(answers) == len(ticket.rows):
            ticket.answers = answers
            ticket.missing = 0
        else:
            ticket.answers[part.start : part.stop] = answers
            ticket.missing -= len(answers)
        if not ticket.missing:
            self._end(ticket, now_s)

    def _end(self, ticket: Ticket, now_s: float, problem: Problem | None = None) -> None:
        if ticket.status != WAITING:
            return
        ticket.status = 200 if problem is None else problem.status
        ticket.problem = problem
        ticket.ended_s = now_s
        self._due[int(ticket.deadline_s / SLOT_S) + 1].discard(ticket)
        if ticket.waiting:
            self._took(ticket, ticket.waiting)
        if ticket.version and ticket.status != 499:
            self.tallies[ticket.version].ended(ticket.status, now_s - ticket.arrived_s)
        if ticket.twin is not None and ticket.twin.status != WAITING:
            shadow = ticket if ticket.is_shadow else ticket.twin
            self.tallies[shadow.version].differed += has_differed(ticket, ticket.twin)
        if ticket.on_end is not None:
            ticket.on_end(ticket)

    # --- time ---------------------------------------------------------------------------------------------------------

    def tick(self, now_s: float) -> list[int]:
        """End what is past its deadline; return replicas that hold a batch for longer than they may."""
        slot = int(now_s / SLOT_S)
        for due in [number for number in self._due if number <= slot]:
            for ticket in self._due.pop(due):
                self._end(ticket, now_s, too_late(now_s - ticket.arrived_s, is_waiting=ticket.waiting > 0))
        if not self._seats and not self._starting and self.waiting and now_s - self._empty_since_s > PATIENCE_S:
            self._refuse_all(now_s, older_than_s=now_s - PATIENCE_S)
        return [
            seat.number for seat in self._seats.values() if seat.batch and now_s - seat.since_s > self._limits.predict_s
        ]

    def _refuse_all(self, now_s: float, *, older_than_s: float = math.inf) -> None:
        for part in [part for queue in self._queues.values() for part in queue.parts()]:
            if part.ticket.arrived_s <= older_than_s:
                self._end(part.ticket, now_s, no_replica())

    # --- how things stand ---------------------------------------------------------------------------------------------

    @property
    def routed(self) -> set[int]:
        """The versions that requests go to."""
        return {route.version for route in self._routes.routes}

    @property
    def routes(self) -> Routes:
        """Where requests go."""
        return self._routes

    @property
    def replicas(self) -> dict[int, int]:
        """The version of each replica, by its number."""
        return {seat.number: seat.version for seat in self._seats.values()}

    @property
    def is_ready(self) -> bool:
        """Whether a request would meet a replica."""
        return any(version in self._idle for version in self.routed)

    def version_for(self, share: float, pinned: int = 0) -> int:
        """Return the version that would answer a request now; 0 if none would."""
        return pinned or choose(self._routes.routes, share, self._idle)

    def take_longest_wait(self, now_s: float) -> float:
        """Return how long a request has waited at most since this was asked last."""
        longest, self._longest_wait_s = max(self._longest_wait_s, self.longest_wait(now_s)), 0.0
        return longest

    def longest_wait(self, now_s: float) -> float:
        """Return how long the request has waited that waits longest now; 0 if none does."""
        heads = (part.ticket.arrived_s for queue in self._queues.values() for part in queue.heads())
        return now_s - min(heads, default=now_s)
