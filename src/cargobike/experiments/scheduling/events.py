"""What the scheduler hears (events) and what it wants done (commands).

Events carry the driver's time in `at`; commands carry everything that is needed to carry them out, and leave in the
order in which they were put into the outbox.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from cargobike.core.facts import AnyFact, Fact
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Decision, Suggestion
from cargobike.core.running.ending import Ending
from cargobike.core.running.member import Role


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of all events."""

    at: float


class WorkerArrived(Event, frozen=True):
    """A worker connected and registered; one that `holds` trials can be given some before it needs them."""

    worker: str
    host: str = ""
    pid: int = 0
    gpus: tuple[str, ...] = ()
    holds: bool = False


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
    """A train function reported; `waits` means that it waits until it gets an `Answer`.

    In a gang only the reports of rank 0 count; the other ranks pass a milestone when rank 0 has passed it.

    Attributes:
        number: Which report of the trial it is, from 1; 0 for one more.
        made_in: The attempt that made it, if that was an earlier one; it is news only if it never arrived.
        asks: Whether the worker wants to know when it is in the journal.
    """

    worker: str
    trial: int
    attempt: int
    step: int
    metrics: dict[str, float]
    waits: bool = False
    number: int = 0
    made_in: int = 0
    asks: bool = False


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


class ModelPacked(Event, frozen=True):
    """A train function kept a model with its trial."""

    worker: str
    trial: int
    attempt: int
    name: str


Outcome = Literal["completed", "stopped", "paused", "failed", "lost"]


class AttemptEnded(Event, frozen=True, gc=True):
    """One worker is done with an attempt and free again.

    `alike` is equal for failures with the same cause; `lost` is an end that is not the trial's fault. A symptom is an
    end that another member of the gang has caused. `stack` says what it was doing when it was made to end, `took_s` for
    how long its process was busy with it, if that is known.
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
    extras: dict[str, Any] = msgspec.field(default_factory=dict)
    took_s: float | None = None


class TrialsReturned(Event, frozen=True):
    """A worker returns trials that it was given ahead and has not begun; what it still has, it has begun."""

    worker: str
    trials: tuple[int, ...]


class RankActive(Event, frozen=True):
    """A member of a gang has printed something, or sent something to the others."""

    worker: str
    trial: int


class RankQuiet(Event, frozen=True):
    """A member of a gang has hardly computed, and printed and reported nothing, for `idle_s`."""

    worker: str
    trial: int
    attempt: int
    idle_s: float


class Tick(Event, frozen=True):
    """Time has passed."""


class StopRequested(Event, frozen=True):
    """The experiment is to end: the user, `cargobike stop` or a failing optimizer wants it."""

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
    """Ask the optimizer and the stop rules for a decision about a trial at a milestone; answer with `DecisionMade`.

    The trial may be compared with the first `horizon` trials that the optimizer was shown; `None`: with all trials.
    """

    trial: int
    attempt: int
    step: int
    horizon: int | None = None


class Run(Command, frozen=True):
    """Run a trial on a gang of workers, the first of them as rank 0; the last ones are parameter servers.

    One that is given `ahead` begins when its worker is done with those before.
    """

    trial: int
    attempt: int
    workers: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    servers: int = 0
    ahead: bool = False


class Recall(Command, frozen=True):
    """Have a worker return what it was given ahead and has not begun; answer with `TrialsReturned`."""

    worker: str


class Answer(Command, frozen=True):
    """Tell a waiting train function to go on, stop or pause."""

    worker: str
    trial: int
    attempt: int
    step: int
    decision: Decision


class Confirm(Command, frozen=True):
    """Tell a train function that its reports up to a number are in the journal."""

    worker: str
    trial: int
    attempt: int
    number: int


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
    """Tell a worker that it is not needed any more."""

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
    """Collects commands; a fact is applied to the record at once, and becomes a command to write it down.

    Args:
        record: The experiment, as the facts so far describe it.
    """

    def __init__(self, record: ExperimentRecord) -> None:
        self.record = record
        self._commands: list[Command] = []

    def fact(self, fact: AnyFact) -> None:
        """Record a fact."""
        self.record.apply(fact)
        self._commands.append(Record(fact))

    def command(self, command: Command) -> None:
        """Add a command."""
        self._commands.append(command)

    def take(self) -> list[Command]:
        """Return the commands collected so far, and start over."""
        commands = self._commands
        self._commands = []
        return commands
