"""Archives of one version: a tar or zip file, or a folder, with `manifest.json` and `files/…`.

An archive may come from a stranger. Nothing of it is unpacked but what its manifest lists, under names that were
checked, no larger than the manifest says, and with the SHA-256 that it says.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tarfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.models.files import CHUNK_BYTES
from cargobike.models.record import MOST_MANIFEST_BYTES, FileEntry, Manifest, decode_manifest
from cargobike.store.assets.manifests import encode_manifest

MANIFEST: Final = "manifest.json"
FILES: Final = "files"
ENDINGS: Final = (".tar", ".tar.gz", ".tgz", ".zip")
_MOST_MEMBERS: Final = 20_000


def write_archive(manifest: Manifest, files: Path, target: Path) -> None:
    """Write a version as an archive or, if the name has no ending of one, as a folder; whole or not at all.

    Raises:
        InvalidInputError: If something lies there already.
    """
    if target.exists():
        raise InvalidInputError(f"{target} is there already; choose another name, or remove it.")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        _write(manifest, files, temporary, target.name.lower())
        os.rename(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        with contextlib.suppress(OSError):
            temporary.unlink()


def read_archive(source: Path, folder: Path) -> Manifest:
    """Unpack the files of an archive or folder into an empty folder, and return its manifest.

    Raises:
        StoreError: If it is no archive of a version, or its files are not what its manifest says.
    """
    with _opened(source) as packed:
        manifest = decode_manifest(packed.read_small(MANIFEST, MOST_MANIFEST_BYTES), f"{source}/{MANIFEST}")
        for entry in manifest.files:
            target = folder / entry.path
            target.parent.mkdir(parents=True, exist_ok=True)
            with packed.open(f"{FILES}/{entry.path}") as file, target.open("xb") as copy:
                _copy(file, copy, entry, source)
    return manifest


class _Packed(ABC):
    """What an archive holds, by name; a name that is not there, or is no plain file, raises `StoreError`."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @abstractmethod
    def open(self, name: str) -> IO[bytes]:
        """Open a file of it."""

    def read_small(self, name: str, most_bytes: int) -> bytes:
        """Return a file of it, and one byte more than `most_bytes` of one that is too large."""
        with self.open(name) as file:
            return file.read(most_bytes + 1)

    def close(self) -> None:  # noqa: B027 - a folder has nothing to close
        """Close it."""

    def _lacks(self, name: str) -> StoreError:
        return StoreError(f"{self.place} holds no version of a model: it lacks {name}.")


class _Folder(_Packed):
    def open(self, name: str) -> IO[bytes]:
        path = self.place / name
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise self._lacks(name) from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise self._lacks(name)
        return open(fd, "rb")


class _Tar(_Packed):
    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self._tar = tarfile.open(place)  # noqa: SIM115 - closed by `close`
        self._members: dict[str, tarfile.TarInfo] = {}
        for number, member in enumerate(self._tar):
            if number >= _MOST_MEMBERS:
                raise StoreError(f"{place} holds no version of a model: it has more than {_MOST_MEMBERS} files.")
            if member.isreg() and not member.issparse():
                self._members[member.name] = member

    def open(self, name: str) -> IO[bytes]:
        file = self._tar.extractfile(self._members[name]) if name in self._members else None
        if file is None:
            raise self._lacks(name)
        return file

    def close(self) -> None:
        self._tar.close()


class _Zip(_Packed):
    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self._zip = zipfile.ZipFile(place)

    def open(self, name: str) -> IO[bytes]:
        try:
            return self._zip.open(name)
        except KeyError:
            raise self._lacks(name) from None

    def close(self) -> None:
        self._zip.close()


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[_Packed]:
    if not source.exists():
        raise InvalidInputError(f"There is no file or folder {str(source)!r}.")
    try:
        if source.is_dir():
            packed: _Packed = _Folder(source)
        elif zipfile.is_zipfile(source):
            packed = _Zip(source)
        else:
            packed = _Tar(source)
        with contextlib.closing(packed):
            yield packed
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{source} cannot be read as an archive of a model: {error}") from error


def _copy(file: IO[bytes], copy: IO[bytes], entry: FileEntry, source: Path) -> None:
    digest, size = hashlib.sha256(), 0
    while size <= entry.size_bytes and (chunk := file.read(min(CHUNK_BYTES, entry.size_bytes - size + 1))):
        digest.update(chunk)
        size += len(chunk)
        copy.write(chunk)
    if size != entry.size_bytes or digest.hexdigest() != entry.sha256:
        raise StoreError(f"{source} is damaged: {entry.path} is not what the manifest says.")


def _write(manifest: Manifest, files: Path, target: Path, name: str) -> None:
    described = encode_manifest(manifest)
    paths = {f"{FILES}/{entry.path}": files / entry.path for entry in manifest.files}
    if name.endswith(".zip"):
        with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr(MANIFEST, described)
            for inner, path in paths.items():
                packed.write(path, inner)
    elif name.endswith(ENDINGS):
        with tarfile.open(target, "x" if name.endswith(".tar") else "x:gz", format=tarfile.PAX_FORMAT) as tar:
            target_manifest = target.with_name(f"{target.name}.manifest")
            try:
                target_manifest.write_bytes(described)
                tar.add(target_manifest, MANIFEST)
            finally:
                target_manifest.unlink(missing_ok=True)
            for inner, path in paths.items():
                tar.add(path, inner)
    else:
        target.mkdir()
        (target / MANIFEST).write_bytes(described)
        for inner, path in paths.items():
            (target / inner).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / inner)
