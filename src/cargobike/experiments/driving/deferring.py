"""Ctrl-C while user code and the driver take turns in one thread: it interrupts user code, never the driver."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Deferring:
    """While entered, Ctrl-C raises `KeyboardInterrupt`, but inside `deferred()` only when that is left.

    A second Ctrl-C is not deferred. Works in the main thread, where signals arrive, and leaves handlers of the
    program's own alone.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._is_pending = False
        self._is_installed = False

    def __enter__(self) -> Deferring:
        if _is_main() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupted)
            self._is_installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._is_installed = False

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Put an interrupt off until the end of this block."""
        if not _is_main():
            yield
            return
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if not self._depth and self._is_pending:
            self._is_pending = False
            raise KeyboardInterrupt

    def _interrupted(self, _signal: int, _frame: FrameType | None) -> None:
        if self._depth and not self._is_pending:
            self._is_pending = True
            return
        self._is_pending = False
        raise KeyboardInterrupt


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
