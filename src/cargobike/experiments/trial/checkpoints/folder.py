"""One checkpoint on disk: a folder that appears whole or not at all, and can tell whether it is intact.

    <root>/000004-step12/
      meta.json             kind, step, metric, and the size and SHA-256 of every file
      state.pkl             or state.bin, state.pt, files/<name>

Folders are numbered in the order of saving, not by step: a trial that goes back to an earlier step and
saves again has its newest checkpoint there.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from cargobike.core.facts import Number, pack_number, unpack_number
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.experiments.trial.checkpoints.files import Kind, SavedCheckpoint
from cargobike.experiments.trial.checkpoints.state import write_state
from cargobike.experiments.trial.checkpoints.surroundings import NOTHING, Surroundings
from cargobike.experiments.trial.sent_reports import Reports

_NAME = re.compile(r"(\d{6,})-step(-?\d+)")
_META = "meta.json"
_SAVING, _DELETING = ".saving.", ".deleting."
_FOREIGN_LEFTOVER_S = 24 * 3600.0

_counter = itertools.count()
_being_saved: set[str] = set()
_unforced: set[Path] = set()
"""Parents of new roots: folders that the next forced checkpoint forces to disk too."""


class DamagedError(Exception):
    """A checkpoint is not what was saved; says why."""


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """What `meta.json` holds."""

    kind: Kind
    step: int
    entry: str
    created_at: float
    size_bytes: int
    sizes: dict[str, int]
    sha256: dict[str, str]
    links: dict[str, str] = {}
    packed_metric: Number | None = msgspec.field(name="metric", default=None)
    reports: Reports | None = None
    place: dict[str, Any] | None = None

    @property
    def metric(self) -> float | None:
        """The metric that was given at the save."""
        return None if self.packed_metric is None else unpack_number(self.packed_metric)

    def describe(self, folder: Path) -> SavedCheckpoint:
        """Return it in the form that users see."""
        return SavedCheckpoint(self.step, folder, self.size_bytes, self.metric)


_decoder = msgspec.json.Decoder(Meta)


def list_folders(root: Path) -> list[Path]:
    """Return the checkpoint folders under a root, oldest first; none if there is no root."""
    return _numbered(root, _list(root))


def _list(root: Path) -> list[str]:
    try:
        return os.listdir(root)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _numbered(root: Path, names: list[str]) -> list[Path]:
    numbered = [(int(match[1]), name) for name in names if (match := _NAME.fullmatch(name))]
    return [root / name for _, name in sorted(numbered)]


def number_of(folder: Path) -> int:
    """Return which checkpoint of its trial a folder is."""
    return int(folder.name.partition("-")[0])


def is_checkpoint(folder: Path) -> bool:
    """Tell whether a folder is one checkpoint, rather than a root of several."""
    return (folder / _META).is_file()


def write_folder(
    root: Path,
    state: object,
    step: int,
    metric: float | None,
    *,
    after: Path | None = None,
    is_forced: bool = True,
    surroundings: Surroundings = NOTHING,
) -> tuple[Path, Meta]:
    """Save a state under a root, atomically: once saved, it survives the death of this process.

    The folder is built under a temporary name and renamed when it is complete. On any error nothing is left.

    Args:
        root: Where it goes.
        state: What to save.
        step: Where the training is.
        metric: How good the state is.
        after: The newest checkpoint that is there.
        is_forced: Whether it is on disk when this returns, so that it survives a power cut too.
        surroundings: What to remember with it.
    """
    building = root / f"{_SAVING}{os.getpid()}.{next(_counter)}.{platform.node()}"
    _being_saved.add(building.name)
    try:
        _make(building)
        stored = write_state(state, building)
        meta = Meta(
            kind=stored.kind,
            step=step,
            entry=stored.entry,
            created_at=time.time(),
            size_bytes=sum(stored.sizes.values()),
            sizes=stored.sizes,
            sha256=stored.sha256,
            links=stored.links,
            packed_metric=None if metric is None else pack_number(metric),
            reports=surroundings.reports,
            place=surroundings.place,
        )
        with (building / _META).open("xb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(meta), indent=1))
        if is_forced:
            _force(building)
        folder = _rename_to_next(building, root, step, 1 if after is None else number_of(after) + 1)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    finally:
        _being_saved.discard(building.name)
    if is_forced:
        _force_way_to(root)
    return folder, meta


def force_folder(folder: Path) -> None:
    """Force a checkpoint to disk, so that it survives a power cut.

    Raises:
        FileNotFoundError: If it is gone.
        OSError: If the disk refuses.
    """
    _force(folder)
    _force_way_to(folder.parent)


def read_meta(folder: Path) -> Meta:
    """Read a checkpoint's description without looking at its files.

    Raises:
        DamagedError: If it is missing or cannot be read.
    """
    try:
        meta = _decoder.decode((folder / _META).read_bytes())
    except FileNotFoundError:
        raise DamagedError(f"{_META} is missing") from None
    except (OSError, *UNDECODABLE) as error:
        raise DamagedError(f"{_META} cannot be read: {error}") from error
    for name in (meta.entry, *meta.sizes, *meta.links):
        if name.startswith("/") or ".." in name.split("/"):
            raise DamagedError(f"{_META} names {name!r}, which lies outside of the checkpoint")
    match = _NAME.fullmatch(folder.name)
    if match is not None and int(match[2]) != meta.step:
        raise DamagedError(f"{_META} says step {meta.step}")
    return meta


def verify(folder: Path) -> Meta:
    """Read a checkpoint's description and compare every file with it.

    Raises:
        DamagedError: If anything is missing or differs.
    """
    meta = read_meta(folder)
    for name, link in meta.links.items():
        with _readable(name):
            if os.readlink(folder / name) != link:
                raise DamagedError(f"the link {name} points elsewhere")
    for name, size in meta.sizes.items():
        with _readable(name), (folder / name).open("rb") as file:
            actual = os.fstat(file.fileno()).st_size
            if actual != size:
                raise DamagedError(f"{name} has {actual} bytes instead of {size}")
            if hashlib.file_digest(file, "sha256").hexdigest() != meta.sha256.get(name):
                raise DamagedError(f"the checksum of {name} does not match")
    with _readable(meta.entry):
        (folder / meta.entry).stat()
    return meta


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    """Take a file that is not there, or whose name no file can have, for damage."""
    try:
        yield
    except FileNotFoundError:
        raise DamagedError(f"{name} is missing") from None
    except (OSError, ValueError) as error:
        raise DamagedError(f"{name} cannot be read: {error}") from error


def delete_folder(folder: Path, meta: Meta | None = None) -> None:
    """Delete a checkpoint; killed in the middle, it is gone all the same, and `sweep` finishes the work.

    Args:
        folder: The checkpoint.
        meta: Its description, so that its files need not be looked for.
    """
    doomed = folder.parent / f"{_DELETING}{os.getpid()}.{next(_counter)}.{platform.node()}"
    with contextlib.suppress(OSError):  # deleted by another process
        os.rename(folder, doomed)
        try:
            for name in (_META, *(meta.sizes if meta is not None else ())):
                os.unlink(f"{doomed}/{name}")
            os.rmdir(doomed)
        except OSError:  # there is more in it
            shutil.rmtree(doomed, ignore_errors=True)


def sweep(root: Path) -> list[Path]:
    """Remove what killed processes left behind: saves that never ended and deletions half done.

    Returns:
        What `list_folders` would: looking twice costs more than anything else here.
    """
    names = _list(root)
    for name in names:
        if name.startswith(_DELETING) or (name.startswith(_SAVING) and _is_abandoned(root / name)):
            shutil.rmtree(root / name, ignore_errors=True)
    return _numbered(root, names)


def _is_abandoned(building: Path) -> bool:
    if building.name in _being_saved:
        return False
    pid, _, host = building.name.removeprefix(_SAVING).split(".", 2)
    if host != platform.node():
        try:
            return time.time() - building.stat().st_mtime > _FOREIGN_LEFTOVER_S
        except FileNotFoundError:
            return False
    if int(pid) == os.getpid():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _rename_to_next(building: Path, root: Path, step: int, number: int) -> Path:
    while True:
        folder = root / f"{number:06d}-step{step}"
        try:
            os.rename(building, folder)
        except OSError:
            # A lost attempt that is still running may have taken the name between our look and our rename.
            if not folder.exists():
                raise
            number += 1
        else:
            return folder


def _make(building: Path) -> None:
    """Make a folder and, if this is the first one, its parents."""
    try:
        os.mkdir(building)
    except FileNotFoundError:
        root = building.parent
        missing = [root]
        while not missing[-1].parent.exists():
            missing.append(missing[-1].parent)
        root.mkdir(parents=True, exist_ok=True)
        _unforced.update(made.parent for made in missing)
        os.mkdir(building)


def _force_way_to(root: Path) -> None:
    _sync_folder(root)
    while _unforced:
        with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile, with its content
            _sync_folder(_unforced.pop())


def _force(building: Path) -> None:
    """Force every file and folder of a checkpoint to disk."""
    for parent, _, names in os.walk(building, onerror=_refuse):
        for name in names:
            path = Path(parent, name)
            if not path.is_symlink():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        _sync_folder(Path(parent))


def _refuse(error: OSError) -> None:
    """Raise what stands in the way: left to itself, `os.walk` passes over a folder that is gone or cannot be read."""
    raise error


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some network filesystems do not sync folders
            os.fsync(handle)
    finally:
        os.close(handle)
