"""A project on shared storage (S3, HDFS …), where files can be put and replaced but not appended to.

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

import contextlib
import functools
import logging
import secrets
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder, ThingFolder
from cargobike.core.open_folder import OpenFolder, names_in
from cargobike.core.registering.kinds import Kind
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.store.files.shared import shared_url
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import open_storage

ALIVE_S: Final = 60.0
"""How long after its last head a driver elsewhere counts as running."""

_MOST_SKEW_S: Final = 3600.0  # how wrong the clock of another host may be
_DIGITS: Final = 15
_AT_ONCE: Final = 12
_PIECE_BYTES: Final = 16 << 20
_TRIES: Final = 5
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
        self.storage = open_storage(self.url)

    def heads(self, kind: Kind) -> dict[str, str]:
        """Return a token for each thing of a kind, which differs after every change of the thing."""
        entries = ((entry.path.rpartition("/")[2], entry.token) for entry in self.storage.list(kind.heads))
        return {name: token for name, token in entries if kind.id.fullmatch(name)}

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
        entries = self.storage.list(kind.place(thing_id, "journal"))
        segments = [Segment.parse(entry.path.rpartition("/")[2]) for entry in entries]
        return sorted((one for one in segments if one is not None), key=lambda one: (one.start, -one.end))

    def listing(self, kind: Kind, thing_id: str) -> Listing:
        """Return which files a thing has besides its journal."""
        data = self.read(kind.place(thing_id, "files.json"))
        try:
            return {} if data is None else msgspec.json.decode(data, type=Listing)
        except UNDECODABLE as error:
            raise StoreError(f"The list of files of {thing_id} on {self} is damaged: {error}") from error

    def read(self, name: str, start: int = 0) -> bytes | None:
        """Return an object, or its part from `start` on; `None` if there is none."""
        return self.storage.read(name, start)

    def write(self, name: str, data: bytes) -> None:
        """Put an object."""
        self.storage.write(name, data)

    def upload(self, folder: Path, names: list[str], target_folder: str) -> None:
        """Put files of a folder, many at once; those that have vanished meanwhile are skipped."""

        def put(name: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                self.storage.write(f"{target_folder}/{name}", folder / name)

        with _Several() as several:
            several.do(put, [name for name in names if (folder / name).is_file()])

    def download(self, source_folder: str, names: list[str], folder: Path) -> list[str]:
        """Get files into a folder, each whole or not at all; returns those that were there.

        Links that are in the folder, such as those that a train function made here, are not followed.
        """

        def get(name: str) -> bool:
            aside = (folder / name).with_name(f".{Path(name).name[:100]}.{secrets.token_hex(4)}")
            try:
                if not fetch_file(self.storage, f"{source_folder}/{name}", aside):
                    return False
                aside.replace(folder / name)
                return True
            finally:
                aside.unlink(missing_ok=True)

        good = _with_folders(folder, names)
        with _Several() as several:
            return [name for name, is_there in zip(good, several.do(get, good), strict=True) if is_there]

    def delete(self, *names: str) -> None:
        """Remove objects and what lies below them; missing ones are skipped."""
        self.storage.delete(*names)

    def __str__(self) -> str:
        return str(self.storage)


def fetch_file(storage: Storage, path: str, target: Path) -> bool:
    """Copy a file from a storage to this machine, piece by piece; returns whether it was there.

    Raises:
        StoreError: If it is replaced again and again while it is copied.
    """
    for _ in range(_TRIES):
        entry = storage.stat(path)
        if entry is None:
            return False
        with target.open("wb") as file:
            while file.tell() < entry.size:
                piece = storage.read(path, file.tell(), _PIECE_BYTES)
                if not piece:
                    break
                file.write(piece)
            is_whole = file.tell() == entry.size
        if entry.size <= _PIECE_BYTES and is_whole:
            return True  # one request: whichever version it was, it was one
        if is_whole and storage.stat(path) == entry:
            return True
    raise StoreError(f"{path} on {storage} changes while it is copied; wait until it is written, then try again.")


class _Several:
    """Does the same for many names in threads, which end with the block."""

    def __enter__(self) -> _Several:
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="cargobike-files")
        return self

    def do(self, action: Callable[[str], _T], names: list[str]) -> list[_T]:
        """Return what the action returns for each name; the first error ends it."""
        return list(self._pool.map(action, names))

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)


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
