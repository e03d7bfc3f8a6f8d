"""An agent on a machine that does not see the project's disk: what its trials write goes to the driver by courier."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from cargobike.core import settings
from cargobike.workers.agent import Agent, Below
from cargobike.workers.connection import AgentConfig
from cargobike.workers.courier import Courier
from cargobike.workers.wire import (
    Assign,
    Bring,
    Brought,
    Output,
    Saved,
    Stored,
    decode_driver_message,
    decode_worker_message,
    encode_message,
)


def scratch_for(config: AgentConfig) -> Path:
    """Make the folder that stands for the project on this machine; returns it."""
    scratch = Path(settings.scratch_folder())
    scratch.mkdir(mode=0o700, exist_ok=True)
    (scratch / "experiments" / Path(config.experiment).name).mkdir(parents=True, exist_ok=True)
    return scratch


class RemoteAgent(Agent):
    """Brings checkpoints before a trial starts, and sends what it writes before its end is told.

    Args:
        config: What the driver has said.
        below: Connections to what is below.
        gpus: Devices of this worker.
        version: Version of Cargobike in the driver.
        scratch: The folder that stands for the project here.
    """

    def __init__(self, config: AgentConfig, below: Below, gpus: tuple[str, ...], version: str, scratch: Path) -> None:
        super().__init__(config, below, gpus, version)
        self._scratch = scratch
        self._experiment = scratch / "experiments" / Path(config.experiment).name
        self._courier = Courier(config, scratch)
        self._is_chief = True

    def _other_sources(self) -> dict[int, Callable[[], None]]:
        return {self._courier.wake_fd: self._courier.finish_jobs}

    @property
    def _may_leave(self) -> bool:
        return super()._may_leave and not self._courier.is_busy

    def _start(self, trial: int, raw: bytes) -> None:
        message = decode_driver_message(raw)
        assert isinstance(message, Assign)
        own = self._experiment / "trials" / f"{trial:04d}"
        roots = [own / "checkpoints"]
        if message.start_from is not None:
            source = self._scratch / Path(message.start_from).relative_to(self._config.project)
            roots.append(source)
            message = msgspec.structs.replace(message, start_from=str(source))
        begun = super()._start

        def begin(error: str) -> None:
            if error:
                self._complain(f"checkpoints could not be fetched from the driver: {error}")
            begun(trial, encode_message(message))

        self._is_chief = message.rank == 0
        self._courier.bring_checkpoints(roots, begin)
        self._courier.watch_logs(own / "logs")

    def _forward(self, kind: bytes, body: bytes) -> None:
        if kind == b"C":
            saved = decode_worker_message(body)
            assert isinstance(saved, Saved)
            arrived = functools.partial(self._saved, saved)
            self._courier.keep_checkpoint(Path(saved.path), arrived, alone=self._is_chief)
        elif kind == b"D":
            wanted = msgspec.msgpack.decode(body, type=Bring)
            self._courier.bring(wanted.path, lambda error: self._tell(Brought(wanted.path, error)))
        else:
            super()._forward(kind, body)

    def _saved(self, saved: Saved, error: str) -> None:
        if not error:
            there = Path(self._config.project) / Path(saved.path).relative_to(self._scratch)
            self._batch.append(encode_message(msgspec.structs.replace(saved, path=str(there))))
        self._tell(Stored(saved.trial, saved.attempt, saved.path, error))

    def _tell(self, message: Stored | Brought) -> None:
        try:
            self._below.runner.send(b"S" + encode_message(message))
        except OSError:
            pass  # the runner is gone

    def _deliver(self, ended: bytes) -> None:
        trial = f"{self._last_trial:04d}"
        folders = [self._experiment / "trials" / trial / "logs", self._experiment / "files" / trial]

        def tell(error: str) -> None:
            if error:
                self._complain(f"files of the trial could not be sent to the driver: {error}")
            super(RemoteAgent, self)._deliver(ended)

        checkpoints = self._experiment / "trials" / trial / "checkpoints"
        self._courier.keep_rest(folders, checkpoints if self._is_chief else None, tell)

    def _complain(self, text: str) -> None:
        """Let the user find it where the trial's own complaints are."""
        self._batch.append(encode_message(Output(self._last_trial, "stderr", f"cargobike: {text}\n".encode())))

    def close(self) -> None:
        """Let everything below end, and remove what stood for the project here."""
        super().close()
        shutil.rmtree(self._scratch, ignore_errors=True)
