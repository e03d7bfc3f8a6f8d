"""The shapes of the API's answers, as its OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

Number = float | Literal["nan", "inf", "-inf"]
"""JSON has no word for NaN and infinities; they come as text, as in a journal."""

ExperimentStateName = Literal["running", "completed", "interrupted", "failed", "lost"]
TrialStateName = Literal["pending", "running", "paused", "completed", "stopped", "failed"]
Count = Annotated[int, Field(ge=0)]


class Problem(BaseModel):
    """Why a request was refused."""

    detail: str | list[dict[str, Any]]


class Best(BaseModel):
    """The best completed trial in short."""

    trial: Count
    value: Number
    params: dict[str, Any]


class ExperimentSummary(BaseModel):
    """One experiment as a list shows it."""

    id: str
    name: str
    description: str
    state: ExperimentStateName
    reason: str
    function: str
    optimizer: str
    direction: Literal["max", "min"]
    metric: str | None
    objectives: dict[str, Literal["max", "min"]]
    constraints: list[str]
    num_trials: int | None
    trials: Count
    trials_done: Count
    counts: dict[TrialStateName, Count]
    best: Best | None
    started_at: str
    ended_at: str | None
    duration_s: float
    user: str
    host: str
    problem: str
    progress: list[float] | None = Field(None, description="Best value so far, at most 40 points, by ended trial.")
    tags: list[str] = []


class ExperimentPage(BaseModel):
    """A part of the list of experiments."""

    experiments: list[ExperimentSummary]
    total: Count
    offset: Count
    limit: Count


class Worker(BaseModel):
    """A worker that joined."""

    name: str
    host: str
    gpus: list[str]
    joined_at: str
    lost_at: str | None
    reason: str


class ExperimentDetail(ExperimentSummary):
    """Everything about an experiment except its trials."""

    version: Count
    header: dict[str, Any] = Field(description="The first fact of the journal: everything that was asked for.")
    workers: list[Worker]
    metrics: list[str] = Field(description="Names by which trials can be compared.")
    params: list[str] = Field(description="Parameters that vary.")
    points: Count
    may_stop: bool
    notes: list[dict[str, Any]] = Field([], description="What people wrote about it, the oldest first.")


class SnapshotAnswer(BaseModel):
    """What was run and in which environment, as it was recorded at the launch."""

    at: str
    directory: str
    arguments: list[str]
    launcher: dict[str, Any] | None
    git: dict[str, Any] | None
    environment: dict[str, Any]
    resources: list[dict[str, Any]]
    problems: list[str]
    function: str = Field(description="The source of the train function, empty if it is not known.")
    files: list[str] = Field(description="Names of the user's own files in `code/sources.zip`.")


class Trial(BaseModel):
    """One trial as a table shows it."""

    trial: Count
    state: TrialStateName
    value: Number | None
    params: dict[str, Any]
    metrics: dict[str, Number]
    last_step: int | None
    last_value: Number | None
    points: Count
    attempts: Count
    worker: str | None
    seed: int
    peak_memory_bytes: int | None
    started_at: str | None
    ended_at: str | None
    duration_s: float | None
    violation: Number
    has_checkpoint: bool
    error: str | None


class TrialPage(BaseModel):
    """A part of an experiment's trials."""

    version: Count
    trials: list[Trial]
    total: Count = Field(description="How many trials fit the filter.")
    all: Count = Field(description="How many trials there are.")
    offset: Count
    limit: Count
    best: int | None


class Attempt(BaseModel):
    """One try at running a trial."""

    attempt: Count
    workers: list[str]
    started_at: str
    ended_at: str | None
    ended: str | None


class Checkpoint(BaseModel):
    """A checkpoint that a trial saved."""

    step: int
    attempt: Count
    path: str
    size_bytes: Count
    saved_at: str


class TrialDetail(Trial):
    """Everything about a trial except its points."""

    experiment_id: str
    version: Count
    info: dict[str, Any]
    tries: list[Attempt]
    checkpoints: list[Checkpoint]
    metric_names: list[str]
    ranks: Count = Field(description="How many workers ran its last attempt together.")


class MetricCurve(BaseModel):
    """Points of one metric of one trial, in the order of steps."""

    name: str
    total: Count = Field(description="How many points there are before down-sampling.")
    steps: list[int]
    values: list[Number]


class MetricsAnswer(BaseModel):
    """The curves of one trial."""

    trial: Count
    version: Count
    method: Literal["lttb", "minmax"]
    metrics: list[MetricCurve]


class LogPart(BaseModel):
    """A part of what a trial printed; `next_offset` is where to read on."""

    trial: Count
    stream: Literal["stdout", "stderr"]
    rank: Count
    text: str
    offset: Count
    next_offset: Count
    size: Count
    is_over: bool = Field(description="Whether nothing will be added any more.")


class FileEntry(BaseModel):
    """A file or a folder of an experiment."""

    name: str
    path: str
    kind: Literal["file", "folder", "other"]
    size_bytes: Count
    changed_at: str


class FolderAnswer(BaseModel):
    """What lies in a folder of an experiment."""

    path: str
    entries: list[FileEntry]
    left_out: Count


class FigureInfo(BaseModel):
    """A figure that can be asked for."""

    name: str
    title: str
    section: str
    options: list[str]


class FigureList(BaseModel):
    """The figures that make sense for an experiment."""

    version: Count
    figures: list[FigureInfo]


class Figure(BaseModel):
    """A figure as Plotly draws it."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]


class ComparedTrial(BaseModel):
    """One of several trials side by side."""

    experiment: ExperimentSummary
    trial: Trial
    metric_names: list[str]


class ComparedTrials(BaseModel):
    """Trials side by side."""

    trials: list[ComparedTrial]


class FileChange(BaseModel):
    """A file that differs, with a unified diff."""

    name: str
    status: Literal["changed", "added", "removed"]
    diff: str


class ComparedExperiments(BaseModel):
    """Everything in which two experiments differ; each pair is what the first has and what the second has."""

    first: str
    second: str
    settings: dict[str, list[Any]]
    space: dict[str, list[Any]]
    code: list[FileChange]
    environment: dict[str, list[Any]]
    packages: dict[str, list[Any]]
    resources: dict[str, list[Any]]
    results: dict[str, list[Any]]
    warnings: list[str]


class Stopping(BaseModel):
    """What came of asking an experiment to stop."""

    id: str
    state: ExperimentStateName
    was_running: bool


class ServerInfo(BaseModel):
    """About this server."""

    version: str
    project: str
    may_stop: bool
