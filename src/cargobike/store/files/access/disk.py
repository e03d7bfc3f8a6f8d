"""Storage in a folder of this machine, or of a disk that is mounted here."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

from cargobike.store.files.access.access import (
    PIECE_BYTES,
    STALE_S,
    Access,
    Claim,
    Judgement,
    is_temporary,
    temporary_name,
)
from cargobike.store.files.storage import Entry

_TRIES = 5
_ABSENT = {errno.ENOENT, errno.ENOTDIR}
_MAY_PASS = {errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EINTR, errno.EBUSY, errno.EHOSTDOWN, errno.ENETDOWN}
_ADVICE = {
    errno.ENOSPC: "The disk is full: make room, or choose another place.",
    errno.EDQUOT: "Your quota is used up: make room, or choose another place.",
    errno.EFBIG: "The file is larger than this process may write (ulimit -f) or the disk can hold.",
    errno.EACCES: "Choose a folder that you may read and write.",
    errno.EPERM: "Choose a folder that you may read and write, on a file system that has hard links.",
    errno.EROFS: "It is mounted read-only: choose another place.",
    errno.ENOTDIR: "A file lies where a folder is needed: move it away, or choose another place.",
    errno.EISDIR: "A folder lies where a file is needed: move it away, or choose another place.",
}


class DiskAccess(Access):
    """Files below a folder: written beside their place, brought to the disk, then renamed or linked into place."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._below = f"{root}{os.sep}"  # joining paths costs more than looking whether a file is there

    def read(self, path: str, start: int, length: int | None) -> bytes | None:
        """Return bytes of a file; a pipe or a device in its place is refused, not waited for."""
        try:
            fd = os.open(self._below + path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            os.close(fd)
            if stat.S_ISDIR(mode):
                return None
            raise OSError(errno.EINVAL, "it is not a plain file")
        with open(fd, "rb") as file:
            file.seek(start)
            return file.read(-1 if length is None else length)

    def write(self, path: str, data: bytes | Path) -> None:
        """Write beside the place, then rename: readers see the old file or the new one."""
        target = self._root / path
        with self._beside(path, data, token_hex(8)) as temporary:
            os.replace(temporary, target)
            _sync_folder(target.parent)

    def create(self, path: str, data: bytes, claim: Claim) -> bool:
        """Write beside the place, then link: of several processes the kernel lets one succeed."""
        target = self._root / path
        with self._beside(path, data, claim.token) as temporary:
            try:
                os.link(temporary, target)
            except FileExistsError:
                # A network disk may have made the link and lost the answer.
                return os.stat(temporary).st_nlink > 1
            _sync_folder(target.parent)
            return True

    def list(self, folder: str, *, deep: bool) -> list[Entry]:
        """Return the files in a folder; links to files count, what is no file does not."""
        entries: list[Entry] = []
        pending = [folder]
        while pending:
            inner = pending.pop()
            try:
                children = list(os.scandir(self._below + inner))
            except OSError as error:
                if error.errno in _ABSENT:
                    continue
                raise
            for child in children:
                path = f"{inner}/{child.name}" if inner else child.name
                if is_temporary(path):
                    _sweep(child)
                elif deep and child.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif _is_text(child.name) and (entry := self.stat(path)) is not None:
                    entries.append(entry)
        return entries

    def stat(self, path: str) -> Entry | None:
        """Return size and token of a file."""
        try:
            status = os.stat(self._below + path)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise
        if not stat.S_ISREG(status.st_mode):
            return None
        return Entry(path, status.st_size, f"{status.st_mtime_ns}-{status.st_ino}-{status.st_size}")

    def delete(self, path: str) -> None:
        """Delete a file or a folder, and the folders above that are empty then: here there are no empty folders."""
        target = self._root / path
        try:
            if target.is_dir() and not target.is_symlink():
                _remove_folder(target)
            else:
                target.unlink()
        except OSError as error:
            if error.errno not in _ABSENT:
                raise
        for parent in target.parents:
            if parent == self._root or self._root not in parent.parents:
                break
            try:
                parent.rmdir()
            except OSError:
                break

    def judge(self, error: Exception) -> Judgement:
        """Try again only what network disks say while their server is away."""
        number = error.errno if isinstance(error, OSError) else None
        return Judgement(number in _MAY_PASS, _ADVICE.get(number or 0, ""))

    def arrow(self) -> tuple[Any, str]:
        """Return pyarrow's own file system."""
        from pyarrow.fs import LocalFileSystem  # noqa: PLC0415 - optional, and only for tables

        return LocalFileSystem(), str(self._root)

    @contextlib.contextmanager
    def _beside(self, path: str, data: bytes | Path, token: str) -> Iterator[Path]:
        """Hold the data in a file beside its place, safe on the disk, for the length of a `with` block."""
        temporary = self._root / temporary_name(path, token)
        source = data.open("rb") if isinstance(data, Path) else None
        try:
            for attempt in range(3):
                # A `delete` elsewhere may remove the folder between the two calls.
                temporary.parent.mkdir(parents=True, exist_ok=True)
                try:
                    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
                    break
                except FileNotFoundError:
                    if attempt == 2:
                        raise
            with open(fd, "wb") as file:
                if source is not None:
                    shutil.copyfileobj(source, file, PIECE_BYTES)
                elif isinstance(data, bytes):
                    file.write(data)
                file.flush()
                now = time.time_ns()  # finer than the clock of most file systems: tokens are made of it
                os.utime(fd, ns=(now, now))
                os.fsync(fd)
            yield temporary
        finally:
            if source is not None:
                source.close()
            with contextlib.suppress(OSError):
                temporary.unlink()


def _remove_folder(folder: Path) -> None:
    """Remove a folder, even if another process does the same or still writes to it."""
    for _ in range(_TRIES):
        try:
            shutil.rmtree(folder)
            return
        except FileNotFoundError:
            if not folder.exists():
                return
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
    shutil.rmtree(folder)


def _sync_folder(folder: Path) -> None:
    """Bring a new name to the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network disks cannot, and need not
            raise
    finally:
        os.close(fd)


def _sweep(child: os.DirEntry[str]) -> None:
    """Remove what a process was writing when it was killed, long ago."""
    with contextlib.suppress(OSError):
        if time.time() - child.stat(follow_symlinks=False).st_mtime > STALE_S:
            os.unlink(child.path)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
