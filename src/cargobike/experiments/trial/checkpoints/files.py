"""Files on their way into a checkpoint: written with a checksum, or copied from elsewhere."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

from cargobike.core.errors import InvalidInputError

Kind = Literal["bytes", "file", "folder", "torch", "pickle", "sharded"]

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """One checkpoint."""

    step: int
    path: Path
    size_bytes: int
    metric: float | None = None


@dataclass(slots=True)
class StoredState:
    """The files that were written; `entry` is the file or folder to read, all paths are relative to the checkpoint."""

    kind: Kind
    entry: str
    sizes: dict[str, int] = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)


class WritesItself(Protocol):
    """A state that knows how it is written."""

    def write_into(self, folder: Path) -> StoredState:
        """Write it into an empty folder."""
        ...


class HashingFile:
    """A new file that learns its size and checksum while it is written."""

    def __init__(self, stored: StoredState, folder: Path, name: str) -> None:
        self._stored, self._name = stored, name
        self._file = (folder / name).open("xb")
        self._digest = hashlib.sha256()
        self._size = 0
        self._failure: OSError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._failure is not None and error is not self._failure:
            # Libraries that write through us answer a full disk with errors about their own formats.
            with contextlib.suppress(OSError):
                self._file.close()
            raise self._failure
        self._file.close()
        self._stored.sizes[self._name] = self._size
        self._stored.sha256[self._name] = self._digest.hexdigest()

    def write(self, data: bytes | memoryview) -> int:
        """Append data and return how many bytes that were."""
        self._digest.update(data)
        try:
            written = self._file.write(data)
        except OSError as error:
            self._failure = error
            raise
        self._size += written
        return written

    def flush(self) -> None:
        """Hand what was written so far to the operating system."""
        self._file.flush()


def copy_path(source: Path, folder: Path) -> StoredState:
    """Copy the contents of a file or folder into an empty folder; permissions and times are not kept.

    Raises:
        InvalidInputError: If it does not exist, or holds what a checkpoint cannot keep: links that lead out of
            it, sockets, pipes, devices, names that are not text.
    """
    target = Path(os.path.realpath(source))
    if not target.name or not (target.is_file() or target.is_dir()):
        raise InvalidInputError(
            f"{source} cannot be saved as a checkpoint: it is not an existing file or folder. "
            "Write it first, or save the object itself."
        )
    if target.is_file():
        stored = StoredState("file", f"files/{target.name}")
        mistakes = _name_mistakes(target.name, target.name)
    else:
        stored = StoredState("folder", f"files/{target.name}")
        mistakes = [*_name_mistakes(target.name, target.name), *_folder_mistakes(target, folder)]
    if mistakes:
        raise InvalidInputError(f"{source} cannot be saved as a checkpoint.", mistakes)
    (folder / "files").mkdir()
    if stored.kind == "file":
        _copy_file(target, folder, stored.entry, stored)
    else:
        _copy_tree(target, target, folder, stored.entry, stored)
    return stored


def _copy_tree(top: Path, source: Path, folder: Path, name: str, stored: StoredState) -> None:
    (folder / name).mkdir()
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        inner = f"{name}/{entry.name}"
        if entry.is_symlink():
            # A link stays a link, so that one to its own parent does no harm, but becomes a relative one.
            link = os.path.relpath(os.path.realpath(entry.path), source)
            os.symlink(link, folder / inner)
            stored.links[inner] = link
        elif entry.is_dir():
            _copy_tree(top, Path(entry.path), folder, inner, stored)
        else:
            _copy_file(Path(entry.path), folder, inner, stored)


def _copy_file(source: Path, folder: Path, name: str, stored: StoredState) -> None:
    with source.open("rb") as original, HashingFile(stored, folder, name) as copy:
        while chunk := original.read(_CHUNK_BYTES):
            copy.write(chunk)


def _folder_mistakes(top: Path, destination: Path) -> list[str]:
    if Path(os.path.realpath(destination)).is_relative_to(top):
        return [f"it contains {destination.parent}, where checkpoints are kept; give a folder beside it"]
    mistakes: list[str] = []
    for parent, folders, files in os.walk(top):
        for name in sorted([*folders, *files]):
            path = Path(parent, name)
            inner = str(path.relative_to(top))
            mistakes += _name_mistakes(name, inner)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                target = Path(os.path.realpath(path))
                if not target.is_relative_to(top):
                    mistakes.append(f"{inner!r} is a link to {target}, outside of the folder; copy the file in")
            elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                mistakes.append(f"{inner!r} is neither a file nor a folder; leave it out")
    return mistakes


def _name_mistakes(name: str, inner: str) -> list[str]:
    try:
        name.encode()
    except UnicodeEncodeError:
        return [f"the name {inner!a} is not valid UTF-8; rename it"]
    return []
