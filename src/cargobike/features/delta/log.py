"""The log of a Delta table: reading its state at any commit, and adding a commit.

A commit is one file whose name is its number, created only if absent: of several writers exactly one gets a number, on
every storage. The others are told, look at what was committed, and decide again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from cargobike.core.errors import StoreError
from cargobike.features.delta.actions import (
    Action,
    Add,
    CommitInfo,
    MetaData,
    Protocol,
    Remove,
    decode_actions,
    encode_actions,
)
from cargobike.features.delta.checkpoints import newest_checkpoint, read_checkpoint, write_checkpoint
from cargobike.store.files.storage import Storage

FOLDER: Final = "_delta_log"
CHECKPOINT_EVERY: Final = 25
_NAME: Final = re.compile(r"(\d{20})\.json")
_KEPT: Final = 4


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table as it is after a commit; `version` is -1 for a table without any."""

    version: int = -1
    files: Mapping[str, Add] = field(default_factory=lambda: MappingProxyType({}))
    meta: MetaData | None = None
    timestamp: int = 0
    """When the commit was made, in milliseconds since 1970."""

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(file.statistics.num_records for file in self.files.values())

    def after(self, version: int, actions: list[Action]) -> Snapshot:
        """Return the table after the next commit."""
        files, meta, timestamp = dict(self.files), self.meta, self.timestamp
        for action in actions:
            if isinstance(action, Remove):
                files.pop(action.path, None)
            elif isinstance(action, MetaData):
                meta = action
            elif isinstance(action, CommitInfo):
                timestamp = max(timestamp, action.timestamp)
        for action in actions:
            if isinstance(action, Add):
                files[action.path] = action
        return Snapshot(version, MappingProxyType(files), meta, timestamp)


class Log:
    """The log of the table in one folder of a storage. May be used by several threads.

    Commits never change, so the states that were asked for last are kept: look-ups are brought up to date after each
    commit from the one before it, and reading all commits for that again would take longer with each of them.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self.storage = storage
        self.folder = folder
        self._newest = Snapshot()
        self._recent: tuple[Snapshot, ...] = ()  # replaced as a whole, so that it needs no lock

    def newest(self) -> Snapshot:
        """Return the table as it is now; only what was committed since the last call is read."""
        snapshot = self._newest
        if snapshot.version < 0:
            snapshot = self._from_checkpoint(None)
        snapshot = self._follow(snapshot, None)
        if snapshot.version >= self._newest.version:
            self._newest = snapshot
        self._keep(snapshot)
        return snapshot

    def at(self, version: int) -> Snapshot:
        """Return the table as it was after a commit.

        Raises:
            StoreError: If there is no such commit.
        """
        near = (one for one in self._recent if version - CHECKPOINT_EVERY < one.version <= version)
        before = max(near, key=lambda one: one.version, default=None)
        snapshot = self._follow(self._from_checkpoint(version) if before is None else before, version)
        if snapshot.version != version:
            raise StoreError(f"{self.storage}/{self.folder} has no commit {version}; its newest is {snapshot.version}.")
        self._keep(snapshot)
        return snapshot

    def commits(self, newest_first: bool = True) -> Iterator[tuple[int, list[Action]]]:
        """Yield all commits with their numbers."""
        newest = self.newest().version
        for version in range(newest, -1, -1) if newest_first else range(newest + 1):
            yield version, self.actions(version)

    def actions(self, version: int) -> list[Action]:
        """Return the actions of a commit that is known to be there."""
        actions = self._read(version)
        if actions is None:
            raise StoreError(f"Commit {version} of {self.storage}/{self.folder} is missing: its log was cut.")
        return actions

    def commit(self, base: Snapshot, actions: list[Action]) -> Snapshot | None:
        """Add a commit behind a state of the table.

        Returns:
            The table after it; `None` if another writer was first, and nothing was changed.
        """
        version = base.version + 1
        if not self.storage.create(self._path(version), encode_actions(actions)):
            return None
        snapshot = base.after(version, actions)
        self._newest = snapshot
        self._keep(snapshot)
        if version and version % CHECKPOINT_EVERY == 0:
            write_checkpoint(
                self.storage, f"{self.folder}/{FOLDER}", snapshot.version, list(snapshot.files.values()), snapshot.meta
            )
        return snapshot

    def _keep(self, snapshot: Snapshot) -> None:
        """Remember a state, and forget the one that was asked for longest ago."""
        if snapshot.version >= 0:
            others = (one for one in self._recent if one.version != snapshot.version)
            self._recent = (snapshot, *others)[:_KEPT]

    def _from_checkpoint(self, until: int | None) -> Snapshot:
        place = f"{self.folder}/{FOLDER}"
        version = newest_checkpoint(self.storage, place)
        if version is None or (until is not None and version > until):
            # An older one may fit, but looking for it costs more than reading a few commits.
            version = None if until is None else (until // CHECKPOINT_EVERY) * CHECKPOINT_EVERY
        if not version:
            return Snapshot()
        state = read_checkpoint(self.storage, place, version)
        if state is None:
            return Snapshot()
        files, meta = state
        timestamp = max((a.timestamp for a in self.actions(version) if isinstance(a, CommitInfo)), default=0)
        return Snapshot(version, MappingProxyType({file.path: file for file in files}), meta, timestamp)

    def _follow(self, snapshot: Snapshot, until: int | None) -> Snapshot:
        while until is None or snapshot.version < until:
            actions = self._read(snapshot.version + 1)
            if actions is None:
                break
            snapshot = snapshot.after(snapshot.version + 1, actions)
        return snapshot

    def _read(self, version: int) -> list[Action] | None:
        path = self._path(version)
        data = self.storage.read(path)
        return None if data is None else decode_actions(data, f"{self.storage}/{path}")

    def _path(self, version: int) -> str:
        return f"{self.folder}/{FOLDER}/{version:020d}.json"


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def first_actions(table_id: str, name: str, schema_string: str) -> list[Action]:
    """Return what the first commit of a table begins with."""
    return [Protocol(), MetaData(id=table_id, name=name, schema_string=schema_string, created_time=now_ms())]
