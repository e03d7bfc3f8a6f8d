"""Looking at triggers, in threads: a storage that does not answer holds up neither the clock nor other triggers."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from cargobike.core.errors import CargobikeError
from cargobike.core.registering.triggers import Seen, Trigger

LOOK_S: Final = 10.0
"""So long after a look comes the next."""
MOST_BACKOFF_S: Final = 300.0
_THREADS: Final = 4

_log = logging.getLogger(__name__)

LookAt = Callable[[Trigger, str], Seen]
"""Looks at a trigger, given a mark."""


class Answer(NamedTuple):
    """What came of a look.

    Attributes:
        schedule: The schedule for which it was made.
        trigger: What was looked at.
        since: The mark that it began with.
        seen: What was seen; `None` if it could not be looked at.
        error: Why not.
    """

    schedule: str
    trigger: Trigger
    since: str
    seen: Seen | None
    error: str = ""


class Looks(NamedTuple):
    """How often a trigger is looked at: later and later as long as that fails."""

    period_s: float = LOOK_S

    def pause_s(self, failures: int) -> float:
        """Return how long to wait before the next look, after so many failures in a row."""
        if failures == 0:
            return self.period_s
        return float(min(MOST_BACKOFF_S, max(self.period_s, 1.0) * 2 ** min(failures, 10)))


class LookingThreads:
    """A few threads that look at triggers.

    Args:
        look_at: What they call; it has a deadline of its own.
        wake: Called when there is an answer.
    """

    def __init__(self, look_at: LookAt, wake: Callable[[], None] = lambda: None) -> None:
        self._look_at = look_at
        self._wake = wake
        self._asked: queue.SimpleQueue[tuple[str, Trigger, str] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def ask(self, schedule: str, trigger: Trigger, since: str) -> None:
        """Have a trigger looked at."""
        if len(self._threads) < _THREADS:
            # A look that hangs must not keep the process alive when it is told to end.
            thread = threading.Thread(target=self._work, name="cargobike-look", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._asked.put((schedule, trigger, since))

    def answers(self) -> list[Answer]:
        """Return the answers that have come since the last call."""
        answers = []
        while True:
            try:
                answers.append(self._answers.get_nowait())
            except queue.Empty:
                return answers

    def close(self, timeout_s: float = 5.0) -> None:
        """End the threads, those that look at something as soon as they have."""
        for _ in self._threads:
            self._asked.put(None)
        for thread in self._threads:
            thread.join(timeout_s)
        self._threads.clear()

    def _work(self) -> None:
        while (task := self._asked.get()) is not None:
            self._answers.put(answer(self._look_at, *task))
            self._wake()


def answer(look_at: LookAt, schedule: str, trigger: Trigger, since: str) -> Answer:
    """Look at a trigger; whatever goes wrong is an answer too."""
    try:
        return Answer(schedule, trigger, since, look_at(trigger, since))
    except CargobikeError as error:
        return Answer(schedule, trigger, since, None, str(error))
    except Exception as error:  # noqa: BLE001 - what one product does wrong must not end the others' schedules
        _log.debug("a look at %s failed", trigger, exc_info=True)
        return Answer(schedule, trigger, since, None, repr(error))
