"""The cache of a project: what steps of earlier runs returned, by the fingerprint of their code and inputs.

An entry names a run and what one of its steps returned. The value is linked, or copied, into the run that uses it, so
that every run is whole without the others. An entry whose run was removed is no entry any more.
"""

from __future__ import annotations

import contextlib
import os
import shutil

import msgspec

from cargobike.core.errors import CargobikeError
from cargobike.core.layout import ProjectFolder
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.pipelines.driving.events import Hit
from cargobike.pipelines.record import RunFolder, folder_of
from cargobike.pipelines.values.value import Value
from cargobike.store.files.mirror import fetch
from cargobike.store.files.shared import shared_url
from cargobike.store.files.storages import storage_of


class Entry(msgspec.Struct, frozen=True):
    """What one step of an earlier run returned."""

    run: str
    step: int
    at: float
    result: Value


class Cache:
    """The cache of one project.

    Args:
        project: The project.
        folder: The run that uses it.
    """

    def __init__(self, project: ProjectFolder, folder: RunFolder) -> None:
        self._project = project
        self._folder = folder
        self._storage = storage_of(project)
        self._is_shared = bool(shared_url(project))

    def find(self, key: str, step: int, oldest_at: float) -> Hit | None:
        """Return what an earlier run returned, unless that is older than it may be; its file is there then."""
        data = self._storage.read(_path(key))
        try:
            entry = None if data is None else msgspec.json.decode(data, type=Entry)
        except UNDECODABLE:
            entry = None
        if entry is None or entry.at < oldest_at:
            return None
        source = f"{entry.run}/{entry.step}"
        if not entry.result.path:
            return Hit(entry.result, source)
        place = f"{self._folder.step_place(step)}/{os.path.basename(entry.result.path)}"
        if not self._bring(entry, place):
            return None
        return Hit(msgspec.structs.replace(entry.result, path=place), source)

    def put(self, key: str, step: int, at: float, result: Value) -> None:
        """Add what a step of this run returned."""
        entry = Entry(self._folder.id, step, at, result)
        self._storage.write(_path(key), msgspec.json.encode(entry))

    def _bring(self, entry: Entry, place: str) -> bool:
        """Link or copy the file of a value into this run; returns whether it was there."""
        theirs = folder_of(self._project, entry.run)
        source, target = theirs.root / entry.result.path, self._folder.root / place
        if not source.is_file() and self._is_shared:
            with contextlib.suppress(CargobikeError):
                fetch(theirs, with_checkpoints=True)
        try:
            if source.stat().st_size != entry.result.size_bytes:
                return False
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            try:
                os.link(source, target)
            except OSError:
                shutil.copyfile(source, target)
        except OSError:
            return False
        return True


def _path(key: str) -> str:
    return f"pipelines/cache/{key[:2]}/{key}.json"
