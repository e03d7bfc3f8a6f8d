"""A project on shared storage (S3, HDFS … through fsspec), where files can be put and replaced but not appended to.

```
<url>/
  heads/<id>                        small, replaced at each change: how far an experiment has come, and where it runs
  experiments/<id>/
    journal/<from>-<to>.jsonl       the journal in segments, named by the bytes that they hold
    files.json                      which other files there are, with size and time of change
    annotations.jsonl, code/…, trials/…, files/…
```

Things of other kinds lie there in the same way, each kind in folders of its own (`Kind.folder`, `Kind.heads`).

To find out what is new, it is enough to list `heads`.
"""

from __future__ import annotations

import functools
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder, ThingFolder
from cargobike.core.open_folder import OpenFolder, names_in
from cargobike.core.registering.kinds import Kind
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.store.files.shared import shared_url
from cargobike.store.files.storages import open_storage
from cargobike.store.history.environment import without_credentials

ALIVE_S: Final = 60.0
"""How long after its last head a driver elsewhere counts as running."""

_MOST_SKEW_S: Final = 3600.0  # how wrong the clock of another host may be
_DIGITS: Final = 15
_AT_ONCE: Final = 64
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """How far a thing has come, on shared storage; for one that is written at once, that it is there.

    Attributes:
        journal_bytes: Bytes of its journal that are there.
        at: When this was written.
        host: Where its driver runs.
        is_over: Whether the driver has ended, and everything is there.
        revision: Differs each time, so that every head is a new version of its object.
    """

    journal_bytes: int
    at: float
    host: str = ""
    pid: int = 0
    is_over: bool = False
    revision: str = ""

    @property
    def is_alive(self) -> bool:
        """Whether its driver was alive lately; a time that no clock can be wrong by says nothing."""
        return not self.is_over and -_MOST_SKEW_S < time.time() - self.at < ALIVE_S


class Segment(msgspec.Struct, frozen=True, order=True):
    """A piece of a journal: bytes `start` to `end`."""

    start: int
    end: int

    @property
    def name(self) -> str:
        """The name of its object."""
        return f"{self.start:0{_DIGITS}d}-{self.end:0{_DIGITS}d}.jsonl"

    @staticmethod
    def parse(name: str) -> Segment | None:
        """Undo `name`."""
        start, _, end = name.removesuffix(".jsonl").partition("-")
        return Segment(int(start), int(end)) if start.isdigit() and end.isdigit() else None


Listing = dict[str, tuple[int, int]]
"""Size and time of change (nanoseconds) of files, by their path in the thing's folder."""


class RemoteProject:
    """The objects of a project on shared storage; every failure is a `StoreError` that names the project."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._fs, self._root = open_storage(self.url)

    def heads(self, kind: Kind) -> dict[str, str]:
        """Return a token for each thing of a kind, which differs after every change of the thing."""
        with self._store_errors("listed"):
            self._fs.invalidate_cache()
            try:
                entries = self._fs.ls(f"{self._root}/{kind.heads}", detail=True)
            except FileNotFoundError:
                if not self._fs.exists(self._root.split("/")[0] or "/"):
                    raise  # not an empty project, but no bucket at all
                return {}
        tokens = {}
        for entry in entries:
            name = str(entry["name"]).rstrip("/").rpartition("/")[2]
            if kind.id.fullmatch(name):
                marks = [entry.get(key) for key in ("ETag", "LastModified", "mtime", "created", "modified", "size")]
                tokens[name] = "|".join(str(mark) for mark in marks)
        return tokens

    def read_head(self, kind: Kind, thing_id: str) -> Head | None:
        """Return the head of a thing, `None` if it has none."""
        data = self.read(kind.head(thing_id))
        try:
            return None if data is None else msgspec.json.decode(data, type=Head)
        except UNDECODABLE:
            return None

    def write_head(self, kind: Kind, thing_id: str, journal_bytes: int, *, pid: int = 0, is_over: bool = False) -> None:
        """Write the head of a thing: how far it has come."""
        head = Head(
            journal_bytes=journal_bytes,
            at=time.time(),
            host=socket.gethostname(),
            pid=pid,
            is_over=is_over,
            revision=secrets.token_hex(8),
        )
        self.write(kind.head(thing_id), msgspec.json.encode(head))

    def segments(self, kind: Kind, thing_id: str) -> list[Segment]:
        """Return the segments of a journal, those that begin earlier or hold more first."""
        with self._store_errors("listed"):
            self._fs.invalidate_cache()
            try:
                names = self._fs.ls(f"{self._root}/{kind.place(thing_id, 'journal')}", detail=False)
            except FileNotFoundError:
                return []
        segments = [Segment.parse(str(name).rpartition("/")[2]) for name in names]
        return sorted((one for one in segments if one is not None), key=lambda one: (one.start, -one.end))

    def listing(self, kind: Kind, thing_id: str) -> Listing:
        """Return which files a thing has besides its journal."""
        data = self.read(kind.place(thing_id, "files.json"))
        try:
            return {} if data is None else msgspec.json.decode(data, type=Listing)
        except UNDECODABLE as error:
            raise StoreError(f"The list of files of {thing_id} on {self} is damaged: {error}") from error

    def read(self, name: str, start: int | None = None) -> bytes | None:
        """Return an object, or its part from `start` on; `None` if there is none."""
        with self._store_errors("read"):
            try:
                return bytes(self._fs.cat_file(f"{self._root}/{name}", start=start))
            except FileNotFoundError:
                return None

    def write(self, name: str, data: bytes) -> None:
        """Put an object."""
        with self._store_errors("written to"):
            self._parents(name)
            self._fs.pipe_file(f"{self._root}/{name}", data)

    def upload(self, folder: Path, names: list[str], target_folder: str) -> None:
        """Put files of a folder, many at once; those that have vanished meanwhile are skipped."""
        with self._store_errors("written to"):
            for some in _batches(names):
                there = [name for name in some if (folder / name).is_file()]
                for name in there:
                    self._parents(f"{target_folder}/{name}")
                sources = [str(folder / name) for name in there]
                targets = [f"{self._root}/{target_folder}/{name}" for name in there]
                try:
                    self._fs.put(sources, targets)
                except FileNotFoundError:
                    for source, target in zip(sources, targets, strict=True):
                        if os.path.isfile(source):
                            self._fs.put_file(source, target)

    def download(self, source_folder: str, names: list[str], folder: Path) -> list[str]:
        """Get files into a folder, each whole or not at all; returns those that were there.

        Links that are in the folder, such as those that a train function made here, are not followed.
        """
        downloads: list[str] = []
        for some in _batches(_with_folders(folder, names)):
            aside = [(folder / name).with_name(f".{Path(name).name}.{secrets.token_hex(4)}") for name in some]
            try:
                with self._store_errors("read"):
                    sources = [f"{self._root}/{source_folder}/{name}" for name in some]
                    try:
                        self._fs.get(sources, [str(path) for path in aside], on_error="omit")
                    except FileNotFoundError:  # not every storage skips missing files
                        self._get_each(sources, aside)
                for name, path in zip(some, aside, strict=True):
                    if path.exists():
                        path.replace(folder / name)
                        downloads.append(name)
            finally:
                for path in aside:
                    path.unlink(missing_ok=True)
        return downloads

    def _get_each(self, sources: list[str], targets: list[Path]) -> None:
        for source, target in zip(sources, targets, strict=True):
            try:
                self._fs.get_file(source, str(target))
            except FileNotFoundError:
                target.unlink(missing_ok=True)

    def delete(self, *names: str) -> None:
        """Remove objects and what lies below them; missing ones are skipped."""
        with self._store_errors("written to"):
            self._fs.invalidate_cache()
            for name in names:
                try:
                    self._fs.rm(f"{self._root}/{name}", recursive=True)
                except FileNotFoundError:
                    continue

    def __str__(self) -> str:
        return without_credentials(self.url)

    def _parents(self, name: str) -> None:
        """Make folders where the storage has them; S3 does not."""
        if "s3" not in self._protocols:
            self._fs.makedirs(f"{self._root}/{name}".rpartition("/")[0], exist_ok=True)

    @functools.cached_property
    def _protocols(self) -> tuple[str, ...]:
        protocol_names = self._fs.protocol
        return (protocol_names,) if isinstance(protocol_names, str) else tuple(protocol_names)

    @contextmanager
    def _store_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except Exception as error:  # each storage has errors of its own
            text = str(error).strip() or type(error).__name__
            raise StoreError(f"The project {self} cannot be {what}: {text}") from error


def _batches(names: list[str]) -> list[list[str]]:
    return [names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE)]


def _with_folders(root: Path, names: list[str]) -> list[str]:
    """Make the folders that files go into; returns the names of those that have one, and no link in its place."""
    good: list[str] = []
    root.mkdir(parents=True, exist_ok=True)
    with OpenFolder.at(root) as top:
        for name in names:
            try:
                with top.below(names_in(name)[:-1], make=True):
                    good.append(name)
            except (OSError, ValueError) as error:
                _log.warning("%s is not copied to %s: %s", name, root, error)
    return good


def remote_of(project: ProjectFolder) -> RemoteProject | None:
    """Return the shared storage that a folder is the local copy of; `None` for a project that lies in the folder."""
    url = shared_url(project)
    return open_remote(url) if url else None


def remote_of_thing(folder: ThingFolder) -> RemoteProject | None:
    """Return the shared storage that a thing belongs to."""
    return remote_of(folder.project)


@functools.lru_cache(maxsize=16)
def open_remote(url: str) -> RemoteProject:
    """Open shared storage by its URL, once for each process."""
    return RemoteProject(url)


def patiently(action: Callable[[], _T], give_up_at: float) -> _T:
    """Repeat an action until it works or time is up."""
    pause_s = 0.2
    while True:
        try:
            return action()
        except StoreError:
            if time.monotonic() + pause_s > give_up_at:
                raise
            time.sleep(pause_s)
            pause_s = min(5.0, 2 * pause_s)
