"""Keeps the code of an experiment and a snapshot of its environment, once its first trial is on its way."""

from __future__ import annotations

import functools
import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cargobike.core.errors import StoreError
from cargobike.core.facts import AttemptStarted, Fact
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.running.descriptors import FREE_DESCRIPTORS_WITHIN_S, from_reserve, is_out_of_descriptors

if TYPE_CHECKING:
    from cargobike.experiments.driving.models import ModelRegistrar

log = logging.getLogger(__name__)

HEAD_START_S = 0.2
PATIENCE_S = 600.0
_TRY_AGAIN_S = 0.25


class KeptModels:
    """Has models registered once a train function has kept one; most keep none, and need not wait for what does it.

    Args:
        folder: The experiment's folder.
        record: What is known of it, also of the past of one that is resumed.
    """

    def __init__(self, folder: ExperimentFolder, record: ExperimentRecord) -> None:
        self._folder = folder
        self._record = record
        self._registrar: ModelRegistrar | None = None

    def on_facts(self, facts: Sequence[Fact]) -> None:
        """Pass facts on once there is a model; the first time, all trials that completed before are looked at."""
        if self._registrar is not None:
            self._registrar.on_facts(facts)
        elif self._record.models:
            from cargobike.experiments.driving.models import ModelRegistrar  # noqa: PLC0415

            self._registrar = ModelRegistrar(self._folder, self._record)
            self._registrar.catch_up()

    def close(self) -> None:
        """Wait until all models are registered."""
        self.on_facts(())  # an experiment that was resumed may have had nothing left to do
        if self._registrar is not None:
            self._registrar.close()


class CodeKeeper:
    """Writes the code at the first facts after the start, and takes the snapshot beside the driver in a thread.

    The snapshot begins a moment after the first trial was sent to a worker: before, it would delay that trial.

    Args:
        folder: The experiment's folder.
        files: The files to write at once, by name, in this order; empty ones are left out.
        function_file: File that the train function is defined in.
        resources: Files and folders that the user wants to be kept.
        remark: A remark to write into the snapshot, if there is one.
    """

    def __init__(
        self,
        folder: ExperimentFolder,
        files: dict[str, bytes | None],
        *,
        function_file: str = "",
        resources: tuple[Path, ...] = (),
        remark: str = "",
    ) -> None:
        self._folder = folder
        self._files = files
        self._function_file = function_file
        self._resources = resources
        self._remark = remark
        self._directory = os.getcwd()
        self._has_written = False
        self._is_closing = threading.Event()
        self._thread: threading.Thread | None = None

    def on_facts(self, facts: Sequence[Fact]) -> None:
        """Write the files when the first facts after the start come in, take the snapshot when a trial has begun."""
        if self._thread is not None:
            return
        if not self._has_written:
            self._write()
        if any(isinstance(fact, AttemptStarted) for fact in facts):
            self._thread = threading.Thread(target=self._take, name="cargobike-snapshot", daemon=True)
            self._thread.start()

    def _write(self) -> None:
        self._has_written = True
        try:
            self._folder.code.mkdir(exist_ok=True)
            for name, data in self._files.items():
                if data:
                    # Whole or not at all: a driver that is killed meanwhile must not leave half a recipe.
                    path = self._folder.code / name
                    begun = path.with_name(f".{name}.new")
                    from_reserve(functools.partial(begun.write_bytes, data))
                    begun.replace(path)
        except OSError as error:
            raise StoreError(
                f"The code of {self._folder.id} cannot be written to {self._folder.code}: {error.strerror}. "
                "Without it the experiment could not be resumed; make room or choose another project, and start again."
            ) from error

    def close(self) -> None:
        """Wait until the snapshot is whole; large resources take their time."""
        self._is_closing.set()
        if self._thread is None:
            return
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            log.warning("%s: its snapshot was not finished within %g s and is not whole", self._folder.id, PATIENCE_S)

    def _take(self) -> None:
        self._is_closing.wait(HEAD_START_S)
        give_up_at = time.monotonic() + FREE_DESCRIPTORS_WITHIN_S
        while True:
            try:
                self._take_now()
            except Exception as error:  # noqa: BLE001 - an experiment is worth more than its snapshot
                if is_out_of_descriptors(error) and time.monotonic() < give_up_at:
                    time.sleep(_TRY_AGAIN_S)
                    continue
                log.warning("%s: no snapshot could be taken: %s: %s", self._folder.id, type(error).__name__, error)
            return

    def _take_now(self) -> None:
        # Loading this module is the largest part of the work, and no trial may wait for it.
        from cargobike.store.history.snapshot import take_snapshot  # noqa: PLC0415

        take_snapshot(
            self._folder,
            function_file=self._function_file,
            directory=self._directory,
            resources=self._resources,
            remark=self._remark,
        )
