"""The files of a version: from this machine to the storage, and back."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.values.words import count
from cargobike.models.record import MODEL, FileEntry, Manifest, files_of, is_plain
from cargobike.store.files.storage import Storage

CHUNK_BYTES: Final = 8 << 20
_PART: Final = ".part-"
_STALE_S: Final = 24 * 3600.0


def given_files(files: Any) -> dict[str, Path]:
    """Return the files that a user wants to be kept, by their paths in the version.

    Args:
        files: The path of a file or folder, a list of such, or a dict from names to paths.

    Raises:
        InvalidInputError: If there are none, or some cannot be kept; lists all of them.
    """
    if isinstance(files, str | os.PathLike):
        whole = Path(files)
        pairs = [("", whole)] if whole.is_dir() else [(whole.name, whole)]
    elif isinstance(files, Mapping):
        pairs = [(str(name), Path(path)) for name, path in files.items()]
    elif isinstance(files, list | tuple | set | frozenset):
        pairs = [(Path(path).name, Path(path)) for path in files]
    else:
        raise InvalidInputError(
            f"files={files!r} was given; give the path of a file or folder, a list of paths, or a dict from names to "
            "paths."
        )
    listed: dict[str, Path] = {}
    mistakes = [f"there is no file or folder {str(path)!r}" for _, path in pairs if not path.exists()]
    for name, path in pairs:
        below = folder_files(path) if path.is_dir() else {"": path}
        for inner, file in below.items():
            place = MODEL + "/".join(filter(None, (name.strip("/"), inner)))
            if not is_plain(place):
                mistakes.append(f"{str(file)!r} cannot be kept as {place!r}")
            if place in listed:
                mistakes.append(f"{str(listed[place])!r} and {str(file)!r} would both be {place!r}")
            listed[place] = file
    if mistakes:
        raise InvalidInputError("The files cannot be kept:", mistakes[:20])
    if not listed:
        raise InvalidInputError(f"files={files!r} holds no file.")
    return listed


def folder_files(folder: Path, *, links: bool = True) -> dict[str, Path]:
    """Return the files below a folder by their paths in it, in order; links to files count only if wanted."""
    paths = sorted(Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    return {
        path.relative_to(folder).as_posix(): path
        for path in paths
        if path.is_file() and (links or not path.is_symlink())
    }


def entry_of(path: str, file: Path) -> FileEntry:
    """Return what a manifest says about a file of this machine.

    Raises:
        InvalidInputError: If it is no plain file.
    """
    digest, size = hashlib.sha256(), 0
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(fd, "rb") as source:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise InvalidInputError(f"{file} is no plain file.")
        while chunk := source.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return FileEntry(path, size, digest.hexdigest())


def pieces(storage: Storage, place: str, entry: FileEntry) -> Iterator[bytes]:
    """Yield the bytes of a file of a version, and no more than its manifest says.

    Raises:
        StoreError: If the file is gone, or its bytes are not what the manifest says; after the last piece.
    """
    digest, start = hashlib.sha256(), 0
    name = f"{storage}/{place}/{entry.path}"
    while start <= entry.size_bytes:
        wanted = min(CHUNK_BYTES, entry.size_bytes - start + 1)  # one more than there should be shows a file that grew
        chunk = storage.read(f"{place}/{entry.path}", start, wanted)
        if chunk is None:
            raise StoreError(f"{name} is gone.")
        digest.update(chunk)
        start += len(chunk)
        if start <= entry.size_bytes:
            yield chunk
        if len(chunk) < wanted:
            break
    if start != entry.size_bytes:
        size = count(start, "byte") if start < entry.size_bytes else "more bytes"
        raise StoreError(f"{name} has {size}, and its manifest says {entry.size_bytes}.")
    if digest.hexdigest() != entry.sha256:
        raise StoreError(f"{name} is damaged: its SHA-256 is not the one in its manifest.")


def problems_of(storage: Storage, manifest: Manifest) -> list[str]:
    """Read all files of a version, and say what is wrong with them; nothing if all is well."""
    place, problems = files_of(manifest.name, manifest.token), []
    for entry in manifest.files:
        try:
            for _ in pieces(storage, place, entry):
                pass
        except StoreError as error:
            problems.append(str(error))
    return problems


def local_folder(project: ProjectFolder, storage: Storage, manifest: Manifest) -> Path:
    """Return a folder of this machine with the files of a version: where they lie, or a copy that was checked.

    Raises:
        StoreError: If files are missing or damaged.
    """
    place = files_of(manifest.name, manifest.token)
    folder = project.root / place
    if "://" not in storage.url:
        missing = [entry.path for entry in manifest.files if not _fits(folder / entry.path, entry)]
        if missing:
            raise StoreError(
                f"{folder} is not whole: {', '.join(missing[:5])} missing or of another size. "
                f"`cargobike models verify {manifest.name}:{manifest.version}` says more."
            )
        return folder
    if all(_fits(folder / entry.path, entry) for entry in manifest.files) and folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep_parts(folder.parent)
    with tempfile.TemporaryDirectory(prefix=_PART, dir=folder.parent) as temporary:
        copy = Path(temporary, "files")
        copy.mkdir()
        copy_out(storage, manifest, copy)
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # another process was quicker
            os.rename(copy, folder)
    return folder


def copy_out(storage: Storage, manifest: Manifest, folder: Path) -> None:
    """Write the files of a version into a folder of this machine, checked.

    Raises:
        StoreError: If files are missing or damaged.
    """
    for entry in manifest.files:
        target = folder / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            for piece in pieces(storage, files_of(manifest.name, manifest.token), entry):
                file.write(piece)


def _fits(path: Path, entry: FileEntry) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == entry.size_bytes


def _sweep_parts(folder: Path) -> None:
    """Remove copies that a killed process had begun, long ago."""
    for path in folder.glob(f"{_PART}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE_S:
                shutil.rmtree(path, ignore_errors=True)
