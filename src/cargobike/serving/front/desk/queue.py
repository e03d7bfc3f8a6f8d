"""What waits for one version: rows of clients that take turns, so that a busy one cannot keep the others waiting."""

from __future__ import annotations

from collections import deque

from cargobike.serving.front.desk.tickets import WAITING, Part


class FairQueue:
    """Parts of tickets in the order in which they are to be answered.

    Guarantees: parts of one client leave in the order in which they came; clients take turns, and each turn is an equal
    share of the batch; parts that were lost with a replica come first, and alone, so that one that ends replicas takes
    no other with it. Tickets that are finished in the meantime (a deadline) are passed over.
    """

    __slots__ = ("_alone", "_lines", "rows")

    def __init__(self) -> None:
        self._lines: dict[str, deque[Part]] = {}
        self._alone: deque[Part] = deque()
        self.rows = 0
        """How many rows are in it, with those of finished tickets that were not passed over yet."""

    def add(self, part: Part) -> None:
        """Put a part behind those of its client; one that was lost before, or is streamed, will be alone."""
        self.rows += part.stop - part.start
        if part.losses or part.ticket.streams:
            self._alone.append(part)
            return
        client = part.ticket.client
        line = self._lines.get(client)
        if line is None:
            line = self._lines[client] = deque()
        line.append(part)

    def take(self, most: int) -> list[Part]:
        """Return the next batch of at most `most` rows; empty if nothing waits."""
        batch: list[Part] = []
        if self._alone:
            self._take_alone(most, batch)
        lines = self._lines
        room = 0 if batch else most
        while room and lines:
            turn = max(1, room // len(lines))
            client = next(iter(lines))
            line = lines.pop(client)
            room -= self._take_from(line, min(turn, room), batch)
            if line:
                lines[client] = line  # behind the others
        return batch

    def _take_alone(self, most: int, batch: list[Part]) -> None:
        alone = self._alone
        while alone and not batch:
            part = alone.popleft()
            rows = part.stop - part.start
            if part.ticket.status != WAITING:
                self.rows -= rows
                continue
            if rows > most:
                alone.appendleft(Part(part.ticket, part.start + most, part.stop, part.losses))
                part.stop = part.start + most
            self.rows -= min(rows, most)
            batch.append(part)

    def _take_from(self, line: deque[Part], most: int, batch: list[Part]) -> int:
        """Move up to `most` rows of a client into a batch; return how many."""
        taken = 0
        while line and taken < most:
            part = line[0]
            rows = part.stop - part.start
            if part.ticket.status != WAITING:
                line.popleft()
                self.rows -= rows
            elif rows <= most - taken:
                line.popleft()
                batch.append(part)
                taken += rows
            else:
                middle = part.start + most - taken
                batch.append(Part(part.ticket, part.start, middle, part.losses))
                part.start = middle
                taken = most
        self.rows -= taken
        return taken

    def drain(self) -> list[Part]:
        """Return everything that waits, and leave nothing."""
        parts = [part for part in self.parts() if part.ticket.status == WAITING]
        self._alone.clear()
        self._lines.clear()
        self.rows = 0
        return parts

    def parts(self) -> list[Part]:
        """Return everything that is in it."""
        return [*self._alone, *(part for line in self._lines.values() for part in line)]

    def heads(self) -> list[Part]:
        """Return what waits longest of each client."""
        heads = [line[0] for line in self._lines.values()] + list(self._alone)[:1]
        return [part for part in heads if part.ticket.status == WAITING]
