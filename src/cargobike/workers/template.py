"""The template's decisions: which runner gets an assignment, when to fork a spare. Pure: events in, commands out."""

from __future__ import annotations

from collections import deque

import msgspec

from cargobike.workers.wire.inner import CheckUnread, Exited, Import, Kill, ShowStack, Start, ToTemplate

_SPARE_FROM = 2

# -- events ----------------------------------------------------------------------------------------------------------


class Heard(msgspec.Struct, gc=False):
    """The agent has said something."""

    message: ToTemplate


class Ended(msgspec.Struct, gc=False):
    """A runner has ended; `has_begun` tells whether it had taken its first assignment."""

    runner: int
    code: int
    peak_memory_bytes: int
    has_begun: bool


class Unread(msgspec.Struct, gc=False):
    """Answers `TakeUnread`: assignments that the dead runner has not read."""

    packets: list[bytes]


class Rested(msgspec.Struct, gc=False):
    """Nothing has happened for a moment: the runner that just got its assignment is on its way."""


Event = Heard | Ended | Unread | Rested


# -- commands --------------------------------------------------------------------------------------------------------


class Fork(msgspec.Struct, gc=False):
    """Fork a runner that is called by this number from now on.

    It is born with its first assignment, `packet`, or waits for it: as a spare, for which there is time to rehearse, or
    not.
    """

    runner: int
    packet: bytes = b""
    is_spare: bool = False


class Give(msgspec.Struct, gc=False):
    """Give a runner that waits its first assignment."""

    runner: int
    packet: bytes


class KillRunner(msgspec.Struct, gc=False):
    """Kill a runner; a later event says that it has ended."""

    runner: int


class Drop(msgspec.Struct, gc=False):
    """End a runner that has run nothing; no event follows."""

    runner: int


class AskForStack(msgspec.Struct, gc=False):
    """Make a runner write the stacks of its threads."""

    runner: int


class TakeUnread(msgspec.Struct, gc=False):
    """Take what the dead runner has not read, so that its successor does not take it for its own."""


class Tell(msgspec.Struct, gc=False):
    """Tell the agent how a runner has ended."""

    exited: Exited


class ImportModules(msgspec.Struct, gc=False):
    """Import modules; if that fails, the runner reports it."""

    names: list[str]


Command = Fork | Give | KillRunner | Drop | AskForStack | TakeUnread | Tell | ImportModules


# -- deciding --------------------------------------------------------------------------------------------------------


class _Working(msgspec.Struct):
    number: int
    is_spare: bool
    packet: bytes
    is_killed: bool = False


class Template:
    """The state of a template.

    From the second assignment on it keeps a *spare*: a runner that was forked ahead and has run nothing, so that the
    next one begins at once. A worker with a single assignment needs none. A spare is thrown away when the template
    learns what the next runner should have imported.

    Args:
        reuse: Whether a runner takes one assignment after the other; then there are no spares, except the first runner.
    """

    def __init__(self, *, reuse: bool) -> None:
        self._reuse = reuse
        self.spare_is_due = False
        self._working: _Working | None = None
        self._spare: int | None = None
        self._waiting: deque[bytes] = deque()
        self._learned: list[str] = []
        self._begun = 0
        self._last_number = 0
        self._last_exit: Exited | None = None
        self._commands: list[Command] = []

    def handle(self, event: Event) -> list[Command]:
        """Handle an event; returns the commands that follow from it, in order."""
        commands: list[Command] = []
        self._commands = commands
        if isinstance(event, Heard):
            self._heard(event.message)
        elif isinstance(event, Ended):
            self._ended(event)
        elif isinstance(event, Unread):
            self._unread(event.packets)
        elif self.spare_is_due:
            self.spare_is_due = False
            self._spare = self._next_number()
            commands.append(Fork(self._spare, is_spare=True))
        elif self._reuse and not self._last_number:
            self._spare = self._next_number()  # the first runner: it will be needed, and need not be rehearsed
            commands.append(Fork(self._spare))
        if self._working is None and self._waiting:
            self._begin(self._waiting.popleft())
        return commands

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def _begin(self, packet: bytes) -> None:
        number, self._spare = self._spare, None
        is_spare = number is not None
        if number is None:
            number = self._next_number()
            self._commands.append(Fork(number, packet))
        else:
            self._commands.append(Give(number, packet))
        self._working = _Working(number, is_spare, packet)
        self._begun += 1
        self.spare_is_due = not self._reuse and self._begun >= _SPARE_FROM

    def _heard(self, message: ToTemplate) -> None:
        working = self._working
        if isinstance(message, Start):
            self._waiting.append(bytes(message.assign))
        elif isinstance(message, Import):
            self._learned += message.names
            if working is None:
                self._learn()
        elif isinstance(message, CheckUnread):
            if self._last_exit is not None:
                self._commands.append(TakeUnread())
        elif working is not None and isinstance(message, Kill):
            working.is_killed = True
            self._commands.append(KillRunner(working.number))
        elif working is not None and isinstance(message, ShowStack):
            self._commands.append(AskForStack(working.number))

    def _ended(self, event: Ended) -> None:
        if event.runner == self._spare:
            # The next one is forked with the next assignment: something that kills spares would keep us forking.
            self._spare = None
            return
        working = self._working
        if working is None or event.runner != working.number:
            return
        self._working = None
        if working.is_spare and not working.is_killed and not event.has_begun:
            self._waiting.appendleft(working.packet)  # it ended while it was a spare: the assignment did not fail
            return
        self._last_exit = Exited(event.code, event.peak_memory_bytes)
        self._commands.append(Tell(self._last_exit))
        self._learn()

    def _learn(self) -> None:
        """Import what a runner needed, so that the next one finds it there."""
        if not self._learned:
            return
        if self._spare is not None:
            self._commands.append(Drop(self._spare))
            self._spare = None
            self.spare_is_due = True
        self._commands.append(ImportModules(self._learned))
        self._learned = []

    def _unread(self, packets: list[bytes]) -> None:
        assert self._last_exit is not None
        self._waiting.extend(packets)
        self._commands.append(Tell(msgspec.structs.replace(self._last_exit, goes_on=bool(self._waiting))))
