"""The project's files with the paths and folders of HDFS, over any storage: a disk, S3, HDFS.

Storages have no folders, only files whose paths begin alike. A folder that was made, or emptied, therefore holds a
hidden file, which nothing here lists.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import stat as modes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cargobike import project
from cargobike.core.errors import StoreError
from cargobike.store.files.shared import shared_url
from cargobike.store.files.storage import Entry, Storage
from cargobike.store.files.storages import storage_of
from cargobike.store.files.streams import StorageReader, StorageWriter

_FOLDER: Final = ".cargobike-folder"
_PIECE: Final = 4 << 20
_PROJECTS: Final = re.compile(r"(?:(?:hdfs|hopsfs)://[^/]*)?/Projects/([^/]+)(?:/(.*))?", re.DOTALL)


class MissingPathError(StoreError, FileNotFoundError):
    """There is no such file or folder in the project."""


@dataclass(frozen=True, slots=True)
class Item:
    """A file or folder: its path in the project, and the size of a file."""

    path: str
    size: int
    is_folder: bool


class ProjectFiles:
    """The files of the project in use."""

    def __init__(self) -> None:
        place = project.prepare()
        self.storage: Storage = storage_of(place)
        self.root = (shared_url(place) or str(place.root)).rstrip("/")
        self.is_local = not shared_url(place)

    def inner(self, path: str | bytes | os.PathLike[str], name: str | None = None) -> str:
        """Return a path in the project for one that a script uses: relative, full, or below `/Projects/<name>`.

        Raises:
            StoreError: If it names another project or another storage.
        """
        text = os.fsdecode(path)
        if text == self.root or text.startswith(f"{self.root}/"):
            text = text[len(self.root) :]
        elif match := _PROJECTS.fullmatch(text):
            self._check_name(match[1])
            text = match[2] or ""
        elif "://" in text:
            raise StoreError(
                f"{text} is not in the project {self.root}: give a path in it, such as 'Resources/data.csv', "
                f"or one that begins with hdfs.project_path(). cargobike.storage opens other storages."
            )
        if name is not None:
            self._check_name(name)
        parts = [part for part in text.split("/") if part not in {"", "."}]
        if ".." in parts:
            raise StoreError(f"{text!r} leads out of the project; write a path without '..'.")
        return "/".join(parts)

    def full(self, inner: str) -> str:
        """Return the full path of one in the project."""
        return f"{self.root}/{inner}" if inner else self.root

    def local(self, inner: str) -> Path | None:
        """Return where it lies on this machine's disk, `None` if the project does not."""
        return Path(self.root, inner) if self.is_local else None

    def find(self, path: str | bytes | os.PathLike[str], name: str | None = None) -> Item:
        """Return what lies at a path.

        Raises:
            MissingPathError: If there is nothing.
        """
        inner = self.inner(path, name)
        item = self.look(inner)
        if item is None:
            raise MissingPathError(f"There is no file or folder {inner!r} in the project {self.root}.")
        return item

    def look(self, inner: str) -> Item | None:
        """Return what lies at a path in the project, `None` if there is nothing."""
        if not inner:
            return Item("", 0, is_folder=True)
        if (entry := self.storage.stat(inner)) is not None:
            return Item(inner, entry.size, is_folder=False)
        is_folder = next(iter(self.storage.list(inner, deep=True)), None) is not None
        return Item(inner, 0, is_folder=True) if is_folder else None

    def files(self, folder: str) -> list[Entry]:
        """Return all files below a folder."""
        return sorted(entry for entry in self.storage.list(folder, deep=True) if not _is_mark(entry.path))

    def list(self, item: Item, *, recursive: bool = False) -> list[Item]:
        """Return what is in a folder, sorted by path; a file is listed as itself."""
        if not item.is_folder:
            return [item]
        items: dict[str, Item] = {}
        start = f"{item.path}/" if item.path else ""
        for entry in self.storage.list(item.path, deep=True):
            names = entry.path[len(start) :].split("/")
            for depth in range(1, len(names) if recursive else min(2, len(names))):
                inner = start + "/".join(names[:depth])
                items[inner] = Item(inner, 0, is_folder=True)
            if not _is_mark(entry.path) and (recursive or len(names) == 1):
                items[entry.path] = Item(entry.path, entry.size, is_folder=False)
        return [items[path] for path in sorted(items)]

    def make_folder(self, inner: str) -> None:
        """Make a folder; nothing happens if it is there.

        Raises:
            StoreError: If a file lies there.
        """
        item = self.look(inner)
        if item is not None and not item.is_folder:
            raise StoreError(f"{inner!r} is a file in the project {self.root}; choose another name for the folder.")
        if item is None:
            self.storage.create(f"{inner}/{_FOLDER}", b"")

    def remove(self, item: Item) -> None:
        """Delete a file, or a folder with everything in it; the folder that it lay in stays.

        Raises:
            StoreError: If it is the project itself.
        """
        if not item.path:
            raise StoreError(f"The project {self.root} is not deleted as a whole; delete what is in it.")
        parent = item.path.rpartition("/")[0]
        self.storage.delete(item.path)
        if parent and self.look(parent) is None:
            self.make_folder(parent)

    def copy(self, source: Item, target: str) -> None:
        """Copy a file, or a folder with everything in it, to a path."""
        if source.is_folder and (target == source.path or target.startswith(f"{source.path}/")):
            raise StoreError(f"{source.path!r} cannot be copied or moved into itself, to {target!r}.")
        if not source.is_folder:
            self._copy_file(source.path, target)
            return
        entries = list(self.storage.list(source.path, deep=True))
        for entry in entries:
            self._copy_file(entry.path, f"{target}{entry.path[len(source.path) :]}")

    def _copy_file(self, source: str, target: str) -> None:
        with self.open_read(source) as reader, self.open_write(target) as writer:
            shutil.copyfileobj(reader, writer, _PIECE)

    def upload(self, source: Path, target: str) -> None:
        """Write a local file or folder to a path."""
        if not source.is_dir():
            self.storage.write(target, source)
            return
        self.make_folder(target)
        for path in sorted(source.rglob("*")):
            inner = f"{target}/{path.relative_to(source).as_posix()}"
            if path.is_dir():
                self.make_folder(inner)
            else:
                self.storage.write(inner, path)

    def download(self, item: Item, target: Path) -> None:
        """Write a file or folder to a local path, which appears when it is complete."""
        aside = target.with_name(f".{target.name}.{os.getpid()}.new")
        try:
            for inner, path in self._pairs(item, aside):
                path.parent.mkdir(parents=True, exist_ok=True)
                with self.open_read(inner) as reader, path.open("wb") as file:
                    shutil.copyfileobj(reader, file, _PIECE)
            if item.is_folder:
                aside.mkdir(exist_ok=True)
            _remove_local(target)
            aside.rename(target)
        finally:
            _remove_local(aside)

    def _pairs(self, item: Item, target: Path) -> Iterator[tuple[str, Path]]:
        if not item.is_folder:
            yield item.path, target
        else:
            for entry in self.files(item.path):
                yield entry.path, target / entry.path[len(item.path) + 1 :]

    def open_read(self, inner: str) -> io.BufferedReader:
        """Open a file for reading: range by range, never as a whole.

        Raises:
            MissingPathError: If there is none.
        """
        entry = self.storage.stat(inner)
        if entry is None:
            raise MissingPathError(f"There is no file {inner!r} in the project {self.root}.")
        return io.BufferedReader(StorageReader(self.storage, entry), _PIECE)

    def open_write(self, inner: str) -> io.BufferedWriter:
        """Open a file for writing; it appears whole when it is closed."""
        return io.BufferedWriter(StorageWriter(self.storage, inner))

    def mode_of(self, item: Item) -> int:
        """Return the mode of a file or folder, as the disk has it or as everything has it elsewhere."""
        path = self.local(item.path)
        if path is not None:
            return path.stat().st_mode
        return modes.S_IFDIR | 0o755 if item.is_folder else modes.S_IFREG | 0o644

    def changed_at(self, item: Item) -> float:
        """Return when a file was changed, in seconds since 1970; 0 where the storage does not say."""
        path = self.local(item.path)
        if path is not None:
            return path.stat().st_mtime
        files, root = self.storage.arrow()
        info: Any = files.get_file_info("/".join(filter(None, [root, item.path])))
        return (info.mtime_ns or 0) / 1e9

    def _check_name(self, name: str) -> None:
        if name not in {"", project_name()}:
            raise StoreError(
                f"The project {name!r} was asked for; the one in use is {project_name()!r} ({self.root}). Set "
                f"HOPSWORKS_PROJECT_NAME={name} if it is the same one, or choose the other with project.use(…)."
            )


def project_name() -> str:
    """Return what the project is called: as Hopsworks set it, else by where it lies."""
    if name := os.environ.get("HOPSWORKS_PROJECT_NAME"):
        return name
    user = os.environ.get("HADOOP_USER_NAME", "")
    if "__" in user:
        return user.partition("__")[0]
    place = project.current()
    path = Path((shared_url(place) or str(place.root)).rstrip("/"))
    return path.parent.name if path.name == ".cargobike" else path.name


def _is_mark(path: str) -> bool:
    return path.rpartition("/")[2] == _FOLDER


def _remove_local(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
