"""Rows that were pushed to a node and wait for its function, and the way back for results. No socket is known here."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.words import count

_LOOK_S: Final = 0.5
_ALIVE_EVERY_S: Final = 1.0


class Feeder(Protocol):
    """The one that pushes a partition, as the inbox sees it. What cannot be said to one that is gone is forgotten."""

    def taken(self, chunks: int) -> None:
        """Hear that the function has taken chunks."""

    def results(self, results: Sequence[Any]) -> None:
        """Get results for the next rows."""

    def alive(self) -> None:
        """Hear that the function works on other partitions."""

    def closed(self, problem: str) -> None:
        """Hear that no more rows are taken."""


class Delivery:
    """One partition on its way in."""

    def __init__(self, feeder: Feeder, *, wants_results: bool) -> None:
        self.feeder, self.wants_results = feeder, wants_results
        self.chunks: deque[list[Any]] = deque()
        self.position = 0
        self.is_complete = False
        self.is_gone = False

    @property
    def has_something(self) -> bool:
        """Whether there are rows, or the end of the partition, to be taken."""
        return bool(self.chunks) or self.is_complete


class Inbox:
    """Holds chunks of several partitions until a function takes their rows, in batches of any size.

    Batches end with a partition that wants results: so each result belongs to one. Rows of such a partition are taken
    in their order and without rows of others between them. Rows of partitions that want none are taken as they come.
    May be used from several threads.

    Args:
        is_asked_to_end: Returns whether waiting makes no sense any more.
    """

    def __init__(self, is_asked_to_end: Callable[[], bool] = lambda: False) -> None:
        self._is_asked_to_end = is_asked_to_end
        self._changed = threading.Condition()
        self._deliveries: deque[Delivery] = deque()
        self._unanswered: deque[tuple[Delivery, int]] = deque()
        self._has_ended = False
        self._problem: str | None = None
        self._expects_results = False
        self._short: tuple[int, int, int] | None = None
        self._told_at = 0.0

    # -- what feeders bring --------------------------------------------------------------------------------------

    def open(self, feeder: Feeder, *, wants_results: bool = False) -> Delivery:
        """Begin a partition."""
        delivery = Delivery(feeder, wants_results=wants_results)
        with self._changed:
            problem = self._problem
            if problem is None:
                self._deliveries.append(delivery)
                self._expects_results |= wants_results
        if problem is not None:
            feeder.closed(problem)
        return delivery

    def put(self, delivery: Delivery, rows: list[Any]) -> None:
        """Add a chunk of a partition."""
        with self._changed:
            if rows and self._problem is None:
                delivery.chunks.append(rows)
                self._changed.notify_all()

    def complete(self, delivery: Delivery) -> None:
        """Hear that a partition has no more rows."""
        with self._changed:
            delivery.is_complete = True
            self._changed.notify_all()

    def lose(self, delivery: Delivery) -> None:
        """Forget what is left of a partition whose feeder is gone."""
        with self._changed:
            delivery.is_gone = delivery.is_complete = True
            if delivery.wants_results:
                delivery.chunks.clear()
            self._changed.notify_all()

    def end(self) -> None:
        """Hear that no partition follows: the function is told so when it has taken all that is here."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    # -- what the function calls ---------------------------------------------------------------------------------

    def take(self, most: int, *, whole_partitions: bool = False) -> tuple[list[Any], bool]:
        """Return the next rows, at most so many, and whether no more will come; waits until there are as many.

        Args:
            most: How many.
            whole_partitions: Whether batches end with a partition even if it wants no results.

        Raises:
            InvalidInputError: If fewer results were given than rows taken before.
        """
        rows: list[Any] = []
        taken: dict[Delivery, int] = {}
        with self._changed:
            self._check_answers()
            has_ended = self._fill(rows, most, taken, whole_partitions=whole_partitions)
            others = self._others_to_tell()
        for delivery, chunks in taken.items():
            if chunks:
                delivery.feeder.taken(chunks)
        for other in others:
            other.feeder.alive()
        return rows, has_ended

    def _fill(self, rows: list[Any], most: int, taken: dict[Delivery, int], *, whole_partitions: bool) -> bool:
        source: Delivery | None = None
        wants_results = False
        while len(rows) < most:
            if self._problem is not None:
                return True
            delivery = self._next()
            if delivery is None:
                if (self._has_ended and not self._deliveries) or self._is_asked_to_end():
                    return True
                self._tell_taken(taken)
                self._changed.wait(_LOOK_S)
                continue
            if source not in (None, delivery) and (whole_partitions or wants_results or delivery.wants_results):
                return False
            if not delivery.chunks:  # it is complete
                self._deliveries.remove(delivery)
                if rows and source is delivery and (delivery.wants_results or whole_partitions):
                    return False
                continue
            source, wants_results = delivery, delivery.wants_results
            if self._move(delivery, rows, most, taken) and not (delivery.wants_results or whole_partitions):
                self._deliveries.remove(delivery)  # the next chunk is another feeder's: none of them waits for long
                self._deliveries.append(delivery)
        return False

    def _move(self, delivery: Delivery, rows: list[Any], most: int, taken: dict[Delivery, int]) -> bool:
        """Take rows of the first chunk of a partition; returns whether it is used up."""
        chunk, begin = delivery.chunks[0], delivery.position
        end = min(len(chunk), begin + most - len(rows))
        rows += chunk[begin:end] if begin or end < len(chunk) else chunk
        if delivery.wants_results:
            self._unanswered.append((delivery, end - begin))
        delivery.position = end
        if end < len(chunk):
            return False
        delivery.chunks.popleft()
        delivery.position = 0
        taken[delivery] = taken.get(delivery, 0) + 1
        return True

    def _next(self) -> Delivery | None:
        """Return what to take from; a partition that wants results keeps its turn until it is complete."""
        for delivery in self._deliveries:
            if delivery.has_something:
                return delivery
            if delivery.wants_results:
                return None
        return None

    def _tell_taken(self, taken: dict[Delivery, int]) -> None:
        """Let feeders send more, without holding what they might want to add to."""
        told = {delivery: chunks for delivery, chunks in taken.items() if chunks}
        if told:
            taken.clear()
            self._changed.release()
            try:
                for delivery, chunks in told.items():
                    delivery.feeder.taken(chunks)
            finally:
                self._changed.acquire()

    def _others_to_tell(self) -> list[Delivery]:
        now = time.monotonic()
        if now - self._told_at < _ALIVE_EVERY_S:
            return []
        self._told_at = now
        return list(self._deliveries)

    def answer(self, results: Sequence[Any]) -> None:
        """Give results for the rows that were taken, in their order.

        Raises:
            InvalidInputError: If there are more results than rows without one.
        """
        parts: list[tuple[Delivery, Sequence[Any]]] = []
        with self._changed:
            if not self._expects_results or self._problem is not None:
                return
            open_rows = self._open_rows
            if len(results) > open_rows:
                raise InvalidInputError(
                    f"{count(len(results), 'result')} for {count(open_rows, 'row')}: there must be one for each row "
                    "that next_batch returned, and no more."
                )
            begin = 0
            while begin < len(results):
                delivery, rows = self._unanswered.popleft()
                some = min(rows, len(results) - begin)
                if some < rows:
                    self._unanswered.appendleft((delivery, rows - some))
                parts.append((delivery, results[begin : begin + some]))
                begin += some
            self._short = (threading.get_ident(), len(results), open_rows) if len(results) < open_rows else None
        for delivery, part in parts:
            delivery.feeder.results(part)

    @property
    def _open_rows(self) -> int:
        return sum(rows for _, rows in self._unanswered)

    def _check_answers(self) -> None:
        """Refuse to go on after too few results; other threads may still be at work on theirs."""
        if self._short is not None and self._short[0] == threading.get_ident() and self._unanswered:
            _, results, rows = self._short
            raise InvalidInputError(
                f"{count(results, 'result')} for {count(rows, 'row')}: there must be one for each row that next_batch "
                "returned, before the next rows are taken."
            )

    def close(self, problem: str = "") -> None:
        """Take no more rows: what waits here is dropped, and feeders are told."""
        with self._changed:
            if self._problem is not None:
                return
            self._problem = problem
            feeders = {delivery.feeder for delivery in self._deliveries}
            feeders |= {delivery.feeder for delivery, _ in self._unanswered}
            self._deliveries.clear()
            self._changed.notify_all()
        for feeder in feeders:
            feeder.closed(problem)

    @property
    def is_closed(self) -> bool:
        """Whether no more rows are taken."""
        return self._problem is not None
