"""Storage that fsspec knows in its own way: memory, Google's and Azure's object storage, and many more.

Its guarantees are those of the file system below: in object storage a file is replaced at once; on one that writes in
place (sftp, smb) readers may see a part of it.
"""

from __future__ import annotations

import os
import threading
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from cargobike.store.files.access.access import Access, Claim, Judgement
from cargobike.store.files.storage import Entry

_MARKS: Final = ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "updated", "mtime", "modified", "created")
_FLAT: Final = {"memory", "gs", "gcs", "s3", "s3a", "abfs", "abfss", "az", "oss", "oci"}
_one_at_a_time = threading.Lock()


def _renew_lock() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)  # a thread that is not in the copy may have held it


class FsspecAccess(Access):
    """Files of one of fsspec's file systems, below a path."""

    def __init__(self, fs: Any, root: str) -> None:
        self._fs = fs
        self._root = root.rstrip("/")
        protocol = fs.protocol
        names = {protocol} if isinstance(protocol, str) else set(protocol)
        self._has_folders = not names & _FLAT or "memory" in names

    def read(self, path: str, start: int, length: int | None) -> bytes | None:
        """Return bytes of a file."""
        if length == 0:
            return None if self.stat(path) is None else b""
        end = None if length is None else start + length
        try:
            return bytes(self._fs.cat_file(self._full(path), start=start or None, end=end))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None

    def write(self, path: str, data: bytes | Path) -> None:
        """Write a file whole."""
        self._make_folders(path)
        if isinstance(data, Path):
            self._fs.put_file(str(data), self._full(path))
        else:
            self._fs.pipe_file(self._full(path), data)

    def create(self, path: str, data: bytes, claim: Claim) -> bool:
        """Write a file if there is none, with fsspec's word for that."""
        full, was_asked = self._full(path), claim.was_asked
        self._make_folders(path)
        with _one_at_a_time:
            self._fs.invalidate_cache()
            try:
                claim.was_asked = True
                self._fs.pipe_file(full, data, mode="create")
            except FileExistsError:
                return was_asked and self.read(path, 0, None) == data
        return True

    def list(self, folder: str, *, deep: bool) -> list[Entry]:
        """Return the files in a folder."""
        full = self._full(folder)
        self._fs.invalidate_cache()
        try:
            items = self._fs.find(full, detail=True).values() if deep else self._fs.ls(full, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [
            self._entry(item)
            for item in items
            if item["type"] == "file" and str(item["name"]).rstrip("/") != full.rstrip("/")
        ]

    def stat(self, path: str) -> Entry | None:
        """Return size and token of a file."""
        self._fs.invalidate_cache()
        try:
            item = self._fs.info(self._full(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Entry(path, item["size"], _token(item)) if item["type"] == "file" else None

    def delete(self, path: str) -> None:
        """Delete a file, or everything below a folder."""
        self._fs.invalidate_cache()
        full = self._full(path)
        try:
            is_folder = self._fs.info(full)["type"] != "file"
            # Names go through `rm` as patterns unless each is given as it is.
            for name in sorted(self._fs.find(full)) if is_folder else [full]:
                try:
                    self._fs.rm_file(name)
                except FileNotFoundError:
                    continue
            if is_folder and self._has_folders:
                self._fs.rm(full, recursive=True)
        except (FileNotFoundError, NotADirectoryError):
            return

    def judge(self, error: Exception) -> Judgement:
        """Try again what has to do with connections and time."""
        may_pass = isinstance(error, ConnectionError | TimeoutError | EOFError) or type(error).__module__.startswith(
            ("aiohttp", "asyncio", "urllib3", "requests")
        )
        return Judgement(may_pass, "Check the network and the credentials." if may_pass else "")

    def _make_folders(self, path: str) -> None:
        if self._has_folders:
            self._fs.makedirs(self._full(path).rpartition("/")[0], exist_ok=True)

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _entry(self, item: dict[str, Any]) -> Entry:
        name, root = str(item["name"]).lstrip("/"), self._root.lstrip("/")
        path = name.removeprefix(f"{root}/") if root else name
        return Entry(path, item["size"] or 0, _token(item))


def _token(item: dict[str, Any]) -> str:
    marks = (item[mark] for mark in (*_MARKS, "size") if item.get(mark) is not None)
    # One file system has times as numbers in its listings and as dates elsewhere.
    return "-".join(str(mark.timestamp() if isinstance(mark, datetime) else mark) for mark in marks)
