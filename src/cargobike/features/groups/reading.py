"""Read a group as it is, or as it was after any commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from cargobike.core.errors import NotFoundError
from cargobike.features.definition import Definition
from cargobike.features.delta.actions import Add
from cargobike.features.delta.log import Log, Snapshot
from cargobike.features.delta.schemas import TIME
from cargobike.features.groups.choices import Moment, read_moment
from cargobike.features.groups.columns import schema_of
from cargobike.features.groups.commits import commit_of

OLDEST: Final = "cargobike.oldest"
"""The setting of a table that says which commit is the oldest that can still be read."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """A group as it is now, for callers that ask about it several times: commits that come meanwhile change nothing.

    Attributes:
        log: The log of the group.
        definition: What it is.
        newest: Its newest commit.
    """

    log: Log
    definition: Definition
    newest: Snapshot

    @property
    def name(self) -> str:
        """Its name."""
        return self.definition.name

    @property
    def table_id(self) -> str:
        """The id of its table; empty if nothing was inserted yet."""
        return "" if self.newest.meta is None else self.newest.meta.id

    @property
    def commit(self) -> int:
        """The number of its newest commit; -1 if nothing was inserted yet."""
        return self.newest.version

    def dataset(self, commit: int | None = None) -> ds.Dataset:
        """Return its rows as they are after a commit, by default the newest."""
        return dataset_of(self.log, _before(self.log, self.newest, commit, self.definition), self.definition)


def snapshot_at(log: Log, moment: Moment | None, definition: Definition) -> Snapshot:
    """Return a group as it was at a moment, by default as it is.

    Raises:
        NotFoundError: If there is no such commit, or its files were deleted since.
    """
    return _before(log, log.newest(), moment, definition)


def _before(log: Log, newest: Snapshot, moment: Moment | None, definition: Definition) -> Snapshot:
    if moment is None:
        return newest
    number = _number_at(log, newest, read_moment("as_of", moment), definition)
    oldest = oldest_readable(newest)
    if number < oldest:
        raise NotFoundError(
            f"Commit {number} of the group {definition.name!r} can no longer be read: vacuum has deleted its files. "
            f"The oldest that can is {oldest}.",
            wanted=number,
            nearest=[str(oldest)],
        )
    return log.at(number)


def oldest_readable(newest: Snapshot) -> int:
    """Return the oldest commit whose files are all there."""
    said = newest.meta.configuration.get(OLDEST, "0") if newest.meta is not None else "0"
    return int(said) if said.isdigit() else 0


def dataset_of(log: Log, snapshot: Snapshot, definition: Definition) -> ds.Dataset:
    """Return the rows of a state as a dataset of Arrow, which reads files when it is scanned."""
    return dataset_of_files(log, list(snapshot.files.values()), definition)


def dataset_of_files(log: Log, files: list[Add], definition: Definition) -> ds.Dataset:
    """Return the rows of some files; a filter on the event time passes over files that it rules out."""
    schema = schema_of(definition)
    if not files:
        return ds.dataset(schema.empty_table())
    filesystem, root = log.storage.arrow()
    form = ds.ParquetFileFormat()
    prefix = "/".join(part for part in (root, log.folder) if part)
    fragments = [
        form.make_fragment(
            f"{prefix}/{file.path}",
            filesystem,
            partition_expression=_times_in(file, definition),
            file_size=file.size or None,  # else each file is asked for its size before it is read
        )
        for file in files
    ]
    return ds.FileSystemDataset(fragments, schema, form, filesystem)


def _times_in(file: Add, definition: Definition) -> Any:
    """Return what is true of the event times of all rows of a file."""
    statistics = file.statistics
    low, high = (values.get(definition.event_time) for values in (statistics.min_values, statistics.max_values))
    if not isinstance(low, str) or not isinstance(high, str):
        return None
    first, last = (_time(text) for text in (low, high))
    field = pc.field(definition.event_time)
    return (field >= first) & (field <= last)


def _time(text: str) -> Any:
    return pa.scalar(int(np.datetime64(text.rstrip("Z"), "us").astype(np.int64)), pa.int64()).cast(TIME)


def _number_at(log: Log, newest: Snapshot, moment: int | datetime, definition: Definition) -> int:
    if isinstance(moment, int):
        if 0 <= moment <= newest.version:
            return moment
        has = f"it has 0 to {newest.version}" if newest.version >= 0 else "nothing was inserted yet"
        raise NotFoundError(f"The group {definition.name!r} has no commit {moment}; {has}.", wanted=moment)
    first = None
    for version, actions in log.commits():
        first = commit_of(version, actions)
        if first.at <= moment.timestamp():
            return version
    had = f"its first commit was at {first.time:%Y-%m-%d %H:%M:%S UTC}" if first else "nothing was inserted yet"
    raise NotFoundError(
        f"The group {definition.name!r} had no rows at {moment:%Y-%m-%d %H:%M:%S UTC}: {had}.", wanted=str(moment)
    )
