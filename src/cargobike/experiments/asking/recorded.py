"""Makes the recorded code of an experiment ready to run again."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.package import PACKAGE_PARENT
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.experiments.trial.payload import Payload
from cargobike.store.files.resources import safe_name
from cargobike.store.history.snapshot import Snapshot

_MOST_BYTES = 256 << 20


def recorded_payload(folder: ExperimentFolder, snapshot: Snapshot | None) -> Payload:
    """Return the function as it was sent, set to import the user's own modules as they were recorded.

    Libraries come from the environment of this process.

    Raises:
        StoreError: If the function was not kept, or its files cannot be unpacked.
    """
    path = folder.payload
    try:
        payload = Payload.decode(path.read_bytes())
    except OSError as error:
        raise StoreError(
            f"The code of {folder.id} was not kept ({path}: {error.strerror}): it ended before it had begun."
        ) from error
    except UNDECODABLE as error:
        raise StoreError(f"{path} cannot be understood: {error}. Was it written by another Cargobike?") from error
    roots = unpack_sources(folder, snapshot) if snapshot is not None else {}
    launch_dir = payload.launch_dir
    if not os.path.isdir(launch_dir):
        launch_dir = str(_mapped(Path(launch_dir), roots) or Path.cwd())
    return msgspec.structs.replace(payload, sys_path=_search_path(payload.sys_path, roots), launch_dir=launch_dir)


def unpack_sources(folder: ExperimentFolder, snapshot: Snapshot) -> dict[Path, Path]:
    """Unpack the recorded files, once; returns the folder of the copies for each folder that they came from.

    Raises:
        StoreError: If they are damaged, or have names that lead elsewhere.
    """
    roots = snapshot.sources.roots
    copies = folder.unpacked_sources
    if not copies.is_dir():
        copies = _unpack(folder, copies)
    return {Path(root): copies / str(number) for number, root in enumerate(roots) if (copies / str(number)).is_dir()}


def _unpack(folder: ExperimentFolder, copies: Path) -> Path:
    archive = folder.sources
    temporary = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=folder.code))
    try:
        with zipfile.ZipFile(archive) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > _MOST_BYTES:
                raise StoreError(f"{archive} would take more than {_MOST_BYTES >> 20} MiB unpacked, and is refused.")
            for entry in packed.infolist():
                target = temporary / safe_name(entry.filename)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(packed.read(entry))
        with contextlib.suppress(OSError):  # another process was quicker
            temporary.rename(copies)
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise StoreError(f"The recorded files {archive} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return copies


def _search_path(recorded: Sequence[str], roots: dict[Path, Path]) -> list[str]:
    """Return the search path for modules: the user's as they were recorded, libraries as they are here."""
    own = []
    for entry in map(Path, recorded):
        if str(entry) == PACKAGE_PARENT or _is_installed(entry):
            continue
        mapped = _mapped(entry, roots)
        own.append(str(mapped if mapped is not None and mapped.is_dir() else entry))
    here = [entry for entry in map(os.path.abspath, sys.path) if _is_installed(Path(entry))]
    return list(dict.fromkeys([*own, *here, PACKAGE_PARENT]))


def _mapped(path: Path, roots: dict[Path, Path]) -> Path | None:
    for root, unpacked in roots.items():
        if path == root or root in path.parents:
            return unpacked / path.relative_to(root)
    return None


def _is_installed(path: Path) -> bool:
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    return path.suffix == ".zip" or (path / "encodings").is_dir() or path.name == "lib-dynload"
