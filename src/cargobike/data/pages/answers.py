"""The shapes that the API of tables answers with."""

from __future__ import annotations

from typing import Annotated

from cargobike.ui.answers import Answer, Field

Count = Annotated[int, Field(ge=0)]


class Table(Answer):
    """One table that a project keeps."""

    id: Annotated[str, Field(description="`name:version`, or the id of a table that was given to an experiment.")]
    name: Annotated[str, Field(description="What it is called in all its versions; empty if it has only an id.")]
    version: Count
    fingerprint: Annotated[str, Field(description="The same for equal content, empty if that was not recorded.")]
    rows: Annotated[int | None, Field(description="How many rows it has; `null` if that was not recorded.")]
    files: Count
    size_bytes: Count
    written_at: str
    source: Annotated[str, Field(description="What it was made from, empty if that was not recorded.")]
    columns: Annotated[dict[str, str], Field(description="Types of its columns by name.")]
    is_removed: Annotated[bool, Field(description="Whether its files were deleted since.")]


class TableFile(Answer):
    """One Parquet file of a table."""

    path: Annotated[str, Field(description="Its path below the table's address.")]
    rows: Annotated[int, Field(ge=0)]
    size_bytes: Annotated[int | None, Field(description="`null` if that was not recorded.")]
    row_groups: Annotated[int | None, Field(description="`null` if that was not recorded.")]


class TableDetails(Answer):
    """One version of a table, with its files, its other versions and its first rows."""

    table: Table
    url: Annotated[str, Field(description="Where it lies, without credentials; empty if it has no manifest.")]
    user: str
    host: str
    versions: Annotated[list[Table], Field(description="All versions of the same name, the newest first.")]
    parts: list[TableFile]
    sample: Annotated[list[list[str]], Field(description="The first rows as texts, in the order of the columns.")]
    problem: Annotated[str, Field(description="Why there are no rows to show; empty if there are.")]


class TablePage(Answer):
    """A part of the list of tables."""

    tables: list[Table]
    total: Count
    offset: Count
    limit: Count
