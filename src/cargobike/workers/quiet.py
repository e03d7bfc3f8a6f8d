"""Noticing that a member of a gang stands still: it neither computes nor says anything."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from cargobike.workers.processes import children_of
from cargobike.workers.wire import Membership

_LOOKS = 8
_MOST_OFTEN_S = 0.25
_LEAST_OFTEN_S = 5.0
_STILL = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")
_LONGEST_STACK = 20_000
_LOOK_AT_STACK_S = 0.05


@dataclass(slots=True)
class QuietWatch:
    """Looks at a runner from outside every now and then.

    It stands still while it and its children use next to no processor time, print nothing and report nothing: a rank
    that waits for another one in a collective looks like this, and so does one that sleeps or is locked up. One that
    computes does not, however long it takes.

    Attributes:
        template_pid: The runner's parent.
        pause_s: Time between two looks.
        next_look: When the next one is due.
    """

    template_pid: int
    pause_s: float
    report_after_s: float
    next_look: float = 0.0
    _active_at: float = field(default_factory=time.monotonic)
    _looked_at: float = field(default_factory=time.monotonic)
    _seconds: float = 0.0

    @staticmethod
    def of(membership: Membership, template_pid: int) -> QuietWatch | None:
        """Return a watch for a member that others may wait for; `None` if nobody will."""
        patience_s = membership.stall_timeout_s
        if patience_s is None or len(membership.roles) < 2:
            return None
        pause_s = min(_LEAST_OFTEN_S, max(_MOST_OFTEN_S, patience_s / _LOOKS))
        return QuietWatch(template_pid, pause_s, patience_s / 2, time.monotonic() + pause_s)

    def heard(self) -> None:
        """The runner has said something."""
        self._active_at = time.monotonic()

    def look(self, now: float) -> float:
        """Return for how long it has been standing still, 0 while that is not worth a word."""
        seconds = processor_seconds(self.template_pid)
        if seconds - self._seconds > _STILL * (now - self._looked_at):
            self._active_at = now
        self._seconds, self._looked_at, self.next_look = seconds, now, now + self.pause_s
        idle_s = now - self._active_at
        return idle_s if idle_s >= self.report_after_s else 0.0


def processor_seconds(parent: int) -> float:
    """Return the processor time that everything below a process has used."""
    total = 0.0
    for child in children_of(parent):
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            total += (int(words[11]) + int(words[12])) / _TICKS
        total += processor_seconds(child)
    return total


class StackReader:
    """Reads where a runner's threads stand from a file that it writes that into when it is asked.

    Args:
        fd: The file, in memory, open in both processes.

    Attributes:
        is_wanted: Whether it was asked.
        next_look: When to look whether it has answered.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._bytes = 0
        self.is_wanted = False
        self.next_look: float | None = None

    def want(self) -> None:
        """Wait for an answer from now on."""
        os.ftruncate(self._fd, 0)
        os.lseek(self._fd, 0, os.SEEK_SET)
        self._bytes = 0
        self.is_wanted = True
        self.next_look = time.monotonic() + _LOOK_AT_STACK_S

    def has_come(self, now: float) -> bool:
        """Tell, once, that the answer is there and does not grow any more."""
        if self.next_look is None or now < self.next_look:
            return False
        before, self._bytes = self._bytes, os.fstat(self._fd).st_size
        if self._bytes and self._bytes == before:
            self.next_look = None
            return True
        self.next_look = now + _LOOK_AT_STACK_S
        return False

    @property
    def text(self) -> str:
        """The stacks of all threads, the deepest frames first; empty if nobody asked or nobody answered."""
        return os.pread(self._fd, _LONGEST_STACK, 0).decode(errors="replace").strip() if self.is_wanted else ""

    def forget(self) -> None:
        """Wait no longer."""
        self.is_wanted = False
        self.next_look = None
