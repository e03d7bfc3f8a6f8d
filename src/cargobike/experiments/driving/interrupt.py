"""Ctrl-C, SIGTERM and SIGHUP, handled between two rounds of the loop instead of in the middle of a line."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType


class InterruptWatch:
    """While entered: the first signal only sets `requested`; a second Ctrl-C raises `KeyboardInterrupt` as usual.

    SIGTERM, with which batch systems announce the end of a job, and SIGHUP, with which a lost terminal does, are
    watched unless the program handles them itself. `pass_on` delivers them again, when everything that must not be lost
    is safe. Works in the main thread; elsewhere signals do not arrive, and nothing changes.
    """

    def __init__(self) -> None:
        self.requested = False
        self.insisted = False
        self.wake_fd: int | None = None
        self._before: object = None
        self._watched: list[signal.Signals] = []
        self._ended_by: int | None = None

    def __enter__(self) -> InterruptWatch:
        if threading.current_thread() is threading.main_thread():
            self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._before = signal.signal(signal.SIGINT, self._interrupted)
            endings = (signal.SIGTERM, signal.SIGHUP)
            self._watched = [number for number in endings if signal.getsignal(number) is signal.SIG_DFL]
            for number in self._watched:
                signal.signal(number, self._terminated)
        return self

    def __exit__(self, *_: object) -> None:
        if self.wake_fd is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]
            for number in self._watched:
                signal.signal(number, signal.SIG_DFL)
            os.close(self.wake_fd)
            self.wake_fd = None

    def _interrupted(self, _signal: int, _frame: FrameType | None) -> None:
        if self.requested:
            self.insisted = True
            raise KeyboardInterrupt
        self._request()

    def _terminated(self, number: int, _frame: FrameType | None) -> None:
        self._ended_by = number
        self._request()

    def pass_on(self) -> None:
        """End this process now, if that was asked for."""
        if self._ended_by is not None:
            signal.raise_signal(self._ended_by)

    def _request(self) -> None:
        self.requested = True
        if self.wake_fd is not None:
            os.eventfd_write(self.wake_fd, 1)
