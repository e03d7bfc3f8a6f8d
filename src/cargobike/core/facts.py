"""Facts: what journals are made of, and the facts of experiments.

A fact is something that happened and will stay true. Each product has facts of its own, gathered in a `Facts`. The
journal of an experiment is the list of its facts in the order in which the driver learned or decided them; every other
view of an experiment (result object, index, dashboard) is these facts folded. Facts carry their own time (`at`, seconds
since the epoch, never running backwards within one driver).
"""

from __future__ import annotations

import math
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from cargobike.core.records import Params

JOURNAL_VERSION = 1

Number = float | Literal["nan", "inf", "-inf"]
"""A float as it stands in a journal: JSON has no word for NaN and infinities, and they must not be lost."""


def pack_number(value: float) -> Number:
    """Turn a float into what a journal can hold."""
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def unpack_number(value: Number) -> float:
    """Undo `pack_number`."""
    return float(value)


def pack_numbers(values: dict[str, float]) -> dict[str, Number]:
    """Apply `pack_number` to every value."""
    return {name: pack_number(value) for name, value in values.items()}


def unpack_returned(value: Number | dict[str, Number] | None) -> float | dict[str, float] | None:
    """Return what a rank returned, from what a journal holds of it."""
    if isinstance(value, dict):
        return unpack_numbers(value)
    return None if value is None else float(value)


def unpack_numbers(values: dict[str, Number]) -> dict[str, float]:
    """Undo `pack_numbers`."""
    return {name: float(value) for name, value in values.items()}


class Fact(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="fact", kw_only=True):
    """Base of all facts."""

    at: float


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

_encoder = msgspec.json.Encoder(enc_hook=str)


class Facts(Generic[T, First]):
    """The facts that the journals of one product may hold.

    Args:
        union: A union of `Fact` classes, each with a tag of its own.
        first: The class of the fact that every journal begins with.
        version: The newest version of these journals that can be read; `first` records which one was written.
    """

    def __init__(self, union: Any, *, first: type[First], version: int) -> None:
        self.first = first
        self.version = version
        decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(union)
        self.decode = decoder.decode
        """Decode what `encode_fact` wrote; raises `msgspec.DecodeError` for anything else."""


def encode_fact(fact: Fact) -> bytes:
    """Encode one fact as a JSON object without a newline; parameters of foreign types become text."""
    return _encoder.encode(fact)


class ExperimentStarted(Fact, frozen=True, tag="experiment-started"):
    """The first line of every journal: everything that was asked for."""

    id: str
    name: str
    version: int = JOURNAL_VERSION
    cargobike: str = ""
    description: str = ""
    function: str = ""
    space: list[dict[str, Any]] | None = None
    params: Params | None = None
    optimizer: str = ""
    num_trials: int | None = None
    direction: Literal["max", "min"] = "max"
    metric: str | None = None
    objectives: dict[str, Literal["max", "min"]] = msgspec.field(default_factory=dict)
    constraints: tuple[str, ...] = ()
    warm_start: tuple[str, ...] = ()
    seed: int = 0
    workers: int = 1
    gang: int = 1
    engine: str = "local"
    isolation: str = "fresh"
    deterministic: bool = False
    user: str = ""
    host: str = ""
    pid: int = 0
    options: dict[str, Any] = msgspec.field(default_factory=dict)


class WorkerJoined(Fact, frozen=True, tag="worker-joined"):
    """A worker's agent connected and registered."""

    worker: str
    host: str = ""
    pid: int = 0
    gpus: tuple[str, ...] = ()


class WorkerLost(Fact, frozen=True, tag="worker-lost"):
    """A worker is gone: released on purpose, or lost for the reason given."""

    worker: str
    reason: str = ""


class TrialSuggested(Fact, frozen=True, tag="trial-suggested"):
    """The optimizer suggested a new trial.

    `told` is how many ended trials the optimizer had been shown when it answered, `after` the trial whose end made
    the driver ask: with both, the conversation with the optimizer can be repeated exactly.
    """

    trial: int
    params: Params
    seed: int = 0
    told: int = 0
    after: int | None = None
    milestones: tuple[int, ...] | Literal["every"] = ()
    copy_checkpoint_of: int | None = None
    info: dict[str, Any] = msgspec.field(default_factory=dict)


class TrialResumed(Fact, frozen=True, tag="trial-resumed"):
    """The optimizer asked for a paused trial to go on."""

    trial: int
    told: int = 0
    after: int | None = None
    milestones: tuple[int, ...] | Literal["every"] = ()
    info: dict[str, Any] = msgspec.field(default_factory=dict)


class OptimizerIdled(Fact, frozen=True, tag="optimizer-idled"):
    """The optimizer was asked and had nothing just now (`IDLE`), or nothing any more (`exhausted`)."""

    told: int = 0
    after: int | None = None
    exhausted: bool = False


class AttemptStarted(Fact, frozen=True, tag="attempt-started"):
    """A gang of workers was told to run a trial."""

    trial: int
    attempt: int
    workers: tuple[str, ...]


class AttemptLost(Fact, frozen=True, tag="attempt-lost"):
    """An attempt ended without a result and through no fault of the trial; another will follow."""

    trial: int
    attempt: int
    reason: str


class Reported(Fact, frozen=True, tag="reported"):
    """A train function reported metrics at a step."""

    trial: int
    step: int
    metrics: dict[str, Number]
    attempt: int = 1


class Judged(Fact, frozen=True, tag="judged"):
    """A decision was taken about a trial at a milestone."""

    trial: int
    step: int
    decision: Literal["continue", "stop", "pause"]
    by: str = ""
    told: int = 0


class CheckpointSaved(Fact, frozen=True, tag="checkpoint-saved"):
    """A train function saved a checkpoint."""

    trial: int
    step: int
    path: str
    attempt: int = 1
    size_bytes: int = 0


class TrialPaused(Fact, frozen=True, tag="trial-paused"):
    """A trial gave its workers back and may be resumed later."""

    trial: int
    step: int = 0


class TrialEnded(Fact, frozen=True, tag="trial-ended"):
    """A trial reached its final state. `value` and `metrics` are those of a completed trial only.

    `values` is what each rank of a gang returned, a number or named numbers.
    """

    trial: int
    state: Literal["completed", "stopped", "failed"]
    value: Number | None = None
    metrics: dict[str, Number] = msgspec.field(default_factory=dict)
    error: str | None = None
    peak_memory_bytes: int | None = None
    values: list[Number | dict[str, Number] | None] = msgspec.field(default_factory=list)


class ExperimentEnded(Fact, frozen=True, tag="experiment-ended"):
    """The driver closed the experiment; a resumed experiment may have several of these."""

    state: Literal["completed", "interrupted", "failed"]
    reason: str = ""


class ExperimentResumed(Fact, frozen=True, tag="experiment-resumed"):
    """A new driver took the experiment up again, for so many trials in all."""

    num_trials: int | None = None


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
    | TrialPaused
    | TrialEnded
    | ExperimentEnded
    | ExperimentResumed
)

EXPERIMENT_FACTS: Facts[AnyFact, ExperimentStarted] = Facts(AnyFact, first=ExperimentStarted, version=JOURNAL_VERSION)
