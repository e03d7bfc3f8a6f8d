"""The shapes that the API of features answers with."""

from __future__ import annotations

from typing import Annotated, Any

from cargobike.ui.answers import Answer, Field

Count = Annotated[int, Field(ge=0)]


class GroupLine(Answer):
    """One feature group, as lists show it."""

    name: str
    version: Annotated[int, Field(ge=1)]
    key: list[str]
    event_time: Annotated[str, Field(description="The column with event times; empty if rows have none.")]
    features: Annotated[dict[str, str], Field(description="Types of the features by name.")]
    rows: Count
    commit: Annotated[int, Field(ge=-1, description="The newest commit; -1 if nothing was inserted yet.")]
    updated_at: Annotated[str | None, Field(description="When the newest commit was made.")]
    online: bool
    online_store: str
    description: str
    tags: list[str]
    owner: str


class GroupPage(Answer):
    """A part of the list of feature groups."""

    groups: list[GroupLine]
    total: Count
    offset: Count
    limit: Count


class GroupColumn(Answer):
    """One column of a group."""

    name: str
    type: str
    role: Annotated[str, Field(description="`key`, `event time` or `feature`.")]


class GroupCommit(Answer):
    """One change of a group."""

    number: Count
    operation: str
    at: str
    user: str
    host: str
    inserted: Count
    updated: Count
    unchanged: Count
    deleted: Count
    quarantined: Count
    rows: Annotated[int, Field(ge=0, description="How many rows were written.")]
    source: str
    message: str
    oldest: Annotated[int, Field(ge=0, description="For `vacuum`: the oldest commit that can still be read.")]


class GroupUse(Answer):
    """A view or training dataset that was made from a group."""

    kind: Annotated[str, Field(description="`view` or `dataset`.")]
    name: str
    version: Annotated[int, Field(ge=1)]
    detail: Annotated[str, Field(description="Which features, or which commit.")]
    page: Annotated[str, Field(description="The address of its page.")]


class GroupDetails(Answer):
    """One feature group: what it is, its columns, its commits, what was made from it."""

    group: GroupLine
    url: Annotated[str, Field(description="Where its rows lie, without credentials.")]
    versions: Annotated[list[int], Field(description="All versions of its definition.")]
    ttl_s: float | None
    allow_future: bool
    expectations: list[str]
    columns: list[GroupColumn]
    files: Count
    size_bytes: Count
    commits: Annotated[list[GroupCommit], Field(description="The newest first, 100 at most.")]
    used_by: Annotated[list[GroupUse], Field(description="Views and training datasets that were made from it.")]


class Histogram(Answer):
    """How values are spread."""

    edges: list[float]
    counts: list[int]


class ColumnFigures(Answer):
    """Statistics of one column."""

    kind: Annotated[str, Field(description="`number`, `time`, `text`, `flag` or `other`.")]
    count: Count
    nulls: Count
    odd: Annotated[int, Field(ge=0, description="How many numbers are NaN or infinite.")]
    min: Annotated[Any, Field(description="A number, or a time; `null` for other kinds.")]
    max: Annotated[Any, Field(description="A number, or a time; `null` for other kinds.")]
    mean: float | None
    std: float | None
    distinct: int | None
    quantiles: Annotated[dict[str, Any], Field(description="Values by the share of values below them.")]
    histogram: Histogram
    common: Annotated[dict[str, int], Field(description="The most frequent texts.")]


class GroupStatistics(Answer):
    """Statistics of the rows of a group."""

    group: str
    version: Count
    commit: Annotated[int, Field(ge=-1)]
    rows: Count
    columns: dict[str, ColumnFigures]
    correlations: dict[str, dict[str, float | None]]
