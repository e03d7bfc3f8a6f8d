"""One bottleneck with a queue that drops what does not fit, in steps of virtual time."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from cargobike.sharing.governor.simulated.flows import MSS, Flow


@dataclass(frozen=True, slots=True)
class Link:
    """A bottleneck.

    Attributes:
        rate: Bytes a second.
        rtt_s: The round trip without a queue.
        buffer_s: How long a full queue takes to empty.
        loss: The share of packets that is lost by chance.
    """

    rate: float
    rtt_s: float
    buffer_s: float
    loss: float = 0.0

    @property
    def step_s(self) -> float:
        """Small against a round trip and against the queue."""
        return min(0.002, max(0.0005, self.rtt_s / 4))


class Run:
    """Flows over one link. `advance` lets virtual time pass; `taken` says what each flow had of the link in a span."""

    def __init__(self, link: Link, flows: Sequence[Flow], seed: int = 1) -> None:
        self.link = link
        self.flows = list(flows)
        self.now = 0.0
        self._random = random.Random(seed)
        self._queue: deque[tuple[int, float, float]] = deque()
        self._queued = 0.0
        self._returning: deque[tuple[float, int, float, float, bool]] = deque()
        self._records: list[tuple[float, tuple[float, ...]]] = [(0.0, tuple(0.0 for _ in flows))]
        self._next_record = 0.1

    @property
    def queueing_s(self) -> float:
        """How long what comes now waits."""
        return self._queued / self.link.rate

    def advance(self, until_s: float) -> Run:
        """Let time pass."""
        step = self.link.step_s
        while self.now < until_s:
            self._arrive(step)
            self._depart(step)
            self._hear()
            self.now += step
            if self.now >= self._next_record:
                self._records.append((self.now, tuple(flow.delivered for flow in self.flows)))
                self._next_record += 0.1
        return self

    def _arrive(self, step: float) -> None:
        """Queue what the flows send; what does not fit is lost in proportion."""
        arriving = [
            (number, count)
            for number, flow in enumerate(self.flows)
            if flow.is_on(self.now) and (count := flow.send(self.now, step)) > 0
        ]
        total = sum(count for _, count in arriving)
        room = self.link.rate * (self.link.buffer_s + step) - self._queued
        fitting = min(1.0, max(0.0, room) / total) if total else 1.0
        for number, count in arriving:
            dropped = count * (1 - fitting) + self._lost_by_chance(count * fitting)
            if dropped:
                self._returning.append((self.now + self.link.rtt_s + self.queueing_s, number, dropped, self.now, True))
            if count > dropped:
                self._queue.append((number, count - dropped, self.now))
                self._queued += count - dropped

    def _lost_by_chance(self, count: float) -> float:
        if not self.link.loss:
            return 0.0
        packets = count / MSS
        lost = sum(self._random.random() < self.link.loss for _ in range(int(packets)))
        lost += self._random.random() < self.link.loss * (packets % 1)
        return min(count, lost * MSS)

    def _depart(self, step: float) -> None:
        left = self.link.rate * step
        while self._queue and left > 1e-6:
            number, count, sent_at = self._queue[0]
            gone = min(count, left)
            left -= gone
            self._queued -= gone
            self._returning.append((self.now + self.link.rtt_s, number, gone, sent_at, False))
            if gone < count:
                self._queue[0] = (number, count - gone, sent_at)
            else:
                self._queue.popleft()

    def _hear(self) -> None:
        """Tell flows what came back. News of a loss is due later than what stands behind it: as if it had queued."""
        later: list[tuple[float, int, float, float, bool]] = []
        moment = self.now + self.link.step_s / 2  # steps do not add up exactly
        while self._returning and (self._returning[0][0] <= moment or self._returning[0][4]):
            due, number, count, sent_at, is_lost = self._returning.popleft()
            if due > moment:
                later.append((due, number, count, sent_at, is_lost))
            elif is_lost:
                self.flows[number].lose(self.now, count, self.now - sent_at)
            else:
                self.flows[number].confirm(self.now, count, self.now - sent_at)
        self._returning.extendleft(reversed(later))

    def taken(self, begin_s: float, end_s: float) -> list[float]:
        """Return the share of the link that each flow had between two moments."""
        first = next(counts for at, counts in self._records if at >= begin_s - 0.05)
        last = next((counts for at, counts in self._records if at >= end_s - 0.05), self._records[-1][1])
        whole = self.link.rate * (end_s - begin_s)
        return [(after - before) / whole for before, after in zip(first, last, strict=True)]
