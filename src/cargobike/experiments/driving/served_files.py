"""What workers that do not see the project's disk may read and write there; no link leads them elsewhere.

A worker's requests are not to be trusted: it runs code on another machine, which may know nothing of this one. Every
path begins in a folder that the worker may use now, and is walked from there name by name; links are never followed.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from cargobike.core import layout
from cargobike.core.layout import ExperimentFolder, ProjectFolder, TrialFolder
from cargobike.core.open_folder import LinkInTheWayError, OpenFolder, check_name, leads_inside, names_in
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.workers.files.requests import (
    CHUNK_BYTES,
    TEMPORARY,
    File,
    FileRequest,
    Get,
    Listing,
    Put,
    Reply,
    Settle,
    decode_request,
)
from cargobike.workers.wire.messages import Files

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rights:
    """What a worker may use while it runs a trial: the trial's folders, and checkpoints to begin with.

    Attributes:
        writable: Folders to write to and read from, by their names from the project on.
        readable: Folders to read from only, besides the project's data.
    """

    writable: tuple[Names, ...] = ()
    readable: tuple[Names, ...] = ()


NO_RIGHTS = Rights()


@dataclass(frozen=True, slots=True)
class _Place:
    """A path of a request: a folder that the worker may use, and the way down from there."""

    root: Names
    way: Names


class ServedFiles:
    """Reads and writes files for requests, and refuses what their sender has no right to."""

    def __init__(self, project: ProjectFolder, experiment: ExperimentFolder) -> None:
        self._project = project
        self._experiment = experiment
        self._own: Names = experiment.root.absolute().relative_to(project.root.absolute()).parts

    def rights(self, trial: int, source: int | None = None) -> Rights:
        """Return what a worker may use that runs a trial, which begins with the checkpoints of another one, if any."""
        folder = self._experiment.trial(trial)
        checkpoints = () if source is None else (self._names(self._experiment.trial(source).checkpoints),)
        return Rights((self._names(folder.root), self._names(folder.files)), checkpoints)

    def travelling(self, trial: int, source: int | None, *, prunes: bool) -> Files:
        """Return which files travel with a trial to a worker and back."""
        folder = self._experiment.trial(trial)
        checkpoints, logs, files = map(self._text, (folder.checkpoints, folder.logs, folder.files))
        begin_with = () if source is None else (self._text(self._experiment.trial(source).checkpoints),)
        return Files(
            bring=(checkpoints, *begin_with), follow=logs, deliver=(logs, files), prune=checkpoints if prunes else ""
        )

    def sweep(self, trial: int) -> None:
        """Remove what was sent in vain to a trial's folder; none of its workers may be sending."""
        sweep_trial(self._experiment.trial(trial))

    def _text(self, folder: Path) -> str:
        return "/".join(self._names(folder))

    def _names(self, folder: Path) -> Names:
        return (*self._own, *folder.relative_to(self._experiment.root).parts)

    def answer_bytes(self, body: bytes, rights: Rights) -> Reply:
        """Answer a message, whatever it is; its number is -1 if it is not a request."""
        try:
            request = decode_request(body)
        except UNDECODABLE as error:
            return Reply(-1, error=f"this is not a request: {error}")
        try:
            return self.answer(request, rights)
        except Exception as error:  # noqa: BLE001 - whatever a worker asks for, the others are served
            text = f"{type(error).__name__}: {error}".encode("utf-8", "replace").decode()
            return Reply(request.number, error=text[:1000])

    def answer(self, request: FileRequest, rights: Rights) -> Reply:
        """Do what a request asks for.

        Raises:
            ValueError: If a path is not one that the worker may use.
            OSError: If the file cannot be read or written.
        """
        if isinstance(request, Put):
            self._put(request, rights)
        elif isinstance(request, Settle):
            self._settle(request, rights)
        elif isinstance(request, Listing):
            return Reply(request.number, files=self._list(request, rights))
        elif isinstance(request, Get):
            return Reply(request.number, data=self._get(request, rights))
        return Reply(request.number)

    # -- places --------------------------------------------------------------------------------------------------

    def _place(self, text: str, allowed: tuple[Names, ...]) -> _Place:
        try:
            names = names_in(text)
        except ValueError as error:
            raise ValueError(f"{text[:200]!r} is not among the files of this worker's trial: {error}") from None
        for root in allowed:
            if names[: len(root)] == root:
                return _Place(root, names[len(root) :])
        raise ValueError(f"{text!r} is not among the files of this worker's trial")

    def _inside(self, text: str, allowed: tuple[Names, ...]) -> _Place:
        """Return the place of something in a folder that may be used, never that folder itself."""
        place = self._place(text, allowed)
        if not place.way:
            raise ValueError(f"{text!r} is not among the files of this worker's trial, but their folder")
        return place

    def _open(self, place: _Place, way: Names, *, make: bool = False) -> OpenFolder:
        """Open a folder; links count only on the way to the experiment or the data, where users may have put them."""
        if place.root[0] == layout.DATA:
            base, names = self._project.root / layout.DATA, way
        else:
            base, names = self._experiment.root, (*place.root[len(self._own) :], *way)
        with OpenFolder.at(base) as top:
            return top.below(names, make=make)

    def _readable(self, rights: Rights) -> tuple[Names, ...]:
        return (*rights.writable, *rights.readable, (layout.DATA,))

    # -- requests ------------------------------------------------------------------------------------------------

    def _get(self, request: Get, rights: Rights) -> bytes:
        place = self._inside(request.path, self._readable(rights))
        with self._open(place, place.way[:-1]) as folder:
            fd = folder.open_file(place.way[-1])
        try:
            return os.pread(fd, CHUNK_BYTES, request.offset)
        finally:
            os.close(fd)

    def _list(self, request: Listing, rights: Rights) -> list[File]:
        place = self._place(request.path, self._readable(rights))
        try:
            folder = self._open(place, place.way)
        except FileNotFoundError:
            return []
        files: list[File] = []
        with folder:
            for found in folder.walk():
                path = "/".join(found.names)
                if (found.is_file or found.link) and _is_text(path + found.link):
                    files.append(File(path, 0 if found.link else found.status.st_size, found.link))
        return files

    def _put(self, request: Put, rights: Rights) -> None:
        place = self._inside(request.path, rights.writable)
        name = place.way[-1]
        if request.link and not leads_inside(request.link, len(place.way) - 1):
            raise ValueError(f"{request.path!r} is a link to {request.link!r}, which is not in the trial's folder")
        with self._open(place, place.way[:-1], make=True) as folder:
            if request.link:
                folder.make_link(name, request.link)
                return
            try:
                fd = folder.open_file(name, os.O_WRONLY | os.O_CREAT)
            except LinkInTheWayError:
                folder.remove_file(name)
                fd = folder.open_file(name, os.O_WRONLY | os.O_CREAT)
        with os.fdopen(fd, "wb") as file:
            size = os.fstat(fd).st_size
            if request.offset > size:
                raise ValueError(f"{request.path!r} has only {size} bytes yet; send it from its beginning")
            file.seek(request.offset)
            file.write(request.data)
            file.truncate()

    def _settle(self, request: Settle, rights: Rights) -> None:
        place = self._inside(request.path, rights.writable)
        building, target = place.way[-1], request.name
        for name in (target, *request.replaces):
            check_name(name)
        with self._open(place, place.way[:-1]) as folder:
            if building.startswith(TEMPORARY) and folder.has_folder(building):
                with folder.below([building]) as built:
                    built.force()
                if request.alone:
                    folder.remove_folder(target)  # left by a lost attempt that had come as far
                while folder.status(target) is not None:
                    number, _, rest = target.partition("-")
                    target = f"{int(number) + 1:06d}-{rest}"
                folder.rename(building, target)
                os.fsync(folder.fd)
            elif not folder.has_folder(target):  # if it is there, this request came before, and its answer was lost
                raise FileNotFoundError(f"{request.path} is not there")
            for name in request.replaces:
                if name != target:
                    folder.remove_folder(name)


def sweep_trials(experiment: ExperimentFolder) -> None:
    """Remove what workers of earlier drivers sent in vain: since the lock is ours, those transfers never end."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(experiment.trials):
            sweep_trial(TrialFolder(experiment.trials / name))


def sweep_trial(trial: TrialFolder) -> None:
    """Remove folders of which only a part has arrived, among the checkpoints of a trial and of its servers."""
    with contextlib.suppress(OSError):  # the trial has written nothing
        for parent, folders, _, fd in os.fwalk(trial.root):
            way = Path(parent).relative_to(trial.root).parts
            for name in folders:
                if name.startswith(TEMPORARY):
                    OpenFolder(fd).remove_folder(name)
            inner = {(): (layout.CHECKPOINTS, layout.SERVERS), (layout.SERVERS,): folders}.get(way, ())
            folders[:] = [name for name in folders if name in inner]


def _is_text(path: str) -> bool:
    """Tell whether a path can be sent; names on disk may be any bytes."""
    return path.isascii() or not any("\ud800" <= character <= "\udfff" for character in path)
