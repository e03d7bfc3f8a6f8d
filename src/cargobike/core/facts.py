"""Facts: what journals are made of, and the facts of experiments.

A fact is something that happened and will stay true. Each product has facts of its own, gathered in a `Facts`. The
journal of an experiment is the list of its facts in the order in which the driver learned or decided them; every other
view of an experiment (result object, index, dashboard) is these facts folded. Facts carry their own time (`at`, seconds
since the epoch, never running backwards within one driver).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

import msgspec

from cargobike.core.asked import Aim, Asked, Search
from cargobike.core.flat_header import FlatHeader
from cargobike.core.records import Direction, Params
from cargobike.core.running.ending import EndKind
from cargobike.core.running.member import Role
from cargobike.core.values.exact import pack_exactly, unpack_exactly
from cargobike.core.values.packed_numbers import Number as Number
from cargobike.core.values.packed_numbers import pack_number as pack_number
from cargobike.core.values.packed_numbers import pack_numbers as pack_numbers
from cargobike.core.values.packed_numbers import unpack_number as unpack_number
from cargobike.core.values.packed_numbers import unpack_numbers as unpack_numbers
from cargobike.core.values.packed_numbers import unpack_returned as unpack_returned

JOURNAL_VERSION = 3
"""1: what was asked for lies flat in the first line. 2: it is one record. 3: lines are numbered and chained."""


Count = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""A number of a trial or an attempt; a journal that holds a larger one is damaged."""
Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number that every database and every other language can hold, such as a step."""


class Fact(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="fact", kw_only=True):
    """Base of all facts."""

    at: float

    def packed(self) -> Fact:
        """Return the fact as JSON can hold it: hyperparameters may be tuples, which it has not."""
        return self

    def unpacked(self) -> Fact:
        """Undo `packed`."""
        return self


class FirstFact(Protocol):
    """What the first fact of every journal says besides what its product needs: who wrote it, in which version."""

    @property
    def version(self) -> int:
        """The version of the product's journals."""

    @property
    def cargobike(self) -> str:
        """The version of Cargobike that wrote it."""


T = TypeVar("T", bound=Fact)
First = TypeVar("First", bound=FirstFact)

_PACKED = b'"$'  # what JSON has no type for begins so

_encoder = msgspec.json.Encoder(enc_hook=str)


class Facts(Generic[T, First]):
    """The facts that the journals of one product may hold.

    Args:
        union: A union of `Fact` classes, each with a tag of its own.
        first: The class of the fact that every journal begins with.
        version: The newest version of these journals that can be read; `first` records which one was written.
        lift: Reads a fact that an earlier version wrote in another form; returns `None` for any other line.
    """

    def __init__(
        self, union: Any, *, first: type[First], version: int, lift: Callable[[bytes], T | None] | None = None
    ) -> None:
        self.first = first
        self.version = version
        self._lift = lift
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(union)
        self._list_decoder: msgspec.json.Decoder[list[T]] = msgspec.json.Decoder(list[union])

    def decode(self, line: bytes) -> T:
        """Decode what `encode_fact` wrote; raises `msgspec.DecodeError` for anything else."""
        try:
            fact = self._decoder.decode(line)
        except msgspec.ValidationError:
            lifted = None if self._lift is None else self._lift(line)
            if lifted is None:
                raise
            return lifted
        return fact.unpacked() if _PACKED in line else fact  # type: ignore[return-value] # of the same class

    def decode_all(self, lines: Sequence[bytes]) -> list[T]:
        """Return what `decode` makes of each of many lines, in two thirds of the time.

        Raises:
            MsgspecError: If one of them cannot be decoded.
        """
        text = b",".join(lines)
        try:
            facts = self._list_decoder.decode(b"[%b]" % text)
        except msgspec.ValidationError:
            return list(map(self.decode, lines))
        if len(facts) != len(lines):
            raise msgspec.DecodeError("a line holds more than one object")
        if _PACKED in text:
            return [
                fact.unpacked() if _PACKED in line else fact  # type: ignore[misc] # of the same class
                for fact, line in zip(facts, lines, strict=True)
            ]
        return facts


def encode_fact(fact: Fact) -> bytes:
    """Encode one fact as a JSON object without a newline; parameters of foreign types become text."""
    return _encoder.encode(fact.packed())


class ExperimentStarted(Fact, frozen=True, tag="experiment-started"):
    """The first line of every journal: everything that was asked for, and by whom, where and when.

    The properties are what the record says, for readers of one thing or another.
    """

    id: str
    asked: Asked
    version: int = msgspec.field(default_factory=lambda: JOURNAL_VERSION)
    cargobike: str = ""
    user: str = ""
    host: str = ""
    pid: int = 0
    step: str = ""
    """What names the step of a pipeline that launched it; empty outside of pipelines."""

    def packed(self) -> ExperimentStarted:
        """Return it with exact parameters."""
        return msgspec.structs.replace(self, asked=self.asked.packed())

    def unpacked(self) -> ExperimentStarted:
        """Undo `packed`."""
        return msgspec.structs.replace(self, asked=self.asked.unpacked())

    def asking(self, *, search: Search | None = None, aim: Aim | None = None) -> ExperimentStarted:
        """Return the same start, as if something else had been asked for."""
        asked = msgspec.structs.replace(self.asked, search=search or self.asked.search, aim=aim or self.asked.aim)
        return msgspec.structs.replace(self, asked=asked)

    @property
    def name(self) -> str:
        """The experiment's name for people."""
        return self.asked.name

    @property
    def description(self) -> str:
        """A sentence for people."""
        return self.asked.description

    @property
    def function(self) -> str:
        """What the train function is called."""
        return self.asked.function

    @property
    def space(self) -> list[dict[str, Any]] | None:
        """The described search space."""
        return self.asked.search.space

    @property
    def params(self) -> Params | None:
        """The parameters of a single run."""
        return self.asked.search.params

    @property
    def optimizer(self) -> str:
        """The optimizer's name."""
        return "" if self.asked.search.optimizer is None else self.asked.search.optimizer.name

    @property
    def num_trials(self) -> int | None:
        """How many trials were to be run, `None` for as many as the optimizer has."""
        return self.asked.search.num_trials

    @property
    def direction(self) -> Direction:
        """Whether large values are good, or small ones."""
        return self.asked.aim.direction or "max"

    @property
    def metric(self) -> str | None:
        """Which entry of a returned dict counts."""
        return self.asked.aim.metric

    @property
    def objectives(self) -> dict[str, Direction]:
        """Several objectives with their directions."""
        return self.asked.aim.objectives

    @property
    def constraints(self) -> tuple[str, ...]:
        """Limits on returned metrics."""
        return self.asked.aim.constraints

    @property
    def warm_start(self) -> tuple[str, ...]:
        """Ids of the experiments that it learned from."""
        return self.asked.search.warm_start

    @property
    def seed(self) -> int:
        """The experiment's seed."""
        return self.asked.search.seed or 0

    @property
    def workers(self) -> int:
        """How many workers there were to be."""
        return self.asked.placement.workers or 1

    @property
    def gang(self) -> int:
        """How many of them run one trial together."""
        return self.asked.placement.gang.size or 1

    @property
    def engine(self) -> str:
        """Where workers live."""
        return self.asked.placement.engine or "local"

    @property
    def isolation(self) -> str:
        """Whether each trial has a process of its own."""
        return self.asked.placement.isolation

    @property
    def repeats(self) -> int:
        """How many runs each setting gets."""
        return self.asked.search.repeats

    @property
    def deterministic(self) -> bool:
        """Whether the search does not depend on timing."""
        return self.asked.search.deterministic


class WorkerJoined(Fact, frozen=True, tag="worker-joined"):
    """A worker's agent connected and registered."""

    worker: str
    host: str = ""
    pid: int = 0
    gpus: tuple[str, ...] = ()
    role: Role = Role.WORKER


class WorkerLost(Fact, frozen=True, tag="worker-lost"):
    """A worker is gone: released on purpose, or lost for the reason given.

    `cause` is what programs decide by; journals that were written before there were causes have none.
    """

    worker: str
    reason: str = ""
    cause: EndKind | None = None


class TrialSuggested(Fact, frozen=True, tag="trial-suggested"):
    """The optimizer suggested a new trial.

    `told` is how many ended trials the optimizer had been shown when it answered, `after` the trial whose end made
    the driver ask: with both, the conversation with the optimizer can be repeated exactly. `repeat_of` is the first run
    of its setting, if there are repeats and it is not the first itself.
    """

    trial: Count
    params: Params
    seed: int = 0
    told: Whole = 0
    after: Count | None = None
    milestones: tuple[Whole, ...] | Literal["every"] = ()
    copy_checkpoint_of: Count | None = None
    info: dict[str, Any] = msgspec.field(default_factory=dict)
    repeat_of: int | None = None

    def packed(self) -> TrialSuggested:
        """Return it with exact parameters."""
        params, info = pack_exactly(self.params), pack_exactly(self.info)
        return msgspec.structs.replace(self, params=params, info=info)

    def unpacked(self) -> TrialSuggested:
        """Undo `packed`."""
        params, info = unpack_exactly(self.params), unpack_exactly(self.info)
        return msgspec.structs.replace(self, params=params, info=info)


class TrialResumed(Fact, frozen=True, tag="trial-resumed"):
    """The optimizer asked for a paused trial to go on."""

    trial: Count
    told: Whole = 0
    after: Count | None = None
    milestones: tuple[Whole, ...] | Literal["every"] = ()
    info: dict[str, Any] = msgspec.field(default_factory=dict)


class OptimizerIdled(Fact, frozen=True, tag="optimizer-idled"):
    """The optimizer was asked and had nothing just now (`IDLE`), or nothing any more (`exhausted`)."""

    told: Whole = 0
    after: Count | None = None
    exhausted: bool = False


class AttemptStarted(Fact, frozen=True, tag="attempt-started"):
    """A gang of workers was told to run a trial."""

    trial: Count
    attempt: Count
    workers: tuple[str, ...]


class AttemptLost(Fact, frozen=True, tag="attempt-lost"):
    """An attempt ended without a result and through no fault of the trial; another will follow.

    If it was `interrupted`, because the experiment was ended while it ran, that is when the experiment is resumed.
    """

    trial: Count
    attempt: Count
    reason: str
    interrupted: bool = False


ReportNumber = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Which report of its trial one is, from 1; 0 if it does not say."""


class Reported(Fact, frozen=True, tag="reported", gc=False):
    """A train function reported metrics at a step.

    `number` counts the reports of a trial, from 1. An attempt that goes on from a checkpoint counts on from the reports
    that were made before it was saved: a number that comes again takes the place of that report and of all after it.
    It is 0 in journals that were written before there were numbers: then each report is one more.
    """

    # It holds nothing that could lead back to it, and there are millions: the garbage collector need not look at them.
    trial: Count
    step: Whole
    metrics: dict[str, Number]
    attempt: Count = 1
    number: ReportNumber = 0


class Judged(Fact, frozen=True, tag="judged"):
    """A decision was taken about a trial at a milestone."""

    trial: Count
    step: Whole
    decision: Literal["continue", "stop", "pause"]
    by: str = ""
    told: Whole = 0


class CheckpointSaved(Fact, frozen=True, tag="checkpoint-saved"):
    """A train function saved a checkpoint."""

    trial: Count
    step: Whole
    path: str
    attempt: Count = 1
    size_bytes: Whole = 0


class ModelKept(Fact, frozen=True, tag="model-kept"):
    """A train function kept a model with its trial; it is registered under its name when the trial has completed."""

    trial: Count
    name: str
    attempt: Count = 1


class TrialPaused(Fact, frozen=True, tag="trial-paused"):
    """A trial gave its workers back and may be resumed later."""

    trial: Count
    step: Whole = 0


class TrialEnded(Fact, frozen=True, tag="trial-ended"):
    """A trial reached its final state. `value` and `metrics` are those of a completed trial only.

    `values` is what each rank of a gang returned, a number or named numbers; `worker` the one whose error made it fail;
    `extras` what was returned besides numbers, by rank 0.
    """

    trial: Count
    state: Literal["completed", "stopped", "failed"]
    value: Number | None = None
    metrics: dict[str, Number] = msgspec.field(default_factory=dict)
    error: str | None = None
    peak_memory_bytes: Whole | None = None
    values: list[Number | dict[str, Number] | None] = msgspec.field(default_factory=list)
    worker: str = ""
    extras: dict[str, Any] = msgspec.field(default_factory=dict)


class ExperimentEnded(Fact, frozen=True, tag="experiment-ended"):
    """The driver closed the experiment; a resumed experiment may have several of these."""

    state: Literal["completed", "interrupted", "failed"]
    reason: str = ""


class ExperimentResumed(Fact, frozen=True, tag="experiment-resumed"):
    """A new driver took the experiment up again, for so many trials in all.

    `space` is the described space from here on, if it has changed; `defaults` what the trials so far had for parameters
    that are new in it.
    """

    num_trials: int | None = None
    space: list[dict[str, Any]] | None = None
    defaults: Params = msgspec.field(default_factory=dict)


AnyFact = (
    ExperimentStarted
    | WorkerJoined
    | WorkerLost
    | TrialSuggested
    | TrialResumed
    | OptimizerIdled
    | AttemptStarted
    | AttemptLost
    | Reported
    | Judged
    | CheckpointSaved
    | ModelKept
    | TrialPaused
    | TrialEnded
    | ExperimentEnded
    | ExperimentResumed
)


def _lift(line: bytes) -> ExperimentStarted | None:
    """Read a first fact of version 1."""
    if b'"experiment-started"' not in line or b'"asked":' in line:
        return None
    flat = msgspec.json.decode(line, type=FlatHeader)
    return ExperimentStarted(
        at=flat.at,
        id=flat.id,
        asked=flat.asked(),
        version=flat.version,
        cargobike=flat.cargobike,
        user=flat.user,
        host=flat.host,
        pid=flat.pid,
    )


EXPERIMENT_FACTS: Facts[AnyFact, ExperimentStarted] = Facts(
    AnyFact, first=ExperimentStarted, version=JOURNAL_VERSION, lift=_lift
)


def decode_header(data: bytes | str) -> ExperimentStarted:
    """Decode the first fact of an experiment's journal, of any version."""
    fact = EXPERIMENT_FACTS.decode(data.encode() if isinstance(data, str) else data)
    if not isinstance(fact, ExperimentStarted):
        raise msgspec.ValidationError("a journal begins with what was asked for")
    return fact
