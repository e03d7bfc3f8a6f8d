"""Serves the project's folder to workers that do not see its disk: checkpoints, artifacts, TensorBoard files, data.

It has a thread of its own, so that gigabytes of checkpoints do not delay a verdict. It answers only workers of the
experiment (with the same keys as on the wire). They may write to the folders of trials of their own experiment, and
read these and the project's data.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from pathlib import Path, PurePosixPath

import msgspec
import zmq

from cargobike.core import layout
from cargobike.core.layout import ExperimentFolder, ProjectFolder
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
    encode,
)

log = logging.getLogger(__name__)

_LOOK_UP_MS = 200


class FileServer:
    """Answers requests for files until it is closed.

    Args:
        router: A socket that admits workers of the experiment only; it is used by this server's thread from now on.
        project: The project's folder.
        experiment: The experiment's folder in it.
    """

    def __init__(self, router: zmq.Socket[bytes], project: ProjectFolder, experiment: ExperimentFolder) -> None:
        self._router = router
        self._files = ServedFiles(project, experiment)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="cargobike-files", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving, and wait until the thread has ended."""
        self._closing.set()
        self._thread.join()

    def _serve(self) -> None:
        try:
            while not self._closing.is_set():
                if self._router.poll(_LOOK_UP_MS):
                    sender, body = self._router.recv_multipart()
                    self._router.send_multipart([sender, encode(self._answer(body))])
        finally:
            self._router.close(0)

    def _answer(self, body: bytes) -> Reply:
        try:
            request: FileRequest = decode_request(body)
        except msgspec.MsgspecError as error:
            return Reply(-1, error=f"this is not a request: {error}")
        try:
            return self._files.answer(request)
        except (OSError, ValueError) as error:
            return Reply(request.number, error=f"{type(error).__name__}: {error}")


class ServedFiles:
    """Reads and writes files for requests, and refuses paths that do not belong to the experiment."""

    def __init__(self, project: ProjectFolder, experiment: ExperimentFolder) -> None:
        self._root = project.root.resolve()
        own = experiment.root.resolve().relative_to(self._root)
        self._writable = (PurePosixPath(own, layout.TRIALS), PurePosixPath(own, layout.FILES))
        self._readable = (*self._writable, PurePosixPath(layout.DATA))

    def answer(self, request: FileRequest) -> Reply:
        """Do what a request asks for.

        Raises:
            ValueError: If a path is not one that workers may use.
            OSError: If the file cannot be read or written.
        """
        if isinstance(request, Put):
            self._put(request)
        elif isinstance(request, Settle):
            self._settle(request)
        elif isinstance(request, Listing):
            return Reply(request.number, files=_files_under(self._path(request.path, self._readable)))
        elif isinstance(request, Get):
            with self._path(request.path, self._readable).open("rb") as file:
                file.seek(request.offset)
                return Reply(request.number, data=file.read(CHUNK_BYTES))
        return Reply(request.number)

    def _path(self, text: str, allowed: tuple[PurePosixPath, ...]) -> Path:
        """Return the path of a file that a request names, if it is inside one of the allowed folders."""
        path = PurePosixPath(text)
        inside = any(folder in (path, *path.parents) for folder in allowed)
        if path.is_absolute() or ".." in path.parts or not inside:
            raise ValueError(f"{text!r} is not among the files of this experiment")
        target = self._root / path
        if self._root not in (target.parent.resolve() / target.name).parents:
            raise ValueError(f"{text!r} leads out of the project through a link")
        return target

    def _put(self, request: Put) -> None:
        target = self._path(request.path, self._writable)
        target.parent.mkdir(parents=True, exist_ok=True)
        if request.link:
            target.unlink(missing_ok=True)
            target.symlink_to(request.link)
            return
        if target.is_symlink():
            target.unlink()
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.seek(request.offset)
            file.write(request.data)
            file.truncate()

    def _settle(self, request: Settle) -> None:
        folder = self._path(request.path, self._writable)
        target = self._path(str(PurePosixPath(request.path).parent / request.name), self._writable)
        if folder.name.startswith(TEMPORARY) and folder.is_dir():
            for parent, _, names in os.walk(folder):
                for name in names:
                    _force(Path(parent, name))
                _force(Path(parent))
            if request.alone:
                shutil.rmtree(target, ignore_errors=True)  # left by a lost attempt that had come as far
            while target.exists():
                number, _, rest = target.name.partition("-")
                target = target.with_name(f"{int(number) + 1:06d}-{rest}")
            os.rename(folder, target)
            _force(target.parent)
        elif not target.is_dir():  # if it is, this request came before, and only its answer was lost
            raise FileNotFoundError(f"{request.path} is not there")
        for name in request.replaces:
            doomed = self._path(str(PurePosixPath(request.path).parent / name), self._writable)
            if doomed != target:
                shutil.rmtree(doomed, ignore_errors=True)


def _files_under(folder: Path) -> list[File]:
    files: list[File] = []
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            relative = path.relative_to(folder).as_posix()
            if path.is_symlink():
                files.append(File(relative, 0, os.readlink(path)))
            else:
                files.append(File(relative, path.stat().st_size))
    return files


def _force(path: Path) -> None:
    if path.is_symlink():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
