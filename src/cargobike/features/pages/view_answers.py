"""The shapes that the API answers with about views and training datasets."""

from __future__ import annotations

from typing import Annotated

from cargobike.ui.answers import Answer, Field, Use

Count = Annotated[int, Field(ge=0)]
Version = Annotated[int, Field(ge=1)]


class ViewLine(Answer):
    """One view, as lists show it."""

    name: str
    version: Version
    label: Annotated[str, Field(description="The column that a model learns; empty if there is none.")]
    features: list[str]
    groups: list[str]
    description: str
    created_at: str
    user: str


class ViewPage(Answer):
    """A part of the list of views."""

    views: list[ViewLine]
    total: Count
    offset: Count
    limit: Count


class ViewColumn(Answer):
    """One feature of a view: taken from a group, or computed for each request."""

    name: str
    type: Annotated[str, Field(description="Its type in the group; empty if it is computed.")]
    group: str
    group_version: Count
    feature: Annotated[str, Field(description="What it is called in the group.")]
    computed_by: Annotated[str, Field(description="The function that computes it, as `module:name`; empty otherwise.")]
    transformation: Annotated[str, Field(description="What is done to it; empty if nothing is.")]


class ViewDetails(Answer):
    """One version of a view: its features, what is done to them, what was made from it."""

    view: ViewLine
    versions: list[int]
    columns: list[ViewColumn]
    fitted_for: Annotated[list[str], Field(description="Training datasets that it was fitted for, the last first.")]
    used_by: list[Use]


class DatasetLine(Answer):
    """One version of a training dataset, as lists show it."""

    id: Annotated[str, Field(description="`name:version`.")]
    name: str
    version: Version
    view: str
    view_version: Version
    label: str
    rows: Count
    parts: Annotated[dict[str, int], Field(description="How many rows each part has.")]
    fingerprint: str
    format: str
    written_at: str
    user: str


class DatasetPage(Answer):
    """A part of the list of training datasets."""

    datasets: list[DatasetLine]
    total: Count
    offset: Count
    limit: Count


class DatasetPart(Answer):
    """One part of a training dataset."""

    name: str
    rows: Count
    is_learned_from: Annotated[bool, Field(description="Whether models learn from it, and transformations did.")]
    fingerprint: str
    url: Annotated[str, Field(description="Where its files are, without credentials.")]


class PinnedCommit(Answer):
    """The commit at which a group was read."""

    group: str
    version: Version
    commit: int | None


class DatasetDetails(Answer):
    """One version of a training dataset: its parts, what it was made from, what was trained on it."""

    dataset: DatasetLine
    versions: Annotated[list[DatasetLine], Field(description="All versions of its name, the newest first.")]
    split: dict[str, float]
    seed: int
    by: Annotated[str, Field(description="What rows of one part share: `rows`, `time`, `key` or a column.")]
    time: str
    known_at: str
    commits: list[PinnedCommit]
    part_list: list[DatasetPart]
    used_by: list[Use]
