"""Answers that are made in the background and kept for a while, so that a page can show the last one at once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from cargobike.core.errors import CargobikeError

_T = TypeVar("_T")
_SHARE: Final = 5.0
"""The share of time that making an answer may take: one that took a second is not repeated for five."""

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
            with self._lock:
                self._rest_until = now + max(self._rest_s, _SHARE * (now - began))
                self._round = None
            waiting.set()
