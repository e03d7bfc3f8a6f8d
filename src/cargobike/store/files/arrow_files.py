"""Any storage as a file system of pyarrow's, for those that pyarrow has no client for.

Every read goes through `Storage.read`: with its deadline, its errors, and a connection of this process's own.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import fs as arrow

from cargobike.store.files.storage import Entry, Storage
from cargobike.store.files.streams import StorageReader, StorageWriter


def arrow_files(storage: Storage) -> arrow.FileSystem:
    """Return a file system of pyarrow's whose paths are those of a storage."""
    return arrow.PyFileSystem(_Handler(storage))


class _Handler(arrow.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handler) and other.storage.url == self.storage.url

    def __ne__(self, other: object) -> bool:
        return not self == other

    def get_type_name(self) -> str:
        return "cargobike"

    def normalize_path(self, path: str) -> str:
        return path.strip("/")

    def get_file_info(self, paths: list[str]) -> list[arrow.FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> arrow.FileInfo:
        name = path.strip("/")
        if not name:
            return arrow.FileInfo(path, arrow.FileType.Directory)
        entry = self.storage.stat(name)
        if entry is not None:
            return arrow.FileInfo(path, arrow.FileType.File, size=entry.size)
        is_folder = next(self.storage.list(name, deep=True), None) is not None
        return arrow.FileInfo(path, arrow.FileType.Directory if is_folder else arrow.FileType.NotFound)

    def get_file_info_selector(self, selector: arrow.FileSelector) -> list[arrow.FileInfo]:
        folder = selector.base_dir.strip("/")
        entries = list(self.storage.list(folder, deep=True))
        if not entries and folder and not selector.allow_not_found:
            raise FileNotFoundError(f"There is nothing below {folder} on {self.storage}.")
        infos = [
            arrow.FileInfo(entry.path, arrow.FileType.File, size=entry.size)
            for entry in entries
            if selector.recursive or "/" not in _inner(entry, folder)
        ]
        folders = {
            "/".join(filter(None, [folder, *names[:depth]]))
            for names in (_inner(entry, folder).split("/") for entry in entries)
            for depth in range(1, len(names) if selector.recursive else min(2, len(names)))
        }
        return infos + [arrow.FileInfo(name, arrow.FileType.Directory) for name in sorted(folders)]

    def open_input_stream(self, path: str) -> pa.PythonFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.PythonFile:
        name = path.strip("/")
        entry = self.storage.stat(name)
        if entry is None:
            raise FileNotFoundError(f"There is no file {name} on {self.storage}.")
        return pa.PythonFile(StorageReader(self.storage, entry), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> pa.PythonFile:
        return pa.PythonFile(StorageWriter(self.storage, path.strip("/")), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> pa.PythonFile:
        raise NotImplementedError(f"Files on {self.storage} cannot be appended to; write them whole.")

    def create_dir(self, path: str, recursive: bool) -> None:
        pass  # there are no folders

    def delete_dir(self, path: str) -> None:
        self.storage.delete(path.strip("/"))

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self.delete_dir(path)

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError(f"{self.storage} is not deleted as a whole; delete what is in it.")

    def delete_file(self, path: str) -> None:
        self.storage.delete(path.strip("/"))

    def move(self, src: str, dest: str) -> None:
        raise NotImplementedError(f"Files on {self.storage} cannot be renamed; write them where they belong.")

    def copy_file(self, src: str, dest: str) -> None:
        data = self.storage.read(src.strip("/"))
        if data is None:
            raise FileNotFoundError(f"There is no file {src} on {self.storage}.")
        self.storage.write(dest.strip("/"), data)


def _inner(entry: Entry, folder: str) -> str:
    return entry.path[len(folder) + 1 :] if folder else entry.path
