"""Versioned resources: files that belong to an experiment, kept as they were at launch, each content once."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.kinds import read_several

MOST_FILES: Final = 10_000
_CHUNK_BYTES: Final = 1 << 20


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """One kept file: its name, the path it was read from, and the hash of its content."""

    name: str
    path: str
    sha256: str
    size_bytes: int


def check_resources(given: Sequence[str | os.PathLike[str]]) -> tuple[Path, ...]:
    """Make sure that everything to be kept can be read.

    Raises:
        InvalidInputError: With everything that is wrong.
    """
    if isinstance(given, str | os.PathLike):
        raise InvalidInputError(f"versioned_resources must be a list of paths, {given!r} was given; write [{given!r}].")
    mistakes = []
    paths = []
    for one in read_several("versioned_resources", given, "['data.csv']"):
        try:
            path = Path(os.path.abspath(os.path.expanduser(os.fspath(one))))
            is_fine = path.is_dir() or stat.S_ISREG(path.stat().st_mode)
        except (OSError, TypeError, ValueError) as error:
            mistakes.append(f"{one!r} cannot be read: {getattr(error, 'strerror', None) or error}")
            continue
        if not is_fine:
            mistakes.append(f"{one!r} is neither a file nor a folder")
        elif not os.access(path, os.R_OK):
            mistakes.append(f"{one!r} may not be read")
        paths.append(path)
    if mistakes:
        raise InvalidInputError("These versioned_resources cannot be kept:", mistakes)
    return tuple(paths)


def keep_resources(paths: Sequence[Path], target: Path, pool: Path, launch_dir: Path) -> list[Resource]:
    """Copy files into `target`, each under the hash of its content; equal content in `pool` is linked, not copied.

    Folders are kept with everything below them; links inside them are not followed.

    Raises:
        OSError: If something cannot be read or written.
        InvalidInputError: If there are too many files.
    """
    kept: list[Resource] = []
    for path in paths:
        for file in _files(path):
            if len(kept) >= MOST_FILES:
                raise InvalidInputError(
                    f"versioned_resources hold more than {MOST_FILES} files; keep an archive or a list of them."
                )
            name = _name(file, path, launch_dir)
            digest, size = _keep(file, target, pool)
            kept.append(Resource(name=name, path=str(file), sha256=digest, size_bytes=size))
    return kept


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def safe_name(name: str) -> PurePosixPath:
    """Return a recorded name as a relative path that cannot lead out of the folder it is put into.

    Raises:
        InvalidInputError: If it could.
    """
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name or not name.isprintable():
        raise InvalidInputError(f"The name {name!r} is refused: it must be a relative path of plain names.")
    return path


def _name(file: Path, resource: Path, launch_dir: Path) -> str:
    """Return a short name: relative to the launch folder if it is below it, else to the parent of the resource."""
    top = launch_dir if launch_dir in file.parents else resource.parent
    name = file.relative_to(top).as_posix().encode("utf-8", "replace").decode()
    return safe_name(name).as_posix()


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for parent, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = Path(parent, name)
            if stat.S_ISREG(file.lstat().st_mode):
                yield file


def _keep(file: Path, target: Path, pool: Path) -> tuple[str, int]:
    """Copy while hashing, so that the hash is that of the kept bytes, even if the file changes meanwhile."""
    target.mkdir(parents=True, exist_ok=True)
    pool.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    descriptor, temporary = tempfile.mkstemp(prefix=".", dir=target)
    try:
        with open(descriptor, "wb") as copy, file.open("rb") as source:
            while chunk := source.read(_CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
                copy.write(chunk)
        name = digest.hexdigest()
        os.chmod(temporary, 0o444)
        if not (target / name).exists():
            _place(Path(temporary), target / name, pool / name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    return name, size


def _place(temporary: Path, target: Path, shared: Path) -> None:
    """Move a file to its target, sharing its bytes with equal ones of other experiments where the disk can do that."""
    try:
        os.link(shared, target)
    except FileNotFoundError:
        os.rename(temporary, target)
        with contextlib.suppress(OSError):
            os.link(target, shared)
    except OSError:
        os.rename(temporary, target)


def keep_bytes(data: bytes, target: Path, pool: Path) -> None:
    """Write a file, sharing its bytes with equal ones of other experiments where the disk can do that."""
    pool.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=".", dir=target.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o444)
        target.unlink(missing_ok=True)
        _place(Path(temporary), target, pool / hashlib.sha256(data).hexdigest())
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def sweep_pool(pool: Path) -> None:
    """Remove from a pool what no experiment uses any more."""
    try:
        entries = list(os.scandir(pool))
    except OSError:
        return
    for entry in entries:
        with contextlib.suppress(OSError):
            if entry.stat(follow_symlinks=False).st_nlink == 1:
                os.unlink(entry.path)


def copy_out(source: Path, resource: Resource, folder: Path) -> Path:
    """Write a kept resource under its own name into a folder; returns its path."""
    target = folder / safe_name(resource.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / resource.sha256, target)
    return target
