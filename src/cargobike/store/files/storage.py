"""What a storage is: bytes below one address, on a disk, in S3, in HDFS, or anywhere else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A file on a storage; its token differs after every change of the file."""

    path: str
    size: int
    token: str


class Storage(ABC):
    """The files below one address; every other room speaks to storage through these methods.

    Paths are relative to the address, with `/` between names, and never lead out of it. There are no folders, only
    files whose paths begin alike: nothing can be made, renamed or found empty. So something that consists of several
    files becomes visible by its last one, a manifest that is created only if absent.

    Guarantees of every implementation, checked by one contract suite (`cargobike.testing.storages`):

    - A reader sees a file whole, as it was before a write or as it is after it, never a part of it.
    - When `write` or `create` has returned, the bytes survive the end of this process and of the storage's server.
    - Of several processes that `create` the same path at once, on any hosts, exactly one is told `True`.
    - What was written is listed at once.
    - A storage that does not answer is asked again until a deadline; then a `StoreError` names it and what was wanted.
      A retry changes nothing about the above.
    - Errors never show a secret of the address or of the environment.
    """

    url: str
    """The address, without a slash at its end; it may hold credentials, so show `str(storage)` to people instead."""

    @abstractmethod
    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes | None:
        """Return the bytes of a file from `start` on, `length` of them or all; `None` if there is no such file."""

    @abstractmethod
    def write(self, path: str, data: bytes | Path) -> None:
        """Write a file whole, and replace what was there; `data` are its bytes, or a local file that holds them."""

    @abstractmethod
    def create(self, path: str, data: bytes) -> bool:
        """Write a file if there is none; returns whether it was this call that wrote it."""

    @abstractmethod
    def list(self, folder: str = "", *, deep: bool = False) -> Iterator[Entry]:
        """Yield the files in a folder, with `deep` also those in folders below it, in any order."""

    @abstractmethod
    def stat(self, path: str) -> Entry | None:
        """Return size and token of a file; `None` if there is no such file."""

    @abstractmethod
    def delete(self, *paths: str) -> None:
        """Delete files, and everything below a path that names a folder; what is not there is skipped."""

    @abstractmethod
    def arrow(self) -> tuple[Any, str]:
        """Return a file system of `pyarrow.fs`, and the address's path on it, to read large files in place."""
