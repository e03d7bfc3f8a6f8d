"""Noticing that a member of a gang stands still: it neither computes nor says anything."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from cargobike.worker.processes import children_of
from cargobike.worker.wire import Membership

_LOOKS = 8
_MOST_OFTEN_S = 0.25
_LEAST_OFTEN_S = 5.0
_STILL = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")
_LONGEST_STACK = 20_000


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


def read_stack(fd: int) -> str:
    """Return what a runner wrote about its threads, the deepest frames first."""
    data = os.pread(fd, _LONGEST_STACK, 0)
    return data.decode(errors="replace").strip()
