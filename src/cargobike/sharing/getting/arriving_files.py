"""The files of a publication as a file system of Arrow while they arrive: a read waits for what it needs.

So whatever reads Parquet can begin at once: footers and row groups that are asked for come before everything else.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.fs as pafs


class Readable(Protocol):
    """What arrives."""

    def read(self, path: str, start: int, length: int) -> bytes:
        """Return bytes of a file; waits until they are here."""

    def size_of(self, path: str) -> int:
        """Return the bytes that a file will have."""


class ArrivingFile(io.RawIOBase):
    """One file; reading waits for what is read."""

    def __init__(self, source: Readable, path: str) -> None:
        super().__init__()
        self._source, self._path = source, path
        self._size, self._position = source.size_of(path), 0

    def readable(self) -> bool:
        """Return true: it can be read."""
        return True

    def seekable(self) -> bool:
        """Return true: any part can be read."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def size(self) -> int:
        """Return the bytes that it will have."""
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes; waits until they are here."""
        left = max(0, self._size - self._position)
        length = left if size is None or size < 0 else min(size, left)
        data = self._source.read(self._path, self._position, length)
        self._position += len(data)
        return data


class ArrivingFiles(pafs.FileSystemHandler):  # type: ignore[misc] # pyarrow has no types
    """The files of what arrives, to be read only."""

    def __init__(self, source: Readable, paths: Sequence[str]) -> None:
        self._source, self._paths = source, set(paths)

    def get_type_name(self) -> str:
        """Return what this is."""
        return "cargobike-arriving"

    def get_file_info(self, paths: Sequence[str]) -> list[Any]:
        """Return sizes; what arrives never changes."""
        return [
            pafs.FileInfo(path, pafs.FileType.File, size=self._source.size_of(path), mtime_ns=1)
            if path in self._paths
            else pafs.FileInfo(path, pafs.FileType.NotFound)
            for path in paths
        ]

    def open_input_file(self, path: str) -> Any:
        """Open a file at any position."""
        return pa.PythonFile(ArrivingFile(self._source, path), mode="r")

    def open_input_stream(self, path: str) -> Any:
        """Open a file from its beginning."""
        return self.open_input_file(path)

    def normalize_path(self, path: str) -> str:
        """Return the path as it is."""
        return path

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        """Return the files; there are no folders."""
        return self.get_file_info(sorted(path for path in self._paths if path.startswith(selector.base_dir)))

    def create_dir(self, path: str, recursive: bool) -> None:
        """Refuse."""
        raise _read_only(path)

    def delete_dir(self, path: str) -> None:
        """Refuse."""
        raise _read_only(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Refuse."""
        raise _read_only(path)

    def delete_root_dir_contents(self) -> None:
        """Refuse."""
        raise _read_only("")

    def delete_file(self, path: str) -> None:
        """Refuse."""
        raise _read_only(path)

    def move(self, src: str, dest: str) -> None:
        """Refuse."""
        raise _read_only(f"{src} to {dest}")

    def copy_file(self, src: str, dest: str) -> None:
        """Refuse."""
        raise _read_only(f"{src} to {dest}")

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        """Refuse."""
        raise _read_only(path)

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        """Refuse."""
        raise _read_only(path)


def as_file_system(source: Readable, paths: Sequence[str]) -> Any:
    """Return what arrives as a file system of `pyarrow.fs`."""
    return pafs.PyFileSystem(ArrivingFiles(source, paths))


def _read_only(path: str) -> PermissionError:
    return PermissionError(f"What arrives cannot be changed: {path}")
