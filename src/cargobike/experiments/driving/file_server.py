"""Serves the project's folder to workers that do not see its disk: checkpoints, artifacts, TensorBoard files, data.

It has a thread of its own, so that gigabytes of checkpoints do not delay a verdict. It answers only workers of the
experiment, each recognized by its key, as on the wire. While a worker runs a trial it may write to that trial's
folders, and read these, the checkpoints that the trial begins with, and the project's data.
"""

from __future__ import annotations

import logging
import threading
from collections import deque

import zmq

from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.experiments.driving.served_files import NO_RIGHTS, Rights, ServedFiles
from cargobike.workers.files.requests import encode
from cargobike.workers.wire.messages import Files

log = logging.getLogger(__name__)

_LOOK_UP_MS = 200
_PAUSE_S = 0.1


class FileServer:
    """Answers requests for files until it is closed, whatever arrives.

    Args:
        router: A socket that admits workers of the experiment only; it is used by this server's thread from now on.
        project: The project's folder.
        experiment: The experiment's folder in it.
    """

    def __init__(self, router: zmq.Socket[bytes], project: ProjectFolder, experiment: ExperimentFolder) -> None:
        self._router = router
        self._files = ServedFiles(project, experiment)
        self._rights: dict[str, Rights] = {}
        self._trials: dict[str, int] = {}
        self._left: deque[int] = deque()
        self._warned: set[str] = set()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="cargobike-files", daemon=True)
        self._thread.start()

    def allow(self, worker: str, trial: int, source: int | None = None, *, prunes: bool = True) -> Files:
        """Give a worker the folders of the trial that it is about to run, in the place of what it had.

        Args:
            worker: The worker.
            trial: The trial.
            source: The trial whose checkpoints it begins with.
            prunes: Whether it deletes checkpoints, as only rank 0 does.

        Returns:
            What travels with the trial.
        """
        self.disallow(worker)
        self._trials[worker] = trial
        self._rights[worker] = self._files.rights(trial, source)
        return self._files.travelling(trial, source, prunes=prunes)

    def disallow(self, worker: str) -> None:
        """Take from a worker what it had: its trial has ended, or it is lost and another may run the trial."""
        self._rights.pop(worker, None)
        trial = self._trials.pop(worker, None)
        if trial is not None and trial not in self._trials.values():
            self._left.append(trial)

    def close(self) -> None:
        """Stop serving, and wait until the thread has ended."""
        self._closing.set()
        self._thread.join()

    def _serve(self) -> None:
        try:
            while not self._closing.is_set():
                try:
                    is_asked = self._router.poll(_LOOK_UP_MS)
                    self._sweep()  # first: the request may come from the trial's next attempt
                    if is_asked:
                        self._hear()
                except zmq.ContextTerminated:
                    return
                except Exception:
                    log.warning("a worker's request for files could not be handled", exc_info=True)
                    self._closing.wait(_PAUSE_S)
            self._sweep()
        finally:
            self._router.close(0)

    def _sweep(self) -> None:
        """Remove what lost workers have sent in part, where the last worker of a trial is done with it."""
        while self._left:
            self._files.sweep(self._left.popleft())

    def _hear(self) -> None:
        sender, *frames = self._router.recv_multipart(copy=False)
        worker = frames[0].get("User-Id") if frames else ""
        if len(frames) != 1 or not isinstance(worker, str):
            self._warn(str(worker), f"{len(frames)} frames")
            return
        reply = self._files.answer_bytes(frames[0].bytes, self._rights.get(worker, NO_RIGHTS))
        if reply.number < 0:
            self._warn(worker, reply.error)
        self._router.send_multipart([sender.bytes, encode(reply)])

    def _warn(self, worker: str, what: str) -> None:
        """Say once that a worker sends nonsense, not as often as it does."""
        if worker not in self._warned:
            self._warned.add(worker)
            log.warning("worker %s sent something that is not a request for files (%s); it is ignored", worker, what)
