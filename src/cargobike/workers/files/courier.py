"""Transfers files between the driver and a worker on which the project's disk is not mounted.

A thread of the agent, with a connection of its own: the agent keeps listening and sending heartbeats while gigabytes
are transferred. The folder that it works in is the train function's as well, so no link in it is followed: neither to
send what lies elsewhere, nor to write there what the driver sends.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import threading
import uuid
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from cargobike.core import settings
from cargobike.core.errors import StoreError
from cargobike.core.open_folder import Found, OpenFolder, leads_inside, names_in
from cargobike.workers.files.remote_files import RemoteFiles
from cargobike.workers.files.requests import CHUNK_BYTES, TEMPORARY, File, Get, Put, Settle
from cargobike.workers.wire.connection import AgentConfig
from cargobike.workers.wire.messages import Files

FOLLOW_EVERY_S = 1.0
_TRIES_TO_FETCH = 5
_MOST_NAMED = 5


class Courier:
    """Runs one errand after the other; `wake_fd` becomes readable when some are finished.

    Paths are relative to the project.

    Args:
        config: The agent's config.
        scratch: The folder that stands for the project on this machine.
    """

    def __init__(self, config: AgentConfig, scratch: Path) -> None:
        self._path = scratch
        self._scratch = OpenFolder.at(scratch)
        self._files = RemoteFiles(config)
        self._jobs: queue.SimpleQueue[tuple[int, Callable[[], None]]] = queue.SimpleQueue()
        self._done: deque[tuple[int, str]] = deque()
        self._sent: dict[str, tuple[int, int]] = {}
        self._followed = ""
        self.wake_fd, self._wake = os.pipe()
        threading.Thread(target=self._work, name="cargobike-courier", daemon=True).start()

    def finished(self) -> list[tuple[int, str]]:
        """Return which errands are finished since the last call, and why each failed, if it did."""
        os.read(self.wake_fd, 4096)
        return [self._done.popleft() for _ in range(len(self._done))]

    def clear_up(self) -> None:
        """Remove what stood for the project here."""
        shutil.rmtree(self._path, ignore_errors=True)

    # -- errands -------------------------------------------------------------------------------------------------

    def bring_folders(self, errand: int, files: Files) -> None:
        """Bring the subfolders of some folders here, unless they are here already, and follow what is written."""

        def job() -> None:
            self._followed = files.follow
            for folder in files.bring:
                self._bring_subfolders(folder)

        self._jobs.put((errand, job))

    def bring_file(self, errand: int, path: str) -> None:
        """Bring a file of the project's data here."""
        self._jobs.put((errand, lambda: self._bring(path)))

    def keep_folder(self, errand: int, path: str, *, alone: bool) -> None:
        """Send a folder; it appears in the project when it is complete.

        With `alone`, only this worker writes folders there: older ones that were deleted here are deleted there, too.
        """
        self._jobs.put((errand, lambda: self._keep_folder(path, alone=alone)))

    def deliver(self, errand: int, files: Files) -> None:
        """Send what has changed under some folders, and delete there what has been deleted here."""

        def job() -> None:
            self._followed = ""
            left_behind = [complaint for folder in files.deliver for complaint in self._send_changes(folder)]
            if files.prune:
                self._delete_superfluous(files.prune)
            if left_behind:
                more = f" and {len(left_behind) - _MOST_NAMED} more" if len(left_behind) > _MOST_NAMED else ""
                raise StoreError("; ".join(left_behind[:_MOST_NAMED]) + more)

        self._jobs.put((errand, job))

    # -- in the thread -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            try:
                errand, job = self._jobs.get(timeout=FOLLOW_EVERY_S)
            except queue.Empty:
                if self._followed:
                    with contextlib.suppress(OSError, ValueError, StoreError):  # it is sent once more at the end
                        self._send_changes(self._followed)
                continue
            error = ""
            try:
                job()
            except Exception as problem:  # noqa: BLE001 - the agent waits for the end of every errand
                error = f"{type(problem).__name__}: {problem}".encode("utf-8", "replace").decode()
            self._done.append((errand, error))
            os.write(self._wake, b"x")

    # -- sending -------------------------------------------------------------------------------------------------

    def _keep_folder(self, path: str, *, alone: bool) -> None:
        parent, _, name = path.rpartition("/")
        building = f"{parent}/{TEMPORARY}{uuid.uuid4().hex}.wire"
        with self._scratch.below(names_in(path)) as folder:
            for found in folder.walk():
                self._send(found, path, f"{building}/{'/'.join(found.names)}", 0)
        deleted = self._deleted(parent) if alone else ()
        self._files.ask(Settle, path=building, name=name, alone=alone, replaces=deleted)

    def _deleted(self, root: str) -> tuple[str, ...]:
        """Return which subfolders are still in the project but not here any more."""
        with self._scratch.below(names_in(root)) as folder:
            here = set(os.listdir(folder.fd))
        there = {names_in(file.path)[0] for file in self._files.list(root)}
        return tuple(name for name in sorted(there - here) if not name.startswith("."))

    def _delete_superfluous(self, root: str) -> None:
        try:
            with self._scratch.below(names_in(root)) as folder:
                here = os.listdir(folder.fd)
        except FileNotFoundError:
            return
        newest = max((name for name in here if not name.startswith(".")), default=None)
        if newest is not None and (deleted := self._deleted(root)):
            self._files.ask(Settle, path=f"{root}/{newest}", name=newest, replaces=deleted)

    def _send_changes(self, path: str) -> list[str]:
        """Send what is new below a folder; returns what cannot be sent, and why."""
        try:
            folder = self._scratch.below(names_in(path))
        except FileNotFoundError:
            return []
        left_behind: list[str] = []
        with folder:
            for found in folder.walk():
                name = "/".join(found.names)
                size, changed = self._sent.get(f"{path}/{name}", (0, 0))
                status = found.status
                if (status.st_size, status.st_mtime_ns) == (size, changed):
                    continue
                appended = 0 < size < status.st_size and not name.endswith(".json")
                try:
                    sent = self._send(found, path, f"{path}/{name}", size if appended else 0)
                except FileNotFoundError:  # it has been deleted meanwhile
                    continue
                except _UnsendableError as error:
                    left_behind.append(f"{name!a} {error}")
                    continue
                self._sent[f"{path}/{name}"] = (sent, status.st_mtime_ns)
        return left_behind

    def _send(self, found: Found, folder: str, remote: str, offset: int) -> int:
        """Send a file that was found in a folder, from an offset on; returns the offset that was reached."""
        try:
            remote.encode()
        except UnicodeEncodeError:
            raise _UnsendableError("was not sent: its name is not valid UTF-8") from None
        if found.link:
            self._files.ask(Put, path=remote, link=self._inner_link(found, folder))
            return found.status.st_size
        if not found.is_file:
            raise _UnsendableError("was not sent: it is neither a file nor a folder")
        fd = found.folder.open_file(found.names[-1])
        with os.fdopen(fd, "rb") as file:
            try:
                return self._send_rest(file, remote, offset)
            except StoreError:
                if offset == 0:
                    raise
                return self._send_rest(file, remote, 0)  # what was sent before is not there any more

    def _send_rest(self, file: BinaryIO, remote: str, offset: int) -> int:
        file.seek(offset)
        data = file.read(CHUNK_BYTES)
        while True:
            self._files.ask(Put, path=remote, offset=offset, data=data)
            offset += len(data)
            data = file.read(CHUNK_BYTES)
            if not data:
                return offset

    def _inner_link(self, found: Found, folder: str) -> str:
        """Return a link in a folder as one that is right wherever the folder is; one that leads out is refused."""
        target = found.link
        for here in (str(self._path), os.path.realpath(self._path)):
            if target.startswith(f"{here}/{folder}/"):
                target = os.path.relpath(target, os.path.join(here, folder, *found.names[:-1]))
        target = os.path.normpath(target)
        if not leads_inside(target, len(found.names) - 1):
            raise _UnsendableError(f"was not sent: it is a link to {found.link!a}, which leads out of its folder")
        return target

    # -- receiving -----------------------------------------------------------------------------------------------

    def _bring_subfolders(self, root: str) -> None:
        for tries in range(_TRIES_TO_FETCH):
            try:
                folders: dict[str, list[File]] = {}
                for file in self._files.list(root):
                    top = names_in(file.path)[0]
                    if not top.startswith("."):
                        folders.setdefault(top, []).append(file)
                with self._scratch.below(names_in(root), make=True) as here:
                    for name, files in folders.items():
                        if here.status(name) is None:
                            self._bring_folder(root, here, name, files)
            except StoreError:  # their writer may have replaced one while we fetched it
                if tries == _TRIES_TO_FETCH - 1:
                    raise
            else:
                return

    def _bring_folder(self, root: str, here: OpenFolder, name: str, files: list[File]) -> None:
        building = f"{TEMPORARY}{uuid.uuid4().hex}.wire"
        try:
            with here.below([building], make=True) as folder:
                for file in files:
                    _, *way = names_in(file.path)
                    with folder.below(way[:-1], make=True) as parent:
                        if file.link and leads_inside(file.link, len(way) - 1):
                            parent.make_link(way[-1], file.link)
                        elif not file.link:
                            self._receive(f"{root}/{file.path}", parent, way[-1])
            here.rename(building, name)
        except BaseException:
            here.remove_folder(building)
            raise

    def _bring(self, path: str) -> None:
        *way, name = names_in(path)
        with self._scratch.below(way, make=True) as folder:
            if folder.status(name) is not None:
                return
            part = f"{TEMPORARY}{uuid.uuid4().hex}"
            try:
                self._receive(path, folder, part)
                folder.rename(part, name)
            except BaseException:
                folder.remove_file(part)
                raise

    def _receive(self, remote: str, folder: OpenFolder, name: str) -> None:
        with os.fdopen(folder.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as out:
            while data := self._files.ask(Get, path=remote, offset=out.tell()).data:
                out.write(data)


class _UnsendableError(StoreError):
    """Something cannot be sent, and why; what is beside it can."""


def scratch_for(config: AgentConfig) -> Path:
    """Make the folder that stands for the project on this machine; returns it."""
    scratch = Path(settings.scratch_folder())
    scratch.mkdir(mode=0o700, exist_ok=True)
    (scratch / Path(config.folder).relative_to(config.project)).mkdir(parents=True, exist_ok=True)
    return scratch
