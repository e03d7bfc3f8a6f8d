"""Transfers files between the driver and a worker on which the project's disk is not mounted.

A thread of the agent, with a connection of its own: the agent keeps listening and sending heartbeats while gigabytes
are transferred.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import zmq

from cargobike.core import settings
from cargobike.core.errors import StoreError
from cargobike.workers.files.requests import (
    CHUNK_BYTES,
    TEMPORARY,
    File,
    Get,
    Listing,
    Put,
    Reply,
    Settle,
    decode_reply,
    encode,
)
from cargobike.workers.wire.connection import AgentConfig, secured
from cargobike.workers.wire.messages import Files

FOLLOW_EVERY_S = 1.0
_ASK_AGAIN_S = 20.0
_TRIES_TO_FETCH = 5


class Courier:
    """Runs one errand after the other; `wake_fd` becomes readable when some are finished.

    Paths are relative to the project, or absolute and inside the folder that stands for it here.

    Args:
        config: The agent's config.
        scratch: The folder that stands for the project on this machine.
    """

    def __init__(self, config: AgentConfig, scratch: Path) -> None:
        self._scratch = scratch
        self._files = _RemoteFiles(config)
        self._jobs: queue.SimpleQueue[tuple[int, Callable[[], None]]] = queue.SimpleQueue()
        self._done: deque[tuple[int, str]] = deque()
        self._sent: dict[Path, tuple[int, int]] = {}
        self._followed: Path | None = None
        self.wake_fd, self._wake = os.pipe()
        threading.Thread(target=self._work, name="cargobike-courier", daemon=True).start()

    def finished(self) -> list[tuple[int, str]]:
        """Return which errands are finished since the last call, and why each failed, if it did."""
        os.read(self.wake_fd, 4096)
        return [self._done.popleft() for _ in range(len(self._done))]

    def clear_up(self) -> None:
        """Remove what stood for the project here."""
        shutil.rmtree(self._scratch, ignore_errors=True)

    # -- errands -------------------------------------------------------------------------------------------------

    def bring_folders(self, errand: int, files: Files) -> None:
        """Bring the subfolders of some folders here, unless they are here already, and follow what is written."""

        def job() -> None:
            self._followed = self._scratch / files.follow if files.follow else None
            for folder in files.bring:
                self._bring_subfolders(self._scratch / folder)

        self._jobs.put((errand, job))

    def bring_file(self, errand: int, path: str) -> None:
        """Bring a file of the project's data here."""
        self._jobs.put((errand, lambda: self._bring(PurePosixPath(path))))

    def keep_folder(self, errand: int, path: str, *, alone: bool) -> None:
        """Send a folder; it appears in the project when it is complete.

        With `alone`, only this worker writes folders there: older ones that were deleted here are deleted there, too.
        """
        self._jobs.put((errand, lambda: self._keep_folder(self._scratch / path, alone=alone)))

    def deliver(self, errand: int, files: Files) -> None:
        """Send what has changed under some folders, and delete there what has been deleted here."""

        def job() -> None:
            self._followed = None
            for folder in files.deliver:
                self._send_changes(self._scratch / folder)
            if files.prune and (self._scratch / files.prune).is_dir():
                self._delete_superfluous(self._scratch / files.prune)

        self._jobs.put((errand, job))

    # -- in the thread -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            try:
                errand, job = self._jobs.get(timeout=FOLLOW_EVERY_S)
            except queue.Empty:
                if self._followed is not None:
                    with contextlib.suppress(OSError, StoreError):  # it is sent once more at the end
                        self._send_changes(self._followed)
                continue
            error = ""
            try:
                job()
            except Exception as problem:  # noqa: BLE001 - the agent waits for the end of every errand
                error = f"{type(problem).__name__}: {problem}"
            self._done.append((errand, error))
            os.write(self._wake, b"x")

    def _remote(self, path: Path) -> str:
        return path.relative_to(self._scratch).as_posix()

    def _keep_folder(self, folder: Path, *, alone: bool) -> None:
        building = f"{TEMPORARY}{uuid.uuid4().hex}.wire"
        remote = PurePosixPath(self._remote(folder)).parent
        for path in _walk(folder):
            self._send(path, str(remote / building / path.relative_to(folder).as_posix()), 0)
        deleted = self._deleted(folder.parent) if alone else ()
        self._files.ask(Settle, path=str(remote / building), name=folder.name, alone=alone, replaces=deleted)

    def _deleted(self, root: Path) -> tuple[str, ...]:
        """Return which subfolders are still in the project but not here any more."""
        here = set(os.listdir(root))
        there = {PurePosixPath(file.path).parts[0] for file in self._files.list(self._remote(root))}
        return tuple(name for name in sorted(there - here) if not name.startswith("."))

    def _delete_superfluous(self, root: Path) -> None:
        newest = max((name for name in os.listdir(root) if not name.startswith(".")), default=None)
        if newest is not None and (deleted := self._deleted(root)):
            self._files.ask(Settle, path=f"{self._remote(root)}/{newest}", name=newest, replaces=deleted)

    def _bring_subfolders(self, root: Path) -> None:
        remote = self._remote(root)
        for tries in range(_TRIES_TO_FETCH):
            try:
                folders: dict[str, list[File]] = {}
                for file in self._files.list(remote):
                    top = PurePosixPath(file.path).parts[0]
                    if not top.startswith("."):
                        folders.setdefault(top, []).append(file)
                for name, files in folders.items():
                    if not (root / name).exists():
                        self._bring_folder(f"{remote}/{name}", root / name, files, name)
            except StoreError:  # their writer may have replaced one while we fetched it
                if tries == _TRIES_TO_FETCH - 1:
                    raise
            else:
                return

    def _bring_folder(self, remote: str, target: Path, files: list[File], name: str) -> None:
        building = target.with_name(f"{TEMPORARY}{uuid.uuid4().hex}.wire")
        try:
            for file in files:
                inside = PurePosixPath(file.path).relative_to(name) if name else PurePosixPath(file.path)
                self._receive(f"{remote}/{inside}", building / inside, file)
            os.rename(building, target)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise

    def _bring(self, path: PurePosixPath) -> None:
        target = self._scratch / path
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
        self._receive(str(path), part, File(str(path), -1))
        os.rename(part, target)

    def _receive(self, remote: str, target: Path, file: File) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.link:
            target.symlink_to(file.link)
            return
        with target.open("wb") as out:
            while data := self._files.ask(Get, path=remote, offset=out.tell()).data:
                out.write(data)

    def _send_changes(self, folder: Path) -> None:
        for path in _walk(folder):
            with contextlib.suppress(FileNotFoundError):
                status = path.lstat()
                size, changed = self._sent.get(path, (0, 0))
                if (status.st_size, status.st_mtime_ns) == (size, changed):
                    continue
                appended = 0 < size < status.st_size and path.suffix != ".json"
                sent = self._send(path, self._remote(path), size if appended else 0)
                self._sent[path] = (sent, status.st_mtime_ns)

    def _send(self, path: Path, remote: str, offset: int) -> int:
        """Send a file from an offset on; returns the offset that was reached."""
        if path.is_symlink():
            self._files.ask(Put, path=remote, link=os.readlink(path))
            return 0
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(CHUNK_BYTES)
            while True:
                self._files.ask(Put, path=remote, offset=offset, data=data)
                offset += len(data)
                data = file.read(CHUNK_BYTES)
                if not data:
                    return offset


def scratch_for(config: AgentConfig) -> Path:
    """Make the folder that stands for the project on this machine; returns it."""
    scratch = Path(settings.scratch_folder())
    scratch.mkdir(mode=0o700, exist_ok=True)
    (scratch / Path(config.folder).relative_to(config.project)).mkdir(parents=True, exist_ok=True)
    return scratch


class _RemoteFiles:
    """Sends requests to the driver's file server, one at a time, and repeats one that got lost."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._socket: zmq.Socket[bytes] | None = None
        self._number = 0
        self._patience_s = config.driver_silence_s or 60.0

    def list(self, path: str) -> list[File]:
        """Return the files under a folder."""
        return self.ask(Listing, path=path).files

    def ask(self, kind: type[Put] | type[Settle] | type[Listing] | type[Get], **what: Any) -> Reply:
        """Return the answer to a request.

        Raises:
            StoreError: If the driver refuses, or does not answer.
        """
        if self._socket is None:  # made in the thread that uses it
            self._socket = secured(zmq.Context(), self._config)
            self._socket.connect(self._config.files_address)
        self._number += 1
        body = encode(kind(self._number, **what))
        give_up_at = time.monotonic() + self._patience_s
        while time.monotonic() < give_up_at:
            self._socket.send(body)
            ask_again_at = time.monotonic() + _ASK_AGAIN_S
            while (left_s := ask_again_at - time.monotonic()) > 0:
                if not self._socket.poll(int(left_s * 1000) + 1):
                    break
                reply = decode_reply(self._socket.recv())
                if reply.number == self._number:
                    if reply.error:
                        raise StoreError(reply.error)
                    return reply
        raise StoreError(f"the driver has not answered for {self._patience_s:g} s")


def _walk(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in sorted(names):
            yield Path(parent, name)
