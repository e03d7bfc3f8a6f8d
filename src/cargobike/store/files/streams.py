"""Files on a storage as files that any library reads and writes: range by range, and whole."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

from cargobike.store.files.storage import Entry, Storage


class StorageReader(io.RawIOBase):
    """A file that is read range by range; it can be sought in."""

    def __init__(self, storage: Storage, entry: Entry) -> None:
        self._storage = storage
        self._entry = entry
        self._position = 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it can be sought in."""
        return True

    def size(self) -> int:
        """Return how many bytes the file has."""
        return self._entry.size

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position, and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._entry.size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes, `size` of them or all that are left."""
        rest = max(0, self._entry.size - self._position)
        wanted = rest if size is None or size < 0 else min(size, rest)
        if not wanted:
            return b""
        data = self._storage.read(self._entry.path, self._position, wanted)
        if data is None or len(data) != wanted:
            raise OSError(f"{self._entry.path} on {self._storage} was replaced or deleted while it was read.")
        self._position += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes, and return how many there were."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)


class StorageWriter(io.RawIOBase):
    """A file that is collected on this machine, and written to the storage whole when it is closed."""

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._file = tempfile.NamedTemporaryFile(prefix="cargobike-")  # noqa: SIM115 - closed by `close`

    def writable(self) -> bool:
        """Tell that it can be written."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._file.tell()

    def write(self, data: Any) -> int:
        """Collect bytes."""
        return self._file.write(data)

    def __del__(self) -> None:
        self._file.close()  # a file that was not closed was given up: nothing of it is published

    def close(self) -> None:
        """Write what was collected to the storage."""
        if self.closed:
            return
        try:
            self._file.flush()
            self._storage.write(self._path, Path(self._file.name))
        finally:
            self._file.close()
            super().close()
