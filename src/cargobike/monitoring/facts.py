"""The facts of a monitor: what it watches, the windows that it judged, the alarms that it raised."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from cargobike.core.facts import Fact, Facts

VERSION: Final = 1

SubjectKind = Literal["deployment", "group", "table"]
AlarmKind = Literal["drift", "error"]


class WindowChoice(msgspec.Struct, frozen=True, kw_only=True):
    """How rows are gathered.

    Attributes:
        rows: How many rows a window has; 0 if they are gathered by time.
        seconds: How long a window is, if by time.
        lateness_s: How long a window by time waits for rows that come late.
    """

    rows: int = 1000
    seconds: float = 0.0
    lateness_s: float = 60.0


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of alarms besides the journal; secrets are named as environment variables, never written here.

    Attributes:
        webhook: An address that gets each alarm as JSON; `${NAME}` in it stands for an environment variable.
        email: An address that gets a mail.
        smtp: The mail server, `host:port`; user and password come from `CARGOBIKE_SMTP_USER` and
            `CARGOBIKE_SMTP_PASSWORD`.
        command: A program and its arguments; it gets the alarm as JSON on its standard input.
    """

    webhook: str = ""
    email: str = ""
    smtp: str = ""
    command: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.webhook or self.email or self.command)


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """What a monitor was asked to watch, and how.

    Attributes:
        subject: What is watched: the name of a deployment, a feature group, an address of a table.
        kind: Which of these.
        window: How rows are gathered.
        alarm: How many unusual windows of how many raise an alarm: `3 of 5`.
        false_alarms: Which part of windows without a shift may be unusual.
        least: The fewest rows of a window that is judged.
        reference: What the reference was, for people: `training dataset digits_training:3`.
        reference_thing: The same as lineage calls it: kind, name, version; empty if it is none of the project's.
        fingerprint: The same for references of equal content.
        columns: The features that are judged.
        left_out: Features that are not, each with the reason.
        model: The model that is served.
        metrics: How errors are measured where labels come: `error`, `mae`, …
        label: The column of labels with what is true.
        prediction: The column of the log with what was predicted.
        engine: Where it runs: `local`, `spark`.
        hooks: What is told of alarms.
    """

    subject: str
    kind: SubjectKind = "deployment"
    window: WindowChoice = WindowChoice()
    alarm: str = "3 of 5"
    false_alarms: float = 0.05
    least: int = 20
    reference: str = ""
    reference_thing: tuple[str, str, str] = ("", "", "")
    fingerprint: str = ""
    columns: tuple[str, ...] = ()
    left_out: dict[str, str] = {}
    model: str = ""
    metrics: tuple[str, ...] = ("error",)
    label: str = "label"
    prediction: str = ""
    engine: str = "local"
    hooks: Hooks = Hooks()
    options: dict[str, Any] = {}


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """A feature that moved: by which statistic, how far, how likely by chance, and what it was and is, in words."""

    feature: str
    statistic: str
    size: float
    probability: float
    reference: str = ""
    now: str = ""


class MonitorStarted(Fact, frozen=True, tag="monitor-started"):
    """The first line of the journal of a monitor."""

    id: str
    watched: Watched
    version: int = VERSION
    cargobike: str = ""
    user: str = ""
    host: str = ""


class MonitorChanged(Fact, frozen=True, tag="monitor-changed"):
    """Something else was asked for under the same name."""

    watched: Watched
    user: str = ""


class WatcherStarted(Fact, frozen=True, tag="watcher-started"):
    """A process began to follow the log."""

    pid: int
    host: str


class WatcherEnded(Fact, frozen=True, tag="watcher-ended"):
    """It ended, and why; one that is killed writes nothing."""

    reason: str = ""


class Trouble(Fact, frozen=True, tag="trouble"):
    """The log could not be read, or can be read again if `text` is empty."""

    text: str


class WindowJudged(Fact, frozen=True, tag="window-judged"):
    """A window was closed, and judged unless `reason` says why not.

    Attributes:
        number: Counted from 1, over all versions.
        model_version: The version that answered its requests.
        first_at: When its first request came.
        last_at: When its last one came.
        start: When it begins, if windows are by time.
        rows: How many rows it has.
        late: Rows that came too late for any window, since the window before.
        dropped: Requests that the log could not keep, since the window before.
        unusual: Whether it differs from the reference by more than chance allows.
        probability: In which part of windows without a shift anything is as unusual.
        moved: The features that moved.
        drift: For each feature the probability of its most unusual figure; for pictures over time.
        psi: For each feature its population stability index.
        reason: Why it was not judged.
    """

    number: int
    model_version: int
    first_at: float
    last_at: float
    rows: int
    start: float = 0.0
    late: int = 0
    dropped: int = 0
    unusual: bool = False
    probability: float = 1.0
    moved: tuple[Moved, ...] = ()
    drift: dict[str, float] = msgspec.field(default_factory=dict)
    psi: dict[str, float] = msgspec.field(default_factory=dict)
    reason: str = ""


class ErrorMeasured(Fact, frozen=True, tag="error-measured"):
    """Predictions got their labels.

    Attributes:
        number: Counted from 1.
        labels: The number of the labels that were given.
        metrics: The mean of each metric.
        rows: How many predictions.
        first_at: When the first of their requests came.
        last_at: When the last one came.
        model_version: The version that predicted them.
        unmatched: Labels for which no prediction was found.
        problem: Why nothing could be measured; empty if it could.
    """

    number: int
    labels: int
    metrics: dict[str, float]
    rows: int
    first_at: float = 0.0
    last_at: float = 0.0
    model_version: int = 0
    unmatched: int = 0
    problem: str = ""


class AlarmRaised(Fact, frozen=True, tag="alarm-raised"):
    """An alarm: it stays open until it has recovered; what goes on meanwhile raises no second one.

    Attributes:
        id: Its name in this monitor: `alarm-3`.
        kind: Whether data moved, or errors did.
        window: The number of the window that completed it.
        windows: The unusual windows that it counts.
        since: When the first request of the first of them came.
        first_at: When the first request of its window came.
        last_at: When the last one came.
        model_version: The version that answered.
        rows: How many rows the window has.
        moved: What moved, by how much, from what to what.
        position: Where in the log the window ended.
        text: In a sentence.
    """

    id: str
    kind: AlarmKind
    window: int
    windows: tuple[int, ...]
    since: float
    first_at: float
    last_at: float
    model_version: int
    rows: int
    moved: tuple[Moved, ...] = ()
    position: str = ""
    text: str = ""


class AlarmEnded(Fact, frozen=True, tag="alarm-ended"):
    """An alarm is over: what is watched is as usual again."""

    id: str
    window: int
    reason: str = "recovered"


class HookTold(Fact, frozen=True, tag="hook-told"):
    """A hook was told of an alarm; `error` says why that failed."""

    alarm: str
    hook: str
    error: str = ""


AnyMonitorFact = (
    MonitorStarted
    | MonitorChanged
    | WatcherStarted
    | WatcherEnded
    | Trouble
    | WindowJudged
    | ErrorMeasured
    | AlarmRaised
    | AlarmEnded
    | HookTold
)

MONITOR_FACTS: Final[Facts[AnyMonitorFact, MonitorStarted]] = Facts(
    AnyMonitorFact, first=MonitorStarted, version=VERSION
)
