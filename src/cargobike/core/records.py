"""The records that every room shares: trials, their states and curves, suggestions, resources."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

Params = dict[str, Any]
Direction = Literal["max", "min"]
Milestones = tuple[int, ...] | Literal["every"]

IDLE: Final = "IDLE"
"""What an optimizer returns when it has nothing to try just now, but may have later."""


class TrialState(StrEnum):
    """Where a trial is in its life: `pending → running ⇄ paused → completed / stopped / failed`."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Whether a trial in this state will never run again."""
        return self in _FINAL


_FINAL = frozenset({TrialState.COMPLETED, TrialState.STOPPED, TrialState.FAILED})


class ExperimentState(StrEnum):
    """Where an experiment is: `running`, or how it ended."""

    RUNNING = "running"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    LOST = "lost"
    """Its driver died without a word; a resume can pick it up."""


_NO_STEPS = array("q")
_NO_VALUES = array("d")


class Curve:
    """The points `(step, value)` of one metric of one trial, sixteen bytes each."""

    __slots__ = ("_numbers", "rewinds", "steps", "values")

    def __init__(self) -> None:
        # Most trials of a large search report nothing: they share two empty arrays.
        self.steps = _NO_STEPS
        self.values = _NO_VALUES
        self.rewinds = 0
        """How often it has been rewound; with its length this tells whether it has changed."""
        # Which report each point comes from, kept only if some report had no point of this metric.
        self._numbers: array[int] | None = None

    def add(self, step: int, value: float, number: int | None = None) -> None:
        """Append one point; `number` says which report of the trial it comes from, counted from 1."""
        if self.steps is _NO_STEPS:
            self.steps = array("q")
            self.values = array("d")
        if number is not None and (self._numbers is not None or number != len(self.steps) + 1):
            if self._numbers is None:
                self._numbers = array("q", range(1, len(self.steps) + 1))
            self._numbers.append(number)
        self.steps.append(step)
        self.values.append(value)

    def rewind(self, number: int) -> None:
        """Drop the points of the report with this number, and of all after it: they are being made anew."""
        kept = number - 1 if self._numbers is None else bisect_left(self._numbers, number)
        if kept < len(self.steps):
            del self.steps[kept:], self.values[kept:]
            self.rewinds += 1
        if self._numbers is not None:
            del self._numbers[kept:]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return iter(zip(self.steps, self.values, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Curve) and self.steps == other.steps and _same(self.values, other.values)

    def __repr__(self) -> str:
        return f"Curve({list(self)!r})"


def _same(left: array[float], right: array[float]) -> bool:
    return left.tobytes() == right.tobytes() or list(left) == list(right)


class Trial(msgspec.Struct, gc=False):  # holds nothing that holds it: collections of garbage need not walk over it
    """One set of hyperparameters and what became of it.

    `Trial(params)` is also what an optimizer may return from `get_suggestion`; everything else is filled in by
    the driver. `value` is the final score of a completed trial: a stopped or failed trial has none, its last
    reported value is in `curve`.

    Attributes:
        params: The hyperparameters.
        number: Position in the experiment, from 0, in the order of suggestion.
        state: See `TrialState`.
        value: The objective that the train function returned; `None` unless completed.
        metrics: All named numbers that the train function returned.
        curve: Reported points of the objective, in the order of arrival.
        reports: How many reports it has made, of any metrics. An attempt that goes on from a checkpoint counts on from
            there, and one that starts over from 0: what it reports takes the place of what was reported before.
        attempts: How often the trial was started.
        error: Why it failed, ready to be shown.
        started_at: Seconds since the epoch when its first attempt began.
        ended_at: Seconds since the epoch when it reached a final state.
        violation: By how much a completed trial breaks the experiment's constraints, 0 if it keeps them all.
        info: What the optimizer wants to remember about it (rung, bracket, parents …); stored, never read by us.
        has_checkpoint: Whether it has saved a checkpoint, so that it need not start over when it is resumed.
        values: What each rank of a gang returned, a number or named numbers; empty for a trial of one worker. With
            repeats, what each of them returned, `None` for one that did not complete.
        extras: What the train function (of a gang: rank 0) returned besides numbers, as plain data; what is no dict
            is called `returned`.
        is_interrupted: Whether it was stopped only because the experiment was interrupted, and goes on from its last
            checkpoint when that is resumed.
    """

    params: Params
    number: int = -1
    state: TrialState = TrialState.PENDING
    value: float | None = None
    metrics: dict[str, float] = msgspec.field(default_factory=dict)
    curve: Curve = msgspec.field(default_factory=Curve)
    attempts: int = 0
    error: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    seed: int = 0
    worker: str | None = None
    peak_memory_bytes: int | None = None
    violation: float = 0.0
    info: dict[str, Any] = msgspec.field(default_factory=dict)
    has_checkpoint: bool = False
    values: list[float | dict[str, float] | None] = msgspec.field(default_factory=list)
    extras: dict[str, Any] = msgspec.field(default_factory=dict)
    reports: int = 0
    is_interrupted: bool = False

    @property
    def id(self) -> str:
        """The trial's name in folders, on the command line and in logs."""
        return f"{self.number:04d}"

    @property
    def duration_s(self) -> float | None:
        """Seconds from the first start to the end, `None` while it runs."""
        if self.started_at is None or self.ended_at is None:
            return None
        return self.ended_at - self.started_at

    @property
    def repeats(self) -> tuple[int, ...]:
        """The numbers of the runs that it is the mean of, its own first; empty without repeats."""
        return tuple(self.info.get("repeated", {}).get("trials", ()))

    @property
    def spread(self) -> float | None:
        """The standard deviation of what its repeats returned; `None` without repeats, or of fewer than two."""
        spread: float | None = self.info.get("repeated", {}).get("spread")
        return spread

    @property
    def failures(self) -> int:
        """How many of its repeats failed; without repeats 1 if it failed itself."""
        return int(self.info.get("repeated", {}).get("failures", self.state is TrialState.FAILED))

    @property
    def metric_history(self) -> list[float]:
        """The reported objective values, in order: the name Maggy's optimizers know."""
        return list(self.curve.values)

    @property
    def final_metric(self) -> float | None:
        """Same as `value`: the name Maggy's optimizers know."""
        return self.value


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """What an optimizer wants to happen next; a plain dict of parameters or a `Trial` is turned into one.

    Attributes:
        params: Hyperparameters of a new trial.
        resume: Number of a paused trial to continue instead of starting a new one.
        milestones: Steps at which the optimizer will decide about the trial (`report` waits there), or `"every"`.
        copy_checkpoint_of: Number of a trial whose last checkpoint the new trial starts from.
        seed: The new trial's own seed, for trials that are compared and should differ in nothing else; by default one
            that follows from the experiment's seed and the trial's number.
        repeat_of: Number of the trial that this one repeats with another seed; both count as one, see `repeats=`.
        info: Stored with the trial as `Trial.info`.
    """

    params: Params = msgspec.field(default_factory=dict)
    resume: int | None = None
    milestones: Milestones = ()
    copy_checkpoint_of: int | None = None
    seed: int | None = None
    info: dict[str, Any] = msgspec.field(default_factory=dict)
    repeat_of: int | None = None


class Decision(StrEnum):
    """What happens to a trial at a milestone."""

    CONTINUE = "continue"
    STOP = "stop"
    PAUSE = "pause"


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker gets.

    Attributes:
        cpus: Threads its numeric libraries may use; `None` shares the machine's cores among the workers.
        gpus: GPUs, a fraction of one allowed (`0.5`: two workers share a device); `None` gives one to each worker
            where there are GPUs and none where there are not.
    """

    cpus: int | None = None
    gpus: float | None = None


def better(left: float, right: float, direction: Direction) -> bool:
    """Tell whether score `left` beats `right`; NaN and infinities on the wrong side never win."""
    if not math.isfinite(left):
        return False
    if not math.isfinite(right):
        return True
    return left > right if direction == "max" else left < right


def best_of(trials: Mapping[int, Trial] | list[Trial], direction: Direction) -> Trial | None:
    """Return the completed trial with the best finite value, the earliest one among equals."""
    best: Trial | None = None
    for trial in trials.values() if isinstance(trials, Mapping) else trials:
        if trial.state is not TrialState.COMPLETED or trial.value is None or not math.isfinite(trial.value):
            continue
        if trial.violation > 0:
            continue
        if best is None or best.value is None or better(trial.value, best.value, direction):
            best = trial
    return best
