"""Asks the optimizer: one question at a time, on a thread of its own once it takes long.

A quick optimizer is asked in the thread of the loop. One that has been slow twice in a row moves to a thread of its
own, so that reports, results and decisions of stop rules do not wait for it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import resource
import threading
import time
from collections import deque

import msgspec

from cargobike.core.records import Trial
from cargobike.experiments.scheduling.events import Event
from cargobike.experiments.scheduling.optimizer_session import OptimizerSession, Question

log = logging.getLogger(__name__)

_SLOW_S = 0.005


def _was_kept_waiting(before: resource.struct_rusage) -> bool:
    """Tell whether it was the machine that took long: we neither computed for that long nor waited for anything."""
    after = resource.getrusage(resource.RUSAGE_THREAD)
    processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return processor_s <= _SLOW_S and after.ru_nvcsw == before.ru_nvcsw


class OptimizerThread:
    """Puts the questions of a session to its optimizer, strictly one after the other."""

    def __init__(self, session: OptimizerSession) -> None:
        self._session = session
        self._answers: deque[Event] = deque()
        self._questions: queue.SimpleQueue[tuple[Question, float, tuple[Trial, ...]] | None] | None = None
        self._was_slow = False
        self._rules_are_slow = False
        self._thread: threading.Thread | None = None
        self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    @property
    def is_beside(self) -> bool:
        """Whether the optimizer has moved to a thread of its own, so that answers come later."""
        return self._questions is not None

    def put(self, question: Question, at: float) -> Event | None:
        """Ask; returns the answer with the time when it was given, or `None` if it will be in `answers` later."""
        trials = self._session.show(question)
        if self._questions is not None and (self._rules_are_slow or self._session.needs_optimizer(question)):
            self._questions.put((question, at, trials))
            return None
        started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_THREAD)
        answer = self._session.answer(question, at, trials)
        took_s = time.perf_counter() - started
        is_slow = took_s > _SLOW_S and not _was_kept_waiting(before)
        if is_slow:
            answer = msgspec.structs.replace(answer, at=at + took_s)
            if self._questions is not None:
                self._rules_are_slow = True
            elif self._was_slow:
                self._questions = queue.SimpleQueue()
                self._thread = threading.Thread(target=self._serve, name="cargobike-optimizer", daemon=True)
                self._thread.start()
        self._was_slow = is_slow
        return answer

    def answers(self, at: float) -> list[Event]:
        """Return the answers that have come from the optimizer's own thread, with the present time."""
        if self._questions is None:
            return []
        # Read even if there is no answer: the one that it announces may have been taken already, and a descriptor that
        # stays readable would keep the loop spinning.
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.wake_fd)
        events: list[Event] = []
        while self._answers:
            events.append(msgspec.structs.replace(self._answers.popleft(), at=at))
        return events

    def finish(self) -> None:
        """Show the optimizer the remaining trials and finish its session; its errors reach the caller."""
        if self._is_done():
            self._session.finish()
        else:
            log.warning("the optimizer is still thinking; it is not shown the last trials")

    def close(self) -> None:
        """End the thread; an optimizer that is still thinking is not waited for."""
        if self._is_done() and self.wake_fd >= 0:
            os.close(self.wake_fd)
            self.wake_fd = -1

    def _is_done(self) -> bool:
        """Give the optimizer a moment to finish its last answer, and tell whether it has."""
        if self._thread is not None and self._questions is not None:
            self._questions.put(None)
            self._thread.join(timeout=1.0)
            return not self._thread.is_alive()
        return True

    def _serve(self) -> None:
        assert self._questions is not None
        while (item := self._questions.get()) is not None:
            self._answers.append(self._session.answer(*item))
            os.eventfd_write(self.wake_fd, 1)
