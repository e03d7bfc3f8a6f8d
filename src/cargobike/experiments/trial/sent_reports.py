"""The reports of a trial as its train function makes them: each has a number, and is kept until it is in the journal.

An attempt that goes on from a checkpoint counts on from the reports that had been made when it was saved. So every
report of a trial has one number, also if it is made a second time because the training goes back to a checkpoint, and
the driver can tell from the number what it has, what is missing and what takes the place of what.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections import deque
from collections.abc import Callable

import msgspec

from cargobike.core.facts import Count, ReportNumber
from cargobike.core.values.packed_numbers import Number, pack_numbers, unpack_numbers
from cargobike.experiments.trial.messages import Confirmed, ForRunner, Point, Step
from cargobike.workers.wire.mailbox import Mailbox
from cargobike.workers.wire.messages import Tell

ASK_EVERY = 100
"""How many reports are made before the driver is asked to confirm them: an answer to each would cost too much."""


class KeptReport(msgspec.Struct, frozen=True, array_like=True):
    """A report that may not have reached the driver when a checkpoint was saved.

    Attributes:
        number: Which report of the trial it is, from 1.
        attempt: The attempt that made it.
        step: The step that it named.
        metrics: What was reported.
    """

    number: ReportNumber
    attempt: Count
    step: Step
    metrics: dict[str, Number]


class Reports(msgspec.Struct, frozen=True):
    """The reports that a trial had made when a checkpoint was saved.

    Attributes:
        count: How many.
        last_step: The step of the last one.
        unconfirmed: Those of which the driver had not said that they are in the journal.
    """

    count: ReportNumber = 0
    last_step: Step | None = None
    unconfirmed: tuple[KeptReport, ...] = ()


_Sent = tuple[int, int, int, dict[str, float]]


class _Counters:
    """Numbers that processes share which are forked from here; asking the kernel for each alone would take long."""

    def __init__(self) -> None:
        self._left = memoryview(b"").cast("q")
        self._owner = 0

    def next(self) -> memoryview[int]:
        """Return a number of its own for each call, 0 at first."""
        if not len(self._left) or self._owner != os.getpid():
            self._owner = os.getpid()
            self._left = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")
        counter, self._left = self._left[:1], self._left[1:]
        return counter


_counters = _Counters()


class SentReports:
    """Counts the reports of one attempt, and remembers those that the driver has not confirmed.

    Args:
        trial: Number of the trial.
        attempt: Which attempt of the trial it is.
        say: Sends a report to the driver.
        mailbox: Returns where confirmations come in; not asked before there may be some.

    Attributes:
        lock: Held while a report gets its number and leaves: threads report one after the other.
    """

    def __init__(
        self, trial: int, attempt: int, say: Callable[[Point], None], mailbox: Callable[[], Mailbox[ForRunner]]
    ) -> None:
        self.lock = threading.RLock()
        self._count = _counters.next()
        self._trial = trial
        self._attempt = attempt
        self._say = say
        self._mailbox = mailbox
        self._unconfirmed: deque[_Sent] = deque()

    @property
    def count(self) -> int:
        """The number of the trial's last report, those of earlier attempts and of forked processes included."""
        return self._count[0]

    def send(self, step: int, metrics: dict[str, float], *, waits: bool) -> None:
        """Give a report its number and send it; one that cannot be sent has none."""
        number = self._count[0] + 1
        asks = not waits and number % ASK_EVERY == 0
        self._say(Point(step, metrics, waits, number, 0, asks))
        self._count[0] = number
        self._unconfirmed.append((number, self._attempt, step, metrics))
        if asks:
            self._hear()

    def _hear(self) -> None:
        """Forget the reports that the driver has confirmed meanwhile."""
        for message in self._mailbox().take(self._is_confirmation):
            if isinstance(message, Tell) and isinstance(message.body, Confirmed):
                self.confirmed(message.body.number)

    def _is_confirmation(self, message: ForRunner) -> bool:
        if not isinstance(message, Tell) or not isinstance(message.body, Confirmed):
            return False
        return (message.task, message.attempt) == (self._trial, self._attempt)

    def confirmed(self, number: int) -> None:
        """Forget the reports up to a number: they are in the journal."""
        unconfirmed = self._unconfirmed
        with self.lock:
            while unconfirmed and unconfirmed[0][0] <= number:
                unconfirmed.popleft()

    def describe(self, last_step: int | None) -> Reports:
        """Return what a checkpoint has to remember."""
        self._hear()
        with self.lock:
            kept = [
                KeptReport(number, made_in, step, pack_numbers(m)) for number, made_in, step, m in self._unconfirmed
            ]
            return Reports(self.count, last_step, tuple(kept))

    def take_up(self, reports: Reports) -> int | None:
        """Count on from the reports of a checkpoint, and send what may be lost again; returns the last step."""
        with self.lock:
            self._count[0] = reports.count
            for kept in reports.unconfirmed:
                metrics = unpack_numbers(kept.metrics)
                self._unconfirmed.append((kept.number, kept.attempt, kept.step, metrics))
                self._say(Point(kept.step, metrics, False, kept.number, kept.attempt))
        return reports.last_step
