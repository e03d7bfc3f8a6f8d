"""What the scheduler hears (events) and what it wants done (commands).

Events carry the driver's time in `at`; commands carry everything that is needed to carry them out, and leave in the
order in which they were put into the outbox.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from cargobike.core.ending import Ending
from cargobike.core.facts import AnyFact, Fact
from cargobike.core.member import Role
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Decision, Suggestion


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of all events."""

    at: float


class WorkerArrived(Event, frozen=True):
    """A worker connected and registered."""

    worker: str
    host: str = ""
    pid: int = 0
    gpus: tuple[str, ...] = ()


class WorkerGone(Event, frozen=True):
    """A worker is dead, silent for too long, or never came."""

    worker: str
    ending: Ending


class SuggestionMade(Event, frozen=True, gc=True):
    """The optimizer answered an `Ask`; `told` counts the ended trials it had been shown by then."""

    suggestion: Suggestion | Literal["IDLE"] | None
    told: int = 0
    after: int | None = None


class PointsReported(Event, frozen=True, gc=True):
    """A train function reported; `waits` means that it stands still until it gets an `Answer`.

    In a gang what rank 0 reports counts; the other ranks pass a milestone when it has passed. `again` means that an
    earlier attempt has reported it, and that it is news only if it was lost on its way.
    """

    worker: str
    trial: int
    attempt: int
    step: int
    metrics: dict[str, float]
    waits: bool = False
    again: bool = False


class DecisionMade(Event, frozen=True):
    """The answer to a `Judge`."""

    trial: int
    attempt: int
    step: int
    decision: Decision
    by: str = ""
    told: int = 0


class CheckpointWritten(Event, frozen=True):
    """A train function saved a checkpoint."""

    worker: str
    trial: int
    attempt: int
    step: int
    path: str
    size_bytes: int = 0


Outcome = Literal["completed", "stopped", "paused", "failed", "lost"]


class AttemptEnded(Event, frozen=True, gc=True):
    """One worker is done with an attempt and free again.

    `alike` is equal for failures with the same cause; `lost` is an end through no fault of the trial. A symptom is one
    that another member of the gang has caused. `stack` says where it stood when it was made to end.
    """

    worker: str
    trial: int
    attempt: int
    outcome: Outcome
    value: float | None = None
    metrics: dict[str, float] = msgspec.field(default_factory=dict)
    error: str | None = None
    alike: str = ""
    peak_memory_bytes: int | None = None
    is_symptom: bool = False
    stack: str = ""


class RankActive(Event, frozen=True):
    """A member of a gang has printed something, or told the others something."""

    worker: str
    trial: int


class RankQuiet(Event, frozen=True):
    """A member of a gang has been standing still for so long."""

    worker: str
    trial: int
    attempt: int
    idle_s: float


class Tick(Event, frozen=True):
    """Time has passed."""


class StopRequested(Event, frozen=True):
    """Somebody wants the experiment to end: the user, `cargobike stop`, a budget."""

    reason: str
    state: Literal["completed", "interrupted", "failed"] = "interrupted"


class Command(msgspec.Struct, frozen=True, gc=False):
    """Base of all commands."""


class Record(Command, frozen=True):
    """Write a fact into the journal, before any other command of the same list is carried out."""

    fact: Fact


class Ask(Command, frozen=True):
    """Show the optimizer the trials in `tell`, then ask it for a suggestion; answer with `SuggestionMade`."""

    tell: tuple[int, ...]
    after: int | None


class Judge(Command, frozen=True):
    """Let optimizer and stop rules decide about a trial at a milestone; answer with `DecisionMade`.

    It may be compared with what was shown among the first `horizon` trials told (`None`: with all trials as they are).
    """

    trial: int
    attempt: int
    step: int
    horizon: int | None = None


class Run(Command, frozen=True):
    """Let a gang of workers run a trial, the first of them as rank 0; the last ones are parameter servers."""

    trial: int
    attempt: int
    workers: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    servers: int = 0


class Answer(Command, frozen=True):
    """Let a waiting train function go on, stop or pause."""

    worker: str
    trial: int
    attempt: int
    step: int
    decision: Decision


class StopAttempt(Command, frozen=True):
    """Make a worker end its attempt: politely first unless `kill`; with `stack`, it says where it stands.

    A parameter server gets more time than others: it may have something to save.
    """

    worker: str
    trial: int
    attempt: int
    kill: bool = False
    stack: bool = False
    is_server: bool = False


class StartWorker(Command, frozen=True):
    """Ask the engine for a worker with this name."""

    worker: str
    role: Role = Role.WORKER


class ReleaseWorker(Command, frozen=True):
    """Send a worker home; nobody needs it any more."""

    worker: str


class Finish(Command, frozen=True):
    """The experiment has ended; always the last command."""

    state: Literal["completed", "interrupted", "failed"]
    reason: str = ""


Kind = TypeVar("Kind")


def entry(kind: type[Kind], do: Callable[[Kind], object]) -> tuple[type, Callable[[Any], object]]:
    """Return one line of a table of what to do with each kind of event or command.

    The table is looked up by type, which costs less than any dispatch; the type checker sees that the function takes
    what it is called with.
    """
    return kind, do


def table(*entries: tuple[type, Callable[[Any], object]]) -> dict[type, Callable[[Any], object]]:
    """Return a table of entries."""
    return dict(entries)


class Outbox:
    """Collects commands; a fact is true for the record at once, and a command to write it down.

    Args:
        record: What the facts so far say.
    """

    def __init__(self, record: ExperimentRecord) -> None:
        self.record = record
        self._commands: list[Command] = []

    def fact(self, fact: AnyFact) -> None:
        """Record a fact."""
        self.record.apply(fact)
        self._commands.append(Record(fact))

    def command(self, command: Command) -> None:
        """Ask for something to be done."""
        self._commands.append(command)

    def take(self) -> list[Command]:
        """Return what was collected, and start over."""
        taken = self._commands
        self._commands = []
        return taken
