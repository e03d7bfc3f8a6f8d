"""The state of an experiment at one moment, from which displays draw."""

from __future__ import annotations

import msgspec

from cargobike.core.records import Direction, ExperimentState, Trial
from cargobike.experiments.usage import DataPace


class LatestReport(msgspec.Struct, frozen=True):
    """The last report of any train function."""

    trial: int
    step: int
    metrics: dict[str, float]


class Failure(msgspec.Struct, frozen=True):
    """Why one trial failed, in one line (not cleaned of control characters)."""

    trial: int
    line: str


class ProgressSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment at one moment, ready to be drawn.

    Attributes:
        state: `running`, or how the experiment ended.
        phase: What is going on, in words.
        reason: Why the experiment ended as it did; often empty.
        total: How many trials there will be, `None` while that is not known.
        pending: Suggested trials that wait for a worker, retried ones included.
        best: The trial that a result would name as best now.
        front: With several objectives, the best compromises between them.
        retries: Attempts that were lost without a fault of their trial.
        rate_per_s: Recent trials per second, `None` before the first one has ended.
        eta_s: Estimated seconds until the last trial ends, `None` while unknown or when nothing is left.
        data_pace: How fast running trials draw rows of their data, `None` if they draw none.
    """

    experiment_id: str
    name: str
    state: ExperimentState
    phase: str
    reason: str
    direction: Direction
    metric: str | None
    objectives: dict[str, Direction]
    total: int | None
    completed: int
    stopped: int
    failed: int
    running: int
    paused: int
    pending: int
    retries: int
    best: Trial | None
    front: tuple[Trial, ...]
    latest: LatestReport | None
    failures: tuple[Failure, ...]
    rate_per_s: float | None
    eta_s: float | None
    elapsed_s: float
    workers_busy: int
    workers_joined: int
    workers_asked: int
    data_pace: DataPace | None = None

    @property
    def ended(self) -> int:
        """How many trials have reached a final state."""
        return self.completed + self.stopped + self.failed

    @property
    def is_final(self) -> bool:
        """Whether the experiment has ended."""
        return self.state is not ExperimentState.RUNNING


def failure_line(error: str | None) -> str:
    r"""Pick the line of an error text that says most: a traceback's exception, else the first line.

    Example:
        >>> failure_line("Traceback (most recent call last):\n  File ...\nValueError: lr is negative\n")
        'ValueError: lr is negative'
    """
    # A group of exceptions is drawn with bars; lines that consist of bars alone say nothing.
    lines = [line for line in (error or "").splitlines() if line.strip(" \t|+-")]
    headers = [index for index, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    if headers:
        for line in lines[headers[-1] + 1 :]:
            if not line[0].isspace():
                return line.strip()
        return lines[-1].strip(" |+-")
    return lines[0].strip() if lines else "no reason given"


def reason_line(reason: str) -> str:
    r"""Return why an experiment ended on one line: of a traceback, the line that says most.

    Example:
        >>> reason_line("all failed, the first one with:\nTraceback (most recent call last):\n  …\nValueError: no")
        'all failed, the first one with: ValueError: no'
    """
    summary, _, error = reason.partition("\n")
    return f"{summary} {failure_line(error)}" if error else summary
