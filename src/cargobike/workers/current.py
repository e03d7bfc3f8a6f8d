"""What an agent knows about the assignment that it looks after, and about its runner."""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from cargobike.workers.quiet import QuietWatch, StackWait
from cargobike.workers.usage import Measured, UseWatch
from cargobike.workers.wire import messages as wire
from cargobike.workers.wire.messages import Assign


class Runner(enum.Enum):
    """The state of the runner as the agent sees it; the agent knows nothing of the template's spare runners."""

    ABSENT = enum.auto()
    BUSY = enum.auto()
    """It works on the current assignment, or is about to."""
    IDLE = enum.auto()
    """It waits for its next assignment, which only reused runners do."""
    LEAVING = enum.auto()
    """It has done its last assignment and should end by itself; what it still prints belongs to that assignment."""


class Current(msgspec.Struct):
    """The assignment that has not ended yet."""

    assign: Assign[msgspec.Raw]
    packet: bytes = b""
    halted: bool = False
    killed: bool = False
    kill_at: float | None = None
    quiet: QuietWatch | None = None
    stack: StackWait | None = None
    use: UseWatch | None = None

    @property
    def deadlines(self) -> tuple[float | None, ...]:
        """When something is due."""
        return self.kill_at, *(watch.next_look for watch in (self.quiet, self.stack, self.use) if watch is not None)

    def is_meant(self, message: wire.Tell[Any] | wire.Halt | wire.Said[Any] | wire.Ended[Any]) -> bool:
        """Tell whether a message belongs to this assignment; others are late, or meant for an earlier one."""
        return self.assign.task == message.task and self.assign.attempt == message.attempt

    def used(self, use: UseWatch, now: float, measured: Measured) -> wire.Used:
        """Return what to tell the driver of a measurement."""
        processors = use.look(now, measured)
        return wire.Used(
            self.assign.task,
            self.assign.attempt,
            now - use.began,
            processors,
            measured.memory_bytes,
            measured.gpu,
            measured.gpu_memory_bytes,
        )
