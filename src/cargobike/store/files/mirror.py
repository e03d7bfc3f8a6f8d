"""The local copy of a project on shared storage: what is there is copied here, so that everything can read it."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.errors import StoreError, SupersededError
from cargobike.core.layout import ProjectFolder, ThingFolder
from cargobike.core.registering.kinds import Kind
from cargobike.core.registering.products import kind_of, kinds
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.store.files.locking import holds_lock
from cargobike.store.files.remote import Head, RemoteProject, Segment, remote_of, remote_of_thing
from cargobike.store.files.resources import safe_name
from cargobike.store.files.things import folders_of
from cargobike.store.files.uploading import Sender

_SMALL_BYTES: Final = 1 << 20
_AGAIN_AFTER_S: Final = 1.0
_TRIES: Final = 5
_STATE: Final = "mirror.json"

_log = logging.getLogger(__name__)
_turn = threading.Lock()
_last_pull: dict[Path, float] = {}


def refresh(project: ProjectFolder, *, at_once: bool = False) -> None:
    """Bring the local journals of a project on shared storage up to date; does nothing for other projects.

    Args:
        project: The local copy.
        at_once: Look even if a process has looked within the last second.
    """
    remote = remote_of(project)
    if remote is None:
        return
    with _turn:
        if not at_once and time.monotonic() - _last_pull.get(project.root, -_AGAIN_AFTER_S) < _AGAIN_AFTER_S:
            return
        with _alone(project):
            _send_what_was_left(project, remote)
            _pull(project, remote)
        _last_pull[project.root] = time.monotonic()


def fetch(folder: ThingFolder, *, with_checkpoints: bool = False) -> None:
    """Copy all files of one thing here; what is large and not always needed, such as checkpoints, only on request."""
    remote = remote_of_thing(folder)
    if remote is None or _is_ours(folder):
        return
    with _turn, _alone(folder.project):
        _pull_files(folder, remote, with_checkpoints=with_checkpoints, most_bytes=None)


def _pull(project: ProjectFolder, remote: RemoteProject) -> None:
    state = project.root / _STATE
    try:
        tokens = msgspec.json.decode(state.read_bytes(), type=dict[str, str])
    except (OSError, *UNDECODABLE):
        tokens = {}
    present: dict[str, str] = {}
    for kind in kinds():
        if kind.heads:
            present |= _pull_kind(kind, project, remote, tokens)
    state.write_bytes(msgspec.json.encode(present))


def _pull_kind(kind: Kind, project: ProjectFolder, remote: RemoteProject, tokens: dict[str, str]) -> dict[str, str]:
    """Copy the things of one kind that have changed; returns the tokens of all of them."""
    heads = remote.heads(kind)
    for thing_id, token in heads.items():
        folder = ThingFolder(project.root / kind.place(thing_id))
        if tokens.get(_token_name(kind, thing_id)) == token and folder.journal.exists():
            continue
        if not _is_ours(folder):
            _pull_thing(folder, remote)
    for path in folders_of(kind, project.root):
        if path.name not in heads and kind.id.fullmatch(path.name) and not _is_ours(ThingFolder(path)):
            shutil.rmtree(path, ignore_errors=True)  # removed on another host
    return {_token_name(kind, thing_id): token for thing_id, token in heads.items()}


def _token_name(kind: Kind, thing_id: str) -> str:
    """Return the key of a thing's token; for experiments it is the id alone, as it always was."""
    return thing_id if kind.heads == "heads" else kind.head(thing_id)


def _is_ours(folder: ThingFolder) -> bool:
    """Tell whether the local files count, not those on the storage."""
    return folder.unsent.exists() or holds_lock(folder)


def _pull_thing(folder: ThingFolder, remote: RemoteProject) -> None:
    head = remote.read_head(kind_of(folder.root), folder.id)
    if head is None:
        return
    folder.root.mkdir(parents=True, exist_ok=True)
    folder.remote_head.write_bytes(msgspec.json.encode(head))
    _pull_files(folder, remote, with_checkpoints=False, most_bytes=_SMALL_BYTES)
    _pull_journal(folder, remote, head)


def _pull_journal(folder: ThingFolder, remote: RemoteProject, head: Head) -> None:
    """Append what is new; if segments are merged while we read, the new ones are read."""
    for _ in range(_TRIES):
        position = folder.journal.stat().st_size if folder.journal.exists() else 0
        if position >= head.journal_bytes:
            return
        with folder.journal.open("ab") as file:
            for segment in remote.segments(kind_of(folder.root), folder.id):
                data = _part(remote, folder, segment, position)
                if data is None:
                    break
                file.write(data)
                position += len(data)
        if position >= head.journal_bytes:
            return
    raise StoreError(
        f"The journal of {folder.id} on {remote} has a gap after {position} of {head.journal_bytes} bytes; "
        "are its segments being removed?"
    )


def _part(remote: RemoteProject, folder: ThingFolder, segment: Segment, position: int) -> bytes | None:
    """Return the part of a segment after a position; empty if it ends before that, `None` if it cannot be read."""
    if segment.end <= position:
        return b""
    if segment.start > position:
        return None
    name = kind_of(folder.root).place(folder.id, "journal", segment.name)
    return remote.read(name, start=position - segment.start)


def _pull_files(folder: ThingFolder, remote: RemoteProject, *, with_checkpoints: bool, most_bytes: int | None) -> None:
    kind = kind_of(folder.root)
    listing = remote.listing(kind, folder.id)
    names = [
        safe_name(name).as_posix()
        for name, (size, _) in listing.items()
        if (with_checkpoints or not kind.on_demand.match(name)) and (most_bytes is None or size <= most_bytes)
    ]
    changed = [name for name in names if _mark(folder.root / name) != listing[name]]
    for name in remote.download(kind.place(folder.id), changed, folder.root):
        os.utime(folder.root / name, ns=(listing[name][1], listing[name][1]))


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _send_what_was_left(project: ProjectFolder, remote: RemoteProject) -> None:
    """Send what drivers of this host could not send: they were killed, or the storage was out of reach."""
    marks = [mark for kind in kinds() if kind.heads for mark in project.root.glob(f"{kind.folder}/*/unsent")]
    for mark in marks:
        folder = ThingFolder(mark.parent)
        if holds_lock(folder) or not folder.journal.exists():
            continue
        try:
            Sender(folder, remote).send_all()
        except SupersededError as error:
            aside = folder.root.with_name(f".superseded-{folder.id}-{int(time.time())}")
            folder.root.rename(aside)
            _log.warning("%s; that is kept in %s.", error, aside)
        except (StoreError, OSError) as error:
            _log.warning("%s could not be sent: %s", folder.id, error)


def share_annotations(folder: ThingFolder) -> None:
    """Fetch the annotations of other hosts, and send ours."""
    remote = remote_of_thing(folder)
    if remote is None:
        return
    kind = kind_of(folder.root)
    name = kind.place(folder.id, folder.annotations.name)
    theirs = (remote.read(name) or b"").splitlines()
    ours = folder.annotations.read_bytes().splitlines() if folder.annotations.exists() else []
    lines = list(dict.fromkeys([*theirs, *ours]))
    if lines == theirs:
        return
    data = b"".join(line + b"\n" for line in lines if line)
    folder.annotations.write_bytes(data)
    if holds_lock(folder):
        return  # its driver sends it
    remote.write(name, data)
    status = folder.annotations.stat()
    listing = remote.listing(kind, folder.id)
    listing[folder.annotations.name] = (status.st_size, status.st_mtime_ns)
    remote.write(kind.place(folder.id, "files.json"), msgspec.json.encode(listing))
    head = remote.read_head(kind, folder.id)
    if head is not None and not head.is_alive:
        remote.write_head(kind, folder.id, head.journal_bytes, is_over=True)


def share_stop(folder: ThingFolder) -> None:
    """Tell a driver elsewhere that it was asked to stop."""
    remote = remote_of_thing(folder)
    if remote is not None and not holds_lock(folder):
        remote.write(kind_of(folder.root).place(folder.id, "stop"), b"")


def share_removal(folder: ThingFolder) -> None:
    """Remove a thing from the storage, its head first, so that its readers never see half of it."""
    remote = remote_of_thing(folder)
    if remote is not None:
        kind = kind_of(folder.root)
        remote.delete(kind.head(folder.id), kind.place(folder.id))


def share_arrival(folder: ThingFolder) -> None:
    """Send an experiment that did not run here, such as an imported one."""
    remote = remote_of_thing(folder)
    if remote is not None:
        folder.unsent.touch()
        Sender(folder, remote).send_all()


@contextlib.contextmanager
def _alone(project: ProjectFolder) -> Iterator[None]:
    """Hold a lock, so that one process of this host at a time changes the local copy."""
    project.experiments.mkdir(parents=True, exist_ok=True)
    fd = os.open(project.root / ".mirror.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)  # a copy of this process may have it open too
        os.close(fd)
