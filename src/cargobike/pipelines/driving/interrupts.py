"""Ctrl-C and SIGTERM while a pipeline runs: never in the middle of what must be done whole."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupts:
    """While entered, signals that end a program raise `KeyboardInterrupt` in the pipeline, but not inside `whole()`.

    SIGTERM and SIGHUP are handled unless the program does so itself; `pass_on` delivers them again at the end. Works in
    the main thread; elsewhere signals do not arrive, and nothing changes.
    """

    def __init__(self) -> None:
        self.ended_by: int | None = None
        self._depth = 0
        self._is_pending = False
        self._before: dict[int, object] = {}
        self._thread = threading.get_ident()

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._interrupted)
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:
                    self._before[number] = signal.signal(number, self._interrupted)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._before.clear()

    @property
    def can_interrupt(self) -> bool:
        """Whether `interrupt` reaches the pipeline."""
        return signal.SIGINT in self._before

    def interrupt(self) -> None:
        """Interrupt the pipeline from another thread."""
        signal.pthread_kill(self._thread, signal.SIGINT)

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """Hold back what would interrupt the block until it is done."""
        if threading.get_ident() != self._thread:
            yield
            return
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if self._is_pending and not self._depth:
            self._is_pending = False
            raise KeyboardInterrupt

    def pass_on(self) -> None:
        """End this process as it was told to, now that everything is safe."""
        if self.ended_by in (signal.SIGTERM, signal.SIGHUP):
            signal.raise_signal(self.ended_by)

    def _interrupted(self, number: int, _frame: FrameType | None) -> None:
        self.ended_by = number
        if self._depth:
            self._is_pending = True
            return
        raise KeyboardInterrupt
