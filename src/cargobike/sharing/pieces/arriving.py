"""Put a publication together in a folder: pieces in any order, files moved to their places when they are whole.

Their places are in the folder, or on a storage, where all files are whole and verified: a storage takes files as a
whole, so that its readers never see a part of one. What is not whole yet lies in a folder `.arriving-…` below the
folder, with a file `noted` that has a byte for each piece, set after the piece was written: 1, or 2 if it is not
verified yet. So a kill loses no piece that was had. After a kill, or a loss of power, what was noted is verified before
it is believed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import threading
from pathlib import Path
from typing import Final

from cargobike.core.errors import StoreError
from cargobike.sharing.pieces.plan import Plan
from cargobike.sharing.records import canonical
from cargobike.sharing.shapes import Manifest
from cargobike.store.files.storage import Storage

STAGING: Final = ".arriving-"
_NOTED: Final = "noted"


class Arriving:
    """The files of a publication on their way into a folder. `write` may be called from several threads.

    Args:
        folder: Where they go, or where they are put together.
        manifest: What they are.
        storage: Where they go instead, each as soon as it is whole; nothing of it stays in the folder then.

    Raises:
        StoreError: If the folder cannot be written.
    """

    def __init__(self, folder: Path, manifest: Manifest, storage: Storage | None = None) -> None:
        self.folder, self.storage = folder, storage
        self.plan = Plan.of(manifest)
        digest = hashlib.sha256(canonical(manifest)).hexdigest()[:16]
        self.staging = folder / f"{STAGING}{digest}"
        if any(file.path.startswith(STAGING) for file in manifest.files):
            raise StoreError(f"{manifest.reference} has a file whose name begins with {STAGING!r}, and cannot be kept.")
        self._lock = threading.Lock()
        self._left = [len(self.plan.pieces_of(index)) for index in range(len(self.plan.files))]
        try:
            self.staging.mkdir(parents=True, exist_ok=True)
            self._noted = os.open(self.noted, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            os.ftruncate(self._noted, self.plan.count)
        except OSError as error:
            raise StoreError(f"Nothing can be put into {folder}: {error.strerror} ({error.filename}).") from error

    @property
    def place(self) -> str:
        """Where whole files are: a folder, or the address of a storage."""
        return str(self.folder) if self.storage is None else self.storage.url

    @property
    def noted(self) -> Path:
        """The file with a byte for each piece that is there."""
        return self.staging / _NOTED

    def claimed(self) -> list[int]:
        """Return the pieces that an earlier attempt has noted; they are to be verified."""
        return [piece for piece, had in enumerate(os.pread(self._noted, self.plan.count, 0)) if had]

    def write(self, piece: int, data: bytes | bytearray | memoryview) -> int | None:
        """Keep a piece that was verified; return the file that is whole now, if one is.

        Raises:
            StoreError: If the disk is full or broken; what was had stays.
        """
        self._write(piece, data, b"\1")
        return self._count(piece)

    def write_unverified(self, piece: int, data: bytes | bytearray | memoryview) -> None:
        """Put a piece in its place that can be judged only later; it is claimed then, and given to no one before."""
        self._write(piece, data, b"\2")

    def _write(self, piece: int, data: bytes | bytearray | memoryview, note: bytes) -> None:
        spot = self.plan.spot(piece)
        try:
            # Opened for each piece: a publication may have more files than a process may have open.
            fd = os.open(self._staged(spot.file), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            try:
                _write_all(fd, data, spot.offset)
            finally:
                os.close(fd)
            os.pwrite(self._noted, note, piece)
        except OSError as error:
            raise self._cannot(error) from error

    def note(self, piece: int) -> int | None:
        """Count a piece that lies here already and was verified; return the file that is whole now, if one is."""
        os.pwrite(self._noted, b"\1", piece)
        return self._count(piece)

    def _count(self, piece: int) -> int | None:
        index = self.plan.spot(piece).file
        with self._lock:
            self._left[index] -= 1
            return index if self._left[index] == 0 else None

    def drop(self, piece: int) -> None:
        """Take back what was noted of a piece: it is not what it should be."""
        os.pwrite(self._noted, b"\0", piece)

    def read(self, piece: int) -> bytes | None:
        """Return a piece of a file that is not whole, verified or not; `None` if nothing is there."""
        spot = self.plan.spot(piece)
        return _read(self._staged(spot.file), spot.offset, spot.length)

    def is_staged(self, index: int) -> bool:
        """Tell whether a file is being put together, and was not moved to its place."""
        return self._staged(index).exists()

    def read_file(self, index: int, offset: int, length: int) -> bytes | None:
        """Return bytes of a file, wherever it lies now; `None` if they are not there."""
        for path in (self._staged(index), self.folder / self.plan.files[index].path):
            data = _read(path, offset, length)
            if data is not None:
                return data
        found = None if self.storage is None else self.storage.read(self.plan.files[index].path, offset, length)
        return found if found is not None and len(found) == length else None

    def finish_file(self, index: int) -> list[str]:
        """Move a whole file to its place, and copies of it to theirs; return their paths."""
        paths = self.plan.twins[index]
        try:
            if not self._staged(index).exists():
                return paths  # it was moved before this process began
            if self.storage is not None:
                for path in paths:
                    self.storage.write(path, self._staged(index))
                return paths
            fd = os.open(self._staged(index), os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
            for path in paths[1:]:
                temporary = self.staging / f"copy-{index}"
                shutil.copyfile(self._staged(index), temporary)
                self._move(temporary, path)
            self._move(self._staged(index), paths[0])
        except OSError as error:
            raise self._cannot(error) from error
        return paths

    def leave_to_storage(self, index: int) -> None:
        """Keep nothing of a file here any more: it is on the storage, and entered as such."""
        if self.storage is not None:
            self._staged(index).unlink(missing_ok=True)

    def finish(self) -> None:
        """Make files without content, and remove what was needed only on the way."""
        try:
            for path in self.plan.empty:
                if self.storage is not None:
                    self.storage.write(path, b"")
                    continue
                temporary = self.staging / "empty"
                temporary.touch()
                self._move(temporary, path)
            self.close()
            for staging in self.folder.glob(f"{STAGING}*"):
                shutil.rmtree(staging, ignore_errors=True)
            if self.storage is not None:
                shutil.rmtree(self.folder, ignore_errors=True)
        except OSError as error:
            raise self._cannot(error) from error

    def close(self) -> None:
        """Close what is open; may be called twice."""
        with self._lock:
            if self._noted >= 0:
                os.close(self._noted)
            self._noted = -1

    def room_lacking(self, missing: int) -> int:
        """Return how many bytes the disk has too few for what is missing."""
        usage = shutil.disk_usage(self.folder)
        return max(0, missing - usage.free)

    def _staged(self, index: int) -> Path:
        return self.staging / f"{index:06d}"

    def _move(self, staged: Path, path: str) -> None:
        """Move a file to its place; a link on the way out of the folder is refused."""
        target = self.folder
        *folders, name = path.split("/")
        for part in folders:
            target /= part
            target.mkdir(exist_ok=True)
            if target.is_symlink():
                raise OSError(errno.ELOOP, "a link stands where a folder of the publication goes", str(target))
        staged.replace(target / name)

    def _cannot(self, error: OSError) -> StoreError:
        if isinstance(error, StoreError):
            return error
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return StoreError(
                f"The disk of {self.folder} is full. What has arrived is kept: make room, and get it again to go on.",
            )
        return StoreError(f"{self.folder} cannot be written: {error.strerror} ({error.filename}).")


def _read(path: Path, offset: int, length: int) -> bytes | None:
    """Return bytes of a file; `None` if they are not there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.pread(fd, length, offset)
    finally:
        os.close(fd)
    return data if len(data) == length else None


def _write_all(fd: int, data: bytes | bytearray | memoryview, offset: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(fd, view, offset)
        view, offset = view[count:], offset + count
