"""Ctrl-C, taken at a moment of our choosing instead of in the middle of a line."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType


class InterruptWatch:
    """While entered: the first Ctrl-C only sets `requested`; the second raises `KeyboardInterrupt` as usual.

    Works in the main thread; elsewhere signals do not arrive, and nothing changes.
    """

    def __init__(self) -> None:
        self.requested = False
        self.insisted = False
        self.wake_fd: int | None = None
        self._before: object = None

    def __enter__(self) -> InterruptWatch:
        if threading.current_thread() is threading.main_thread():
            self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, *_: object) -> None:
        if self.wake_fd is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]
            os.close(self.wake_fd)
            self.wake_fd = None

    def _interrupted(self, _signal: int, _frame: FrameType | None) -> None:
        if self.requested:
            self.insisted = True
            raise KeyboardInterrupt
        self.requested = True
        if self.wake_fd is not None:
            os.eventfd_write(self.wake_fd, 1)
