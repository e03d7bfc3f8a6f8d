"""Answers that are kept for a while, so that a page can show the last one at once, and made in the background."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, Generic, TypeVar

from cargobike.core.errors import CargobikeError, StillReadingError

_T = TypeVar("_T")
_SHARE: Final = 8.0
"""The share of time that making an answer may take: one that took a second is not repeated for eight."""
_TURNS: Final = threading.Lock()
"""What takes long is made one after the other, so that pages, which share the interpreter with it, need not wait."""
_BRIEF_S: Final = 0.05
_TURN_S: Final = 30.0

_log = logging.getLogger(__name__)


class Refreshed(Generic[_T]):
    """What a function returned last; it is called again when that is old and wanted. May be used by several threads.

    Args:
        make: Returns the answer; called by one thread at a time.
        rest_s: For how long an answer counts as new.
    """

    def __init__(self, make: Callable[[], _T], *, rest_s: float) -> None:
        self._make = make
        self._rest_s = rest_s
        self._lock = threading.Lock()
        self._round: threading.Event | None = None
        self._rest_until = 0.0
        self.last: _T | None = None
        """The last answer; `None` before the first."""
        self.took_s: float | None = None
        """How long the last one took; `None` before the first one."""
        self.problem = ""
        """Why the last attempt failed; empty if it did not."""

    def wake(self) -> threading.Event:
        """Begin to make an answer unless the last is new; returns what is set as soon as there is one that is."""
        with self._lock:
            if self._round is None:
                self._round = threading.Event()
                if time.monotonic() < self._rest_until:
                    self._round.set()
                else:
                    threading.Thread(target=self._refresh, args=(self._round,), daemon=True).start()
            waiting = self._round
            if waiting.is_set():
                self._round = None
            return waiting

    def wait(self, patience_s: float) -> bool:
        """Wait for an answer that is new, but not for long; returns whether there is one."""
        return self.wake().wait(patience_s)

    def _refresh(self, waiting: threading.Event) -> None:
        # The first one is wanted now; one that is brief is in the way of nothing.
        waits = self.took_s is not None and self.took_s > _BRIEF_S and _TURNS.acquire(timeout=_TURN_S)
        began = time.monotonic()
        try:
            self.last, self.problem = self._make(), ""
        except (CargobikeError, OSError) as error:
            self.problem = str(error)
        except Exception as error:  # noqa: BLE001 - a card of one product must not take those of others along
            self.problem = f"This cannot be read: {error!r}."
            _log.exception("A part of the start page or of search cannot be made")
        finally:
            now = time.monotonic()
            if waits:
                _TURNS.release()
            self.took_s = now - began
            with self._lock:
                self._rest_until = now + max(self._rest_s, _SHARE * (now - began))
                self._round = None
            waiting.set()


PATIENCE_S: Final[ContextVar[float]] = ContextVar("PATIENCE_S", default=60.0)
"""How long a caller waits for a list that was never made: a page less than a program."""


class Lately(Generic[_T]):
    """What a function returns now; if that takes long, what it returned a moment ago. May be used by several threads.

    While the function is quick, every caller gets an answer that was begun after it asked. One that takes long, since
    there is very much to list, is made in the background, and callers get the last one.

    Args:
        make: Returns the answer.
        quick_s: What counts as quick, and how long a caller waits for an answer that is new.
    """

    def __init__(self, make: Callable[[], _T], *, quick_s: float = 0.1) -> None:
        self._make = make
        self._quick_s = quick_s
        self._lock = threading.Lock()
        self._first: Refreshed[_T] | None = None
        self._slow: Refreshed[_T] | None = None
        self._was_made = False

    def get(self) -> _T:
        """Return the answer.

        Raises:
            StillReadingError: If there is no answer yet, and making it takes longer than `PATIENCE_S`.
            CargobikeError: What the function raised, if there is no answer yet.
        """
        slow = self._slow
        if slow is None and not self._was_made:
            return self._made_first()
        if slow is None:
            with self._lock:
                if self._slow is None:
                    return self._made()
                slow = self._slow  # another caller has found out that it takes long, and has just made one
        else:
            slow.wait(self._quick_s)
            if slow.took_s is not None and slow.took_s <= self._quick_s and not slow.problem:
                self._slow = None  # the one before had to load libraries, or the machine was busy
        return self._made() if slow.last is None else slow.last

    def _made_first(self) -> _T:
        with self._lock:
            first = self._first = self._first or Refreshed(self._make, rest_s=self._quick_s)
        if not first.wait(PATIENCE_S.get()):
            raise StillReadingError("This is being read for the first time; ask again in a moment.")
        if first.last is None:
            return self._made()  # raises what was wrong, in the thread that asked
        with self._lock:
            if not self._was_made and first.took_s is not None and first.took_s > self._quick_s:
                self._slow = self._kept(first.last)
            self._was_made = True
        return first.last

    def _made(self) -> _T:
        began = time.monotonic()
        answer = self._make()
        if time.monotonic() - began > self._quick_s:
            self._slow = self._kept(answer)
        self._was_made = True
        return answer

    def _kept(self, answer: _T) -> Refreshed[_T]:
        """Return what makes answers in the background, and has one; the next caller has it begin at once."""
        kept = Refreshed(self._make, rest_s=self._quick_s)
        kept.last = answer
        return kept
