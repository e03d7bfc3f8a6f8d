"""The shapes of the answers about experiments: what is documented is what is sent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cargobike.core.records import ExperimentState, TrialState
from cargobike.store.history.annotations import Mark
from cargobike.ui.answers import Answer, Field

Number = float | Literal["nan", "inf", "-inf"]
"""JSON has no NaN and no infinities; they are sent as text, as in a journal."""

Count = Annotated[int, Field(ge=0)]


class Best(Answer):
    """The best completed trial in short."""

    trial: Count
    value: Number
    params: dict[str, Any]


class ExperimentSummary(Answer):
    """One experiment as a list shows it."""

    id: str
    name: str
    description: str
    state: ExperimentState
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
    counts: dict[TrialState, Count]
    best: Best | None
    started_at: str
    ended_at: str | None
    duration_s: float
    user: str
    host: str
    problem: str
    progress: Annotated[list[float] | None, Field(description="Best value so far, at most 40 points, by ended trial.")]
    tags: list[str]


class SpaceChange(Answer):
    """The experiment went on in another space."""

    at: str
    after_trials: Annotated[Count, Field(description="How many trials there were by then.")]
    before: list[dict[str, Any]]
    space: list[dict[str, Any]]
    defaults: Annotated[dict[str, Any], Field(description="What those had for parameters that are new.")]
    changed: Annotated[list[str], Field(description="Each parameter that changed, in words.")]


class ExperimentPage(Answer):
    """A part of the list of experiments."""

    experiments: list[ExperimentSummary]
    total: Count
    offset: Count
    limit: Count


class Worker(Answer):
    """A worker that joined."""

    name: str
    host: str
    gpus: list[str]
    joined_at: str
    lost_at: str | None
    reason: str


class Note(Answer):
    """What a person wrote about an experiment."""

    at: str
    by: str
    text: str


class ExperimentDetail(ExperimentSummary):
    """Everything about an experiment except its trials."""

    version: Count
    header: Annotated[
        dict[str, Any], Field(description="The first fact of the journal: everything that was asked for.")
    ]
    workers: list[Worker]
    metrics: Annotated[list[str], Field(description="Names by which trials can be compared.")]
    params: Annotated[list[str], Field(description="Parameters that vary.")]
    points: Count
    hidden: Annotated[Count, Field(description="How many trials people have hidden; `best` is none of them.")]
    space_changes: Annotated[list[SpaceChange], Field(description="When it went on in another space, and how.")]
    may_stop: bool
    notes: Annotated[list[Note], Field(description="What people wrote about it, the oldest first.")]


class SnapshotAnswer(Answer):
    """What was run and in which environment, as it was recorded at the launch."""

    at: str
    directory: str
    arguments: list[str]
    launcher: dict[str, Any] | None
    git: dict[str, Any] | None
    environment: dict[str, Any]
    resources: list[dict[str, Any]]
    problems: list[str]
    function: Annotated[str, Field(description="The source of the train function, empty if it is not known.")]
    files: Annotated[list[str], Field(description="Names of the user's own files in `code/sources.zip`.")]


class Trial(Answer):
    """One trial as a table shows it."""

    trial: Count
    state: TrialState
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


class TrialPage(Answer):
    """A part of an experiment's trials."""

    version: Count
    trials: list[Trial]
    total: Annotated[Count, Field(description="How many trials fit the filter.")]
    all: Annotated[Count, Field(description="How many trials there are.")]
    offset: Count
    limit: Count
    best: int | None
    marks: Annotated[dict[int, Mark], Field(description="What people marked; hidden trials are listed by mark=hidden.")]
    hidden: Annotated[Count, Field(description="How many trials people have hidden; `best` is none of them.")] = 0


class Attempt(Answer):
    """One attempt at running a trial."""

    attempt: Count
    workers: list[str]
    started_at: str
    ended_at: str | None
    ended: str | None


class Checkpoint(Answer):
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
    extras: Annotated[dict[str, Any], Field(description="What it returned besides numbers.")]
    tries: list[Attempt]
    checkpoints: list[Checkpoint]
    metric_names: list[str]
    ranks: Annotated[Count, Field(description="How many workers ran its last attempt together.")]


class MetricCurve(Answer):
    """Points of one metric of one trial, in the order of steps."""

    name: str
    total: Annotated[Count, Field(description="How many points there are before down-sampling.")]
    steps: list[int]
    values: list[Number]


class MetricsAnswer(Answer):
    """The curves of one trial."""

    trial: Count
    version: Count
    method: Literal["lttb", "minmax"]
    metrics: list[MetricCurve]


class LogPart(Answer):
    """A part of what a trial printed; `next_offset` is where to read on."""

    trial: Count
    stream: Literal["stdout", "stderr"]
    rank: Count
    text: str
    offset: Count
    next_offset: Count
    size: Count
    is_over: Annotated[bool, Field(description="Whether nothing will be added any more.")]


class UsageSample(Answer):
    """What the processes of one rank used at a moment of an attempt."""

    after_s: float
    cpus: Annotated[float | None, Field(description="Busy processors since the sample before.")]
    memory_bytes: Count
    gpu: Annotated[float | None, Field(description="How busy the busiest GPU is, from 0 to 1.")]
    gpu_memory_bytes: Count | None
    attempt: Count
    rank: Count
    rows_per_s: Annotated[float | None, Field(description="Rows drawn from its data per second.")]
    waited: Annotated[float | None, Field(description="Share of the time that it waited for them.")]


class UsageAnswer(Answer):
    """What a trial used over time."""

    trial: Count
    summary: Annotated[str, Field(description="The same in a few words.")]
    mean_cpus: float | None
    peak_memory_bytes: Count | None
    mean_gpu: float | None
    peak_gpu_memory_bytes: Count | None
    rows_per_s: float | None
    waited: float | None
    samples: list[UsageSample]


class FileEntry(Answer):
    """A file or a folder of an experiment."""

    name: str
    path: str
    kind: Literal["file", "folder", "other"]
    size_bytes: Count
    changed_at: str


class FolderAnswer(Answer):
    """What lies in a folder of an experiment."""

    path: str
    entries: list[FileEntry]
    left_out: Count


class FigureInfo(Answer):
    """A figure that can be asked for."""

    name: str
    title: str
    section: str
    options: list[str]


class FigureList(Answer):
    """The figures that make sense for an experiment."""

    version: Count
    figures: list[FigureInfo]


class Figure(Answer):
    """A figure as Plotly draws it."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]


class ComparedTrial(Answer):
    """One of several trials side by side."""

    experiment: ExperimentSummary
    trial: Trial
    metric_names: list[str]


class ComparedTrials(Answer):
    """Trials side by side."""

    trials: list[ComparedTrial]


class FileChange(Answer):
    """A file that differs, with a unified diff."""

    name: str
    status: Literal["changed", "added", "removed"]
    diff: str


class ComparedExperiments(Answer):
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


class AnnotationsAnswer(Answer):
    """What people added to an experiment: tags, notes, and marks of trials by number."""

    id: str
    tags: list[str]
    notes: list[Note]
    marks: dict[int, Mark]


class Stopping(Answer):
    """The answer to a request to stop an experiment."""

    id: str
    state: ExperimentState
    was_running: bool


class ExperimentEvent(ExperimentSummary):
    """The event that is sent whenever one experiment has changed."""

    version: Count


class ListEvent(Answer):
    """The event that is sent whenever an experiment is new, has changed or is gone."""

    total: Count
    changed: list[str]
