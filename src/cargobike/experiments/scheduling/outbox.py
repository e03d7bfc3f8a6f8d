"""Where the scheduler puts what is to be done, in the order in which it holds."""

from __future__ import annotations

from cargobike.core.facts import AnyFact
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.scheduling.events import Command, Record


class Outbox:
    """Collects commands; a fact is true for the record at once, and a command to write it down.

    Args:
        record: What the facts so far say.
    """

    def __init__(self, record: ExperimentRecord) -> None:
        self.record = record
        self._commands: list[Command] = []

    def fact(self, fact: AnyFact) -> None:
        """Let something be true."""
        self.record.apply(fact)
        self._commands.append(Record(fact))

    def command(self, command: Command) -> None:
        """Let something be done."""
        self._commands.append(command)

    def take(self) -> list[Command]:
        """Return what was collected, and begin anew."""
        taken = self._commands
        self._commands = []
        return taken
