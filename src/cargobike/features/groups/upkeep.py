"""Keep a group in good order: few large files instead of many small ones, and nothing of what was deleted."""

from __future__ import annotations

import time
from typing import Final

import pyarrow as pa

from cargobike.features.definition import Definition
from cargobike.features.delta.actions import Add, Remove
from cargobike.features.delta.log import Log, Snapshot
from cargobike.features.groups.columns import identity_of
from cargobike.features.groups.commits import Commit, Plan, commit_of, commit_with
from cargobike.features.groups.files import MOST_ROWS, read_rows, time_of_name, write_files
from cargobike.features.groups.reading import OLDEST, oldest_readable
from cargobike.features.groups.rows.quarantine import quarantine_folder

UNCOMMITTED_S: Final = 3600.0
"""How old a file that no commit names must be to be taken for a leftover: an insert may be about to name it, and gives
up long before."""


class Compaction:
    """Decides which files of a group are put together."""

    def __init__(self, log: Log, definition: Definition) -> None:
        self._log = log
        self._definition = definition
        self._made: tuple[list[Add], list[Add]] | None = None

    def __call__(self, snapshot: Snapshot) -> Plan | None:
        """Write one file for many small ones, ordered by key and time; `None` if there are not even two."""
        if self._made is not None and all(file.path in snapshot.files for file in self._made[0]):
            small, adds = self._made  # other writers only added files: what was put together still holds
        else:
            small = [file for file in snapshot.files.values() if file.statistics.num_records < MOST_ROWS // 2]
            if len(small) < 2:
                return None
            adds = []
            for part in _parts(small):
                rows = pa.concat_tables(
                    read_rows(self._log.storage, self._log.folder, file, self._definition) for file in part
                )
                rows = rows.sort_by([(name, "ascending") for name in identity_of(self._definition)])
                adds += write_files(self._log.storage, self._log.folder, rows, self._definition, changed=False)
            self._made = small, adds
        return Plan(adds, small, Commit(operation="compact"), data_change=False)


def _parts(files: list[Add]) -> list[list[Add]]:
    """Return files in parts that make one large file each."""
    parts: list[list[Add]] = [[]]
    rows = 0
    for file in files:
        if rows + file.statistics.num_records > MOST_ROWS and parts[-1]:
            parts.append([])
            rows = 0
        parts[-1].append(file)
        rows += file.statistics.num_records
    return parts


def vacuum(log: Log, definition: Definition, older_than_s: float) -> tuple[Commit, int]:
    """Delete the files that no state of the last `older_than_s` seconds needs, and what killed processes left.

    Returns:
        The commit that says so, and how many files were deleted.
    """
    if log.newest().version < 0:
        return Commit(operation="vacuum"), 0
    oldest, gone, named = _past(log, time.time() - older_than_s)

    def plan(snapshot: Snapshot) -> Plan:
        oldest_ever = max(oldest, oldest_readable(snapshot))
        return Plan([], [], Commit(operation="vacuum", oldest=oldest_ever), settings={OLDEST: str(oldest_ever)})

    # The commit comes first: readers are told that the past is gone before its files go.
    _, commit = commit_with(log, definition, plan)
    there = {entry.path for folder in (log.folder, quarantine_folder(log)) for entry in log.storage.list(folder)}
    paths = [path for path in (f"{log.folder}/{name}" for name in gone) if path in there]
    paths += [path for path in sorted(there) if _is_leftover(path.rpartition("/")[2], named)]
    log.storage.delete(*paths)
    return commit, len(paths)


def _past(log: Log, limit: float) -> tuple[int, list[str], set[str]]:
    """Return the oldest commit that stays readable, the files removed up to it, and all that any commit names."""
    oldest, gone, named, is_past = 0, [], set(), True
    for version, actions in log.commits(newest_first=False):
        commit = commit_of(version, actions)
        is_past = is_past and (commit.at <= limit or not version)
        oldest = version if is_past else oldest
        for action in actions:
            if isinstance(action, Add | Remove):
                named.add(action.path)
            if isinstance(action, Remove) and is_past:
                gone.append(action.path)
        named.add(commit.quarantine)
    return oldest, gone, named


def _is_leftover(name: str, named: set[str]) -> bool:
    """Tell whether a file was written by a process that was killed before it could commit."""
    written_at_s = time_of_name(name)
    return name not in named and written_at_s is not None and written_at_s < time.time() - UNCOMMITTED_S
