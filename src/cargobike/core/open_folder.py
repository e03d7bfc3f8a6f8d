"""A folder held open: names are looked up in it one by one, and no link in it is ever followed.

Train functions write where others read. A path that was checked as text can lead elsewhere by the time it is used,
because one of its folders has become a link; a folder that is open cannot.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_NAMES = 100
"""How deep a path may lead: functions that walk down hold each folder on their way open."""
MOST_CHARACTERS = 2000

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class LinkInTheWayError(OSError):
    """A path leads through a link, or names one."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something below a folder that is not a folder itself.

    Attributes:
        names: The names on the way to it.
        status: What the file system says about it.
        link: Where it leads, if it is a link.
        folder: The folder that it is in; open until the next one is asked for.
    """

    names: tuple[str, ...]
    status: os.stat_result
    link: str
    folder: OpenFolder

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file."""
        return stat.S_ISREG(self.status.st_mode)


class OpenFolder:
    """A folder, held open until it is closed.

    Args:
        fd: Its descriptor, which belongs to this object from now on.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def at(cls, path: Path) -> OpenFolder:
        """Open a folder at a path that is trusted: links on the way to it count."""
        return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def __enter__(self) -> OpenFolder:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def below(self, names: Sequence[str], *, make: bool = False) -> OpenFolder:
        """Open a folder below this one, making it and those on the way if wanted.

        Raises:
            LinkInTheWayError: If one of them is a link.
            OSError: If there is no such folder.
        """
        fd = os.dup(self.fd)
        try:
            for name in names:
                check_name(name)
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, dir_fd=fd)
                inner = _open(name, _FOLDER, fd)
                os.close(fd)
                fd = inner
        except BaseException:
            os.close(fd)
            raise
        return OpenFolder(fd)

    def open_file(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open a plain file in this folder; returns its descriptor.

        Raises:
            LinkInTheWayError: If it is a link.
            OSError: If it cannot be opened, or is no plain file.
        """
        check_name(name)
        fd = _open(name, flags | _FILE, self.fd)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "it is not a plain file", name)
        return fd

    def status(self, name: str) -> os.stat_result | None:
        """Return what the file system says about a name in this folder, `None` if there is nothing."""
        check_name(name)
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def has_folder(self, name: str) -> bool:
        """Tell whether there is a folder of that name, rather than a link to one."""
        status = self.status(name)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def walk(self) -> Iterator[Found]:
        """Yield everything below this folder that is not a folder, links included; what vanishes meanwhile is not."""
        for parent, folders, names, fd in os.fwalk(dir_fd=self.fd, follow_symlinks=False):
            way = tuple(parent.split("/")[1:])
            folder = OpenFolder(fd)
            for name in sorted([*names, *folders]):
                status = folder.status(name)
                if status is None or stat.S_ISDIR(status.st_mode):
                    continue
                link = ""
                if stat.S_ISLNK(status.st_mode):
                    try:
                        link = os.readlink(name, dir_fd=fd)
                    except OSError:
                        continue
                yield Found((*way, name), status, link, folder)

    def make_link(self, name: str, link: str) -> None:
        """Make a link, in the place of a file or another link."""
        self.remove_file(name)
        os.symlink(link, name, dir_fd=self.fd)

    def remove_file(self, name: str) -> None:
        """Remove a file or a link, if there is one."""
        check_name(name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

    def remove_folder(self, name: str) -> None:
        """Remove a folder and what is in it, as far as that is possible."""
        check_name(name)
        shutil.rmtree(name, ignore_errors=True, dir_fd=self.fd)

    def rename(self, name: str, new_name: str) -> None:
        """Give something in this folder another name."""
        check_name(name)
        check_name(new_name)
        os.rename(name, new_name, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def force(self) -> None:
        """Force this folder, everything in it and below it to disk."""
        for _, _, names, fd in os.fwalk(dir_fd=self.fd, follow_symlinks=False):
            folder = OpenFolder(fd)
            for name in names:
                with contextlib.suppress(LinkInTheWayError):
                    file = folder.open_file(name)
                    try:
                        os.fsync(file)
                    finally:
                        os.close(file)
            os.fsync(fd)


def names_in(path: str) -> tuple[str, ...]:
    """Return the names in a path that leads down from where it begins.

    Raises:
        ValueError: If it is absolute, goes up, is too long or too deep, or holds what no name may hold.
    """
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if path.startswith("/") or ".." in names or "\0" in path:
        raise ValueError(f"{path[:200]!r} is not a path that leads down from here")
    if len(names) > MOST_NAMES or len(os.fsencode(path)) > MOST_CHARACTERS:
        raise ValueError(f"{path[:200]!r}… is too long: {MOST_CHARACTERS} bytes and {MOST_NAMES} names are allowed")
    return names


def leads_inside(link: str, depth: int) -> bool:
    """Tell whether a link leads to a place in the folder that it lies `depth` folders below.

    It goes up first, at most to that folder, and then only down. So it does whatever the names on its way are, as long
    as all links there pass this test.

    Example:
        >>> leads_inside("../best/model.pt", 1), leads_inside("../model.pt", 0), leads_inside("/etc/passwd", 5)
        (True, False, False)
    """
    names = link.split("/") if link != "." else []
    ups = next((index for index, name in enumerate(names) if name != ".."), len(names))
    return ups <= depth and not any(name in ("", ".", "..") or "\0" in name for name in names[ups:])


def check_name(name: str) -> None:
    """Raise `ValueError` unless a text can be the name of something in a folder."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{name[:200]!r} is not a name")


def _open(name: str, flags: int, folder_fd: int) -> int:
    try:
        return os.open(name, flags, 0o666, dir_fd=folder_fd)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(name, folder_fd):
            raise LinkInTheWayError(errno.ELOOP, "it is a link, which is not followed", name) from None
        raise


def _is_link(name: str, folder_fd: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode)
    except OSError:
        return False
