"""The shapes of what an assistant gives to tools; their first lines are what it is told about them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

TAIL_LINES: Final = 60

Lists = Literal[
    "experiments",
    "tables",
    "feature_groups",
    "feature_views",
    "training_datasets",
    "models",
    "deployments",
    "monitors",
    "pipeline_runs",
    "schedules",
]
Reads = Literal[
    "experiment",
    "table",
    "feature",
    "model",
    "deployment",
    "monitor",
    "pipeline_run",
    "schedule",
    "publication",
]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]


class ListObjects(msgspec.Struct, forbid_unknown_fields=True):
    """List what the project has of one kind, the newest first or by name: `total`, and `items` from `offset` on."""

    kind: Annotated[Lists, msgspec.Meta(description="What to list.")]
    words: Annotated[str, msgspec.Meta(max_length=2000, description="Only those in which all words occur.")] = ""
    offset: Annotated[int, msgspec.Meta(ge=0, description="How many to skip.")] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=500, description="How many to return at most.")] = 25


class Search(msgspec.Struct, forbid_unknown_fields=True):
    """Find objects of all kinds in whose names, tags, descriptions or columns all words occur."""

    words: Annotated[Text, msgspec.Meta(description="Words, separated by blanks.")]


class ReadObject(msgspec.Struct, forbid_unknown_fields=True):
    """Read everything about one object. A feature is a group, view or training dataset."""

    kind: Annotated[Reads, msgspec.Meta(description="What it is.")]
    name: Annotated[Text, msgspec.Meta(description="Its name or id; `last` for the newest experiment or run.")]


class ReadTrial(msgspec.Struct, forbid_unknown_fields=True):
    """Read one trial of an experiment: parameters, metrics, error, and the end of what it printed."""

    experiment: Annotated[Text, msgspec.Meta(description="Id or name of the experiment, or `last`.")]
    trial: Annotated[int, msgspec.Meta(ge=0, description="Its number, from 0.")]


class ReadLogs(msgspec.Struct, forbid_unknown_fields=True):
    """Read the end of what a trial, a deployment or a step of a pipeline printed."""

    kind: Literal["trial", "deployment", "pipeline_step"]
    name: Annotated[Text, msgspec.Meta(description="The experiment, deployment or run.")]
    number: Annotated[int | None, msgspec.Meta(description="The trial or step; not for deployments.")] = None
    lines: Annotated[int, msgspec.Meta(ge=1, le=2000)] = TAIL_LINES


class TableHead(msgspec.Struct, forbid_unknown_fields=True):
    """Read the first rows of a table."""

    table: Text
    rows: Annotated[int, msgspec.Meta(ge=1, le=200)] = 10


class ModelCard(msgspec.Struct, forbid_unknown_fields=True):
    """Read the card of a version of a model, in Markdown."""

    model: Annotated[Text, msgspec.Meta(description="`digits:3`, `digits@champion` or `digits`.")]


class ExplainLineage(msgspec.Struct, forbid_unknown_fields=True):
    """Explain what something came from and what came from it: data, features, experiments, models, deployments."""

    name: Annotated[Text, msgspec.Meta(description="Its name, with a version if it has some: `digits:3`.")]
    kind: Annotated[str, msgspec.Meta(max_length=40, description="What it is, if several have the name.")] = ""


class ExplainFailure(msgspec.Struct, forbid_unknown_fields=True):
    """Explain why an experiment or one of its trials failed: the error with its traceback, and the last output."""

    experiment: Annotated[Text, msgspec.Meta(description="Id or name of the experiment, or `last`.")]
    trial: Annotated[int | None, msgspec.Meta(description="Its number; by default the trial that failed last.")] = None


class CompareExperiments(msgspec.Struct, forbid_unknown_fields=True):
    """Explain what differs between two experiments: settings, space, code, environment, results."""

    first: Text
    second: Text


class LaunchExperiment(msgspec.Struct, forbid_unknown_fields=True):
    """Search a function in a Python file, or run it once with parameters. Goes on; read it with follow_command."""

    function: Annotated[Text, msgspec.Meta(description="`train.py:train`, relative to the working directory.")]
    space: Annotated[str, msgspec.Meta(description="A file with a search space (YAML, JSON); empty to run once.")] = ""
    params: Annotated[dict[str, Any], msgspec.Meta(description="Parameters of a single run.")] = {}
    num_trials: Annotated[int, msgspec.Meta(ge=1)] | None = None
    optimizer: str = ""
    metric: str = ""
    workers: Annotated[int, msgspec.Meta(ge=0)] | None = None
    name: str = ""


class LaunchPipeline(msgspec.Struct, forbid_unknown_fields=True):
    """Run a pipeline: a function in a Python file. Goes on; read it with follow_command."""

    function: Annotated[Text, msgspec.Meta(description="`retrain.py:retrain`, relative to the working directory.")]
    params: Annotated[dict[str, Any], msgspec.Meta(description="What it is called with.")] = {}


class FollowCommand(msgspec.Struct, forbid_unknown_fields=True):
    """Read what a launched command has printed by now, and whether it has ended."""

    command: Annotated[Text, msgspec.Meta(description="`command-1`, as it was named when it was launched.")]
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=60, description="How long to wait for its end.")] = 0.0


class CancelCommand(msgspec.Struct, forbid_unknown_fields=True):
    """Interrupt a launched command, as Ctrl-C would; an experiment can be resumed later."""

    command: Text


class RunCommand(msgspec.Struct, forbid_unknown_fields=True):
    """Run any command of `cargobike` that the session's role allows, to its end (two minutes at most).

    For what has no tool of its own, such as ["models", "promote", "digits:3", "champion"], ["deployments", "roll",
    "digits", "digits:3"], ["monitor", "ack", "digits"], ["models", "--help"]. Add --json where it prints data, and
    --yes where it would ask.
    """

    arguments: Annotated[list[str], msgspec.Meta(min_length=1, max_length=100)]
