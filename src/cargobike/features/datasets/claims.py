"""Which versions of training datasets are being written, so that what dead writers left can be swept, and no more.

A writer claims a number by creating `datasets/<name>/<version>/claim`, in which it says which process it is, and renews
that as it goes. Before it commits it creates `claim.end` beside it; a sweeper creates the same file before it deletes.
Of the two the one that comes second stands back. The claim is deleted last: as long as it is there, a sweeper finds the
rest.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Iterator
from secrets import token_hex
from types import TracebackType
from typing import Final

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.running.process_names import has_ended, name_of_this_process
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.features.datasets.record import FOLDER, MANIFEST, DatasetRecord, commit_dataset, folder_of, manifest_of
from cargobike.features.views.record import NAME, ViewRecord, fitted_path
from cargobike.store.files.storage import Storage

SILENT_S: Final = 24 * 3600.0
"""A writer whose process cannot be seen from here, and that said nothing for so long, is taken for dead."""
_TAKEN: Final = re.compile(rf"{FOLDER}/(?P<name>{NAME.pattern})/(?P<version>[1-9]\d{{0,5}})/(claim|manifest\.json)")

_log = logging.getLogger(__name__)


class Claim(msgspec.Struct, frozen=True):
    """What a writer says of itself: its process, when it last said so, and for which view it fits transformations."""

    token: str
    process: str
    at: float
    view: str
    view_version: int


class Writing:
    """A version of a training dataset on its way; a `with` block deletes what was not committed.

    Args:
        storage: The storage of the project.
        name: What the training dataset is called.
        view: The view whose rows it gets.
    """

    def __init__(self, storage: Storage, name: str, view: ViewRecord) -> None:
        self._storage = storage
        self._name = name
        self._view = view
        self._token = token_hex(8)
        self._is_committed = False
        self.version = 0

    def __enter__(self) -> Writing:
        sweep(self._storage)
        entries = self._storage.list(f"{FOLDER}/{self._name}", deep=True)
        matches = [match for entry in entries if (match := _TAKEN.fullmatch(entry.path))]
        number = max((int(match["version"]) for match in matches), default=0)
        while not self.version:
            number += 1
            if self._storage.create(f"{folder_of(self._name, number)}/claim", self._claim()):
                self.version = number
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._is_committed and self._is_mine():
            _delete(self._storage, self._name, self.version, self._view.name, self._view.version)

    @property
    def folder(self) -> str:
        """Where its files go."""
        return folder_of(self._name, self.version)

    def renew(self) -> None:
        """Say that this writer lives.

        Raises:
            StoreError: If it was taken for dead, and what it wrote was swept.
        """
        if not self._is_mine():
            raise self._swept()
        self._storage.write(f"{self.folder}/claim", self._claim())

    def commit(self, record: DatasetRecord) -> None:
        """Make the version visible.

        Raises:
            StoreError: If a sweeper has begun to take its files away.
        """
        if not self._is_mine() or not self._storage.create(f"{self.folder}/claim.end", b"commit"):
            raise self._swept()
        commit_dataset(self._storage, record)
        self._is_committed = True
        self._storage.delete(f"{self.folder}/claim.end")

    def _claim(self) -> bytes:
        process = name_of_this_process().strip()
        claim = Claim(self._token, process, time.time(), self._view.name, self._view.version)
        return msgspec.json.encode(claim)

    def _swept(self) -> StoreError:
        return StoreError(
            f"What was written to {self._storage}/{self.folder} was swept away, since this process had been silent for "
            f"more than {SILENT_S / 3600:.0f} hours. Write it again."
        )

    def _is_mine(self) -> bool:
        claim = _read(self._storage, f"{self.folder}/claim")
        return claim is not None and claim.token == self._token


def sweep(storage: Storage) -> list[str]:
    """Delete what dead writers of training datasets left behind, and return which versions they had claimed."""
    swept = []
    paths = {entry.path for entry in storage.list(FOLDER, deep=True)}
    ended = (path for path in paths if path.endswith("/claim.end"))
    storage.delete(*(path for path in ended if f"{path.rpartition('/')[0]}/{MANIFEST}" in paths))
    for name, version, claim in _open_claims(storage, paths):
        folder = folder_of(name, version)
        has_died = has_ended(claim.process)
        if not has_died and time.time() - claim.at < SILENT_S:
            continue
        is_first = storage.create(f"{folder}/claim.end", b"sweep")
        if not is_first and not has_died:
            continue  # it has come back, and commits
        if storage.stat(manifest_of(name, version)) is not None:
            continue  # it was committed just now
        _delete(storage, name, version, claim.view, claim.view_version)
        swept.append(f"{name}:{version}")
    if swept:
        _log.info("swept training datasets of writers that died, at %s: %s", storage, ", ".join(swept))
    return swept


def _delete(storage: Storage, name: str, version: int, view: str, view_version: int) -> None:
    folder = folder_of(name, version)
    if NAME.fullmatch(view):
        storage.delete(fitted_path(view, view_version, f"{name}:{version}"))
    kept = {f"{folder}/claim", f"{folder}/claim.end"}
    below = {entry.path.removeprefix(f"{folder}/").partition("/")[0] for entry in storage.list(folder, deep=True)}
    storage.delete(*(path for path in sorted(f"{folder}/{one}" for one in below) if path not in kept))
    storage.delete(f"{folder}/claim.end")
    storage.delete(f"{folder}/claim")


def _open_claims(storage: Storage, paths: set[str]) -> Iterator[tuple[str, int, Claim]]:
    """Yield the claims of versions that are not visible; one that does not say which process it is of is left alone."""
    for path in sorted(paths):
        match = _TAKEN.fullmatch(path)
        if match is None or manifest_of(match["name"], int(match["version"])) in paths:
            continue
        if claim := _read(storage, path):
            yield match["name"], int(match["version"]), claim


def _read(storage: Storage, path: str) -> Claim | None:
    data = storage.read(path)
    with contextlib.suppress(*UNDECODABLE):
        return None if data is None else msgspec.json.decode(data, type=Claim)
    return None
