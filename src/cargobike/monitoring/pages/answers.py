"""The shapes that the API of monitors answers with."""

from __future__ import annotations

from typing import Annotated, Any

from cargobike.ui.answers import Answer, Field

Count = Annotated[int, Field(ge=0)]
Moment = Annotated[str, Field(description="A time, ISO 8601 in UTC; empty if there is none.")]


class MonitorLine(Answer):
    """One monitor, as lists show it."""

    name: str
    state: Annotated[
        str, Field(description="`watching`, `stopped`, `lost` if its process was killed, or `unreadable`.")
    ]
    subject: str
    kind: Annotated[str, Field(description="What the subject is: `deployment`, `group`, …")]
    windows: Count
    unusual: Annotated[bool, Field(description="Whether the last window that was judged is unusual.")]
    open_alarms: Count
    is_drifting: bool
    last_at: Moment
    trouble: Annotated[str, Field(description="Why what is watched cannot be read now; empty if it can.")]


class MonitorPage(Answer):
    """A part of the monitors."""

    monitors: list[MonitorLine]
    total: Count
    offset: Count
    limit: Count


class MovedAnswer(Answer):
    """A feature that moved."""

    feature: str
    statistic: str
    size: float
    probability: float
    reference: str
    now: str


class AlarmAnswer(Answer):
    """An alarm, and what became of it."""

    id: str
    kind: Annotated[str, Field(description="`drift` or `error`.")]
    state: Annotated[str, Field(description="`open`, `acknowledged` or `recovered`.")]
    raised_at: Moment
    since: Moment
    ended_at: Moment
    window: Count
    rows: Count
    model_version: Count
    text: str
    moved: list[MovedAnswer]
    seen_by: str
    seen_at: Moment
    note: str


class MonitorDetails(Answer):
    """One monitor."""

    monitor: MonitorLine
    watched: Annotated[dict[str, Any], Field(description="What was asked for.")]
    by: str
    started_at: Moment
    rows: Annotated[int, Field(ge=0, description="Rows in windows that were closed.")]
    late: Count
    dropped: Annotated[int, Field(ge=0, description="Requests that the log could not keep.")]
    per_s: Annotated[float | None, Field(description="Rows in a second, in the last window.")]
    lag_s: Annotated[float | None, Field(description="How long ago the newest row of a closed window came.")]
    alarms: Annotated[list[AlarmAnswer], Field(description="The newest first, at most 100.")]
    may_change: bool


class WindowAnswer(Answer):
    """A window that was closed."""

    number: Count
    model_version: Count
    first_at: Moment
    last_at: Moment
    rows: Count
    late: Count
    dropped: Count
    unusual: bool
    probability: float
    reason: Annotated[str, Field(description="Why it was not judged; empty if it was.")]
    drift: Annotated[dict[str, float], Field(description="By feature: how likely it is by chance.")]
    psi: dict[str, float]


class WindowPage(Answer):
    """A part of the windows, the oldest first."""

    windows: list[WindowAnswer]
    total: Count
    offset: Count
    limit: Count


class ErrorAnswer(Answer):
    """Errors where labels came."""

    number: Count
    first_at: Moment
    last_at: Moment
    rows: Count
    metrics: dict[str, float]


class ErrorPage(Answer):
    """Errors over time, the oldest first, the newest thousand."""

    errors: list[ErrorAnswer]
    total: Count
