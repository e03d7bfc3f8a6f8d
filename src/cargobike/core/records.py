"""The records that every room shares: trials, their states and curves, suggestions, resources."""

from __future__ import annotations

import math
from array import array
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

    __slots__ = ("steps", "values")

    def __init__(self) -> None:
        # Most trials of a large search report nothing: they share two empty arrays.
        self.steps = _NO_STEPS
        self.values = _NO_VALUES

    def add(self, step: int, value: float) -> None:
        """Append one point."""
        if self.steps is _NO_STEPS:
            self.steps = array("q")
            self.values = array("d")
        self.steps.append(step)
        self.values.append(value)

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


class Trial(msgspec.Struct):
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
        attempts: How often the trial was started.
        error: Why it failed, ready to be shown.
        started_at: Seconds since the epoch when its first attempt began.
        ended_at: Seconds since the epoch when it reached a final state.
        violation: By how much a completed trial breaks the experiment's constraints, 0 if it keeps them all.
        info: What the optimizer wants to remember about it (rung, bracket, parents …); stored, never read by us.
        has_checkpoint: Whether it has saved a checkpoint, so that it need not start over when it is resumed.
        values: What each rank of a gang returned, a number or named numbers; empty for a trial of one worker.
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
        info: Stored with the trial as `Trial.info`.
    """

    params: Params = msgspec.field(default_factory=dict)
    resume: int | None = None
    milestones: Milestones = ()
    copy_checkpoint_of: int | None = None
    seed: int | None = None
    info: dict[str, Any] = msgspec.field(default_factory=dict)


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
