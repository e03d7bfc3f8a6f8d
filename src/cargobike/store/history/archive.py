"""One experiment as one file: a zip archive that another project can import.

Archives come from anywhere. Reading one runs nothing of it, follows no link, and writes nothing outside the new
experiment's folder; what is unpacked is compared with the list of hashes that it begins with.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.facts import EXPERIMENT_FACTS
from cargobike.core.ids import EXPERIMENT_ID
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.core.registering.products import kind_of
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.core.version import __version__
from cargobike.store.files.locking import holder, is_held
from cargobike.store.files.resources import hash_file, safe_name
from cargobike.store.files.things import files_of
from cargobike.store.journal.journal import read_header

FORMAT: Final = 1
MANIFEST: Final = "cargobike.json"
MOST_FILES: Final = 1_000_000
MOST_BYTES: Final = 100 << 30
_MOST_MANIFEST_BYTES: Final = 256 << 20
_CHUNK_BYTES: Final = 1 << 20
_NOT_UNPACKED: Final = {"remote.json", "unsent"}  # marks of shared storage that older archives hold
_STORED: Final = {".zip", ".gz", ".zst", ".xz", ".png", ".jpg", ".npz", ".safetensors"}


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive holds: the experiment, and hash and size of each of its files."""

    id: str
    format: int = FORMAT
    cargobike: str = ""
    name: str = ""
    files: dict[str, tuple[str, int]] = {}


def write_archive(folder: ExperimentFolder, target: Path, *, with_checkpoints: bool = True) -> Manifest:
    """Write an experiment into one file, which is there whole or not at all.

    Raises:
        StoreError: If it is running, or something cannot be read or written.
    """
    if is_held(folder):
        raise StoreError(f"{folder.id} is being run by {holder(folder)}; wait for its end, or stop it first.")
    header = read_header(folder.journal, EXPERIMENT_FACTS)
    if header is None:
        raise StoreError(f"The journal of {folder.id} cannot be read: there is nothing to export.")
    if target.is_dir():
        target = target / f"{folder.id}.zip"
    temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        names = list(_files(folder, with_checkpoints=with_checkpoints))
        listed = {name: (hash_file(folder.root / name), (folder.root / name).stat().st_size) for name in names}
        manifest = Manifest(id=folder.id, cargobike=__version__, name=header.name, files=listed)
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=3, strict_timestamps=False) as packed:
            packed.writestr(MANIFEST, msgspec.json.encode(manifest))
            for name in names:
                how = zipfile.ZIP_STORED if Path(name).suffix in _STORED else zipfile.ZIP_DEFLATED
                packed.write(folder.root / name, name, how)
        temporary.replace(target)
    except OSError as error:
        raise StoreError(f"Cannot export {folder.id}: {error.strerror} ({error.filename}).") from error
    finally:
        temporary.unlink(missing_ok=True)
    return manifest


def _files(folder: ExperimentFolder, *, with_checkpoints: bool) -> Iterator[str]:
    """Yield what belongs to an experiment, relative to its folder, without links and what is derived."""
    kind = kind_of(folder.root)
    for path, _ in files_of(kind, folder.root):
        if with_checkpoints or not kind.on_demand.match(path):
            yield safe_name(path).as_posix()


def read_manifest(archive: Path) -> Manifest:
    """Return what an archive says that it holds, without unpacking anything.

    Raises:
        InvalidInputError: If it is not an archive of ours, or one that must not be unpacked.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            return _checked_manifest(packed, archive)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise InvalidInputError(f"{archive} is not an archive of an experiment: {error}") from error
    except OSError as error:
        raise InvalidInputError(f"{archive} cannot be read: {error.strerror or error}") from error


def take_in(archive: Path, project: ProjectFolder, *, most_bytes: int = MOST_BYTES) -> ExperimentFolder:
    """Unpack an archive into a project; returns the experiment's folder.

    Raises:
        InvalidInputError: If the archive is damaged or dangerous, or the experiment is there already.
        StoreError: If it cannot be written.
    """
    manifest = read_manifest(archive)
    folder = project.experiment(manifest.id)
    if folder.root.exists():
        raise InvalidInputError(f"The project has an experiment {manifest.id} already; remove it first, or keep it.")
    total = sum(size for _, size in manifest.files.values())
    if total > most_bytes:
        raise InvalidInputError(
            f"{archive} holds {total / 1e9:.1f} GB, and at most {most_bytes / 1e9:.1f} GB are allowed; "
            "raise the limit if you trust it."
        )
    project.experiments.mkdir(parents=True, exist_ok=True)
    if total > shutil.disk_usage(project.experiments).free:
        raise StoreError(f"{archive} holds {total / 1e9:.1f} GB, and {project.root} has no room for that.")
    temporary = Path(tempfile.mkdtemp(prefix=".importing-", dir=project.experiments))
    try:
        with zipfile.ZipFile(archive) as packed:
            for name, (digest, size) in manifest.files.items():
                if name in _NOT_UNPACKED:
                    continue
                _unpack(packed, name, temporary / name, digest, size)
        header = read_header(ExperimentFolder(temporary).journal, EXPERIMENT_FACTS)
        if header is None or header.id != manifest.id:
            raise InvalidInputError(f"{archive} is not what it claims: it has no journal of {manifest.id}.")
        temporary.chmod(0o755)
        temporary.rename(folder.root)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise InvalidInputError(f"{archive} is damaged: {error}") from error
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{archive} cannot be unpacked: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _checked_manifest(packed: zipfile.ZipFile, archive: Path) -> Manifest:
    entries = packed.infolist()
    if len(entries) > MOST_FILES + 1:
        raise InvalidInputError(f"{archive} has {len(entries)} files, more than {MOST_FILES}, and is refused.")
    first = next((entry for entry in entries if entry.filename == MANIFEST), None)
    if first is None or first.file_size > _MOST_MANIFEST_BYTES:
        raise InvalidInputError(f"{archive} is not an archive of an experiment: it has no {MANIFEST}.")
    with packed.open(first) as file:
        data = file.read(_MOST_MANIFEST_BYTES + 1)
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except UNDECODABLE as error:
        raise InvalidInputError(f"{archive} is not an archive of an experiment: {error}") from error
    if manifest.format > FORMAT:
        raise InvalidInputError(
            f"{archive} was written by a newer Cargobike ({manifest.cargobike}); upgrade this one ({__version__})."
        )
    if not EXPERIMENT_ID.fullmatch(manifest.id):
        raise InvalidInputError(f"{archive} names its experiment {manifest.id!r}, which is not an id.")
    _check_entries(manifest, entries, archive)
    return manifest


def _check_entries(manifest: Manifest, entries: list[zipfile.ZipInfo], archive: Path) -> None:
    """Make sure that an archive holds what it lists, once, as plain files with plain names."""
    sizes: dict[str, int] = {}
    for entry in entries:
        if entry.filename in sizes:
            raise InvalidInputError(f"{archive} holds {entry.filename!r} twice, and is refused.")
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if entry.is_dir() or kind not in {0, stat.S_IFREG}:
            raise InvalidInputError(f"{archive}: {entry.filename!r} is not a plain file, and the archive is refused.")
        sizes[entry.filename] = entry.file_size
    del sizes[MANIFEST]
    if sizes != {name: size for name, (_, size) in manifest.files.items()}:
        raise InvalidInputError(f"{archive} does not hold what it lists, and is refused.")
    refused = kind_of(Path("experiments", manifest.id)).left_out - _NOT_UNPACKED
    for name in sizes:
        path = safe_name(name)
        if path != PurePosixPath(name) or path.as_posix() != name or path.parts[0] in refused:
            raise InvalidInputError(f"The name {name!r} is refused: it must be a relative path of plain names.")
        if any(parent.as_posix() in sizes for parent in path.parents):
            raise InvalidInputError(f"{archive}: {name!r} lies below another file, and the archive is refused.")


def _unpack(packed: zipfile.ZipFile, name: str, target: Path, digest: str, size: int) -> None:
    """Write one file, never more of it than was announced."""
    target.parent.mkdir(parents=True, exist_ok=True)
    content, written = hashlib.sha256(), 0
    with packed.open(name) as source, target.open("xb") as file:
        while chunk := source.read(min(_CHUNK_BYTES, size - written + 1)):
            written += len(chunk)
            if written > size:
                raise InvalidInputError(f"{name!r} is larger than announced, and the archive is refused.")
            content.update(chunk)
            file.write(chunk)
    if content.hexdigest() != digest:
        raise InvalidInputError(f"{name!r} is damaged: its content is not what was exported.")
