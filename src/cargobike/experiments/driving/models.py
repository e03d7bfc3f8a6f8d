"""Registers the models that train functions have kept, in a thread beside the driver, when trials have completed."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Sequence
from typing import Final

from cargobike.core.facts import Fact, TrialEnded
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial, TrialState

PATIENCE_S: Final = 3600.0
_SNAPSHOT_S: Final = 10.0
_LOOK_S: Final = 0.05

_log = logging.getLogger(__name__)


class ModelRegistrar:
    """A callback of the driver that registers models.

    Guarantees: a model is registered once, however often its trial is looked at, so a driver that takes over an
    experiment looks at all trials that have completed. A model that cannot be registered is named in a warning, with
    what to do; it stays among the trial's files. Nothing is imported and no thread is started before a model was kept.

    Args:
        folder: The experiment's folder.
        record: What is known of it, also of the past of one that is resumed.
    """

    def __init__(self, folder: ExperimentFolder, record: ExperimentRecord) -> None:
        self._folder = folder
        self._record = record
        self._waiting: queue.SimpleQueue[tuple[Trial, str] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def catch_up(self) -> None:
        """Look at all trials that completed under an earlier driver."""
        for number in self._record.models:
            if self._record.runs[number].state is TrialState.COMPLETED:
                self._completed(number)

    def on_facts(self, facts: Sequence[Fact]) -> None:
        """Begin to register the models of trials that have completed just now."""
        for fact in facts:
            if isinstance(fact, TrialEnded) and fact.state == "completed" and fact.trial in self._record.models:
                self._completed(fact.trial)

    def close(self) -> None:
        """Wait until all models are registered; large ones take their time."""
        if self._thread is None:
            return
        self._waiting.put(None)
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            _log.warning("%s: not all models were registered within %g s", self._folder.id, PATIENCE_S)

    def _completed(self, number: int) -> None:
        trial = self._record.runs[number]
        for name in dict.fromkeys(fact.name for fact in self._record.models[number]):
            self._waiting.put((trial, name))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="cargobike-models", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        self._await_snapshot()
        while (one := self._waiting.get()) is not None:
            trial, name = one
            try:
                self._register(trial, name)
            except Exception as error:  # noqa: BLE001 - an experiment is worth more than the registration of a model
                _log.warning(
                    "%s: the model %s of trial %d was not registered: %s: %s. "
                    "It lies among the files of the trial: cargobike models register %s --trial %s/%d",
                    self._folder.id,
                    name,
                    trial.number,
                    type(error).__name__,
                    error,
                    name,
                    self._folder.id,
                    trial.number,
                )

    def _register(self, trial: Trial, name: str) -> None:
        # Most experiments keep no model, and every launch would wait for these.
        from cargobike.core.registering.modelling import model_keeper  # noqa: PLC0415
        from cargobike.experiments.results.trained import packed_in, trained_by  # noqa: PLC0415

        # A name comes from a worker: only folders that are there count, and none that it could lead to.
        folder = packed_in(self._folder, trial.number).get(name)
        if folder is None:
            raise FileNotFoundError("it did not arrive")
        version = model_keeper().register_packed(folder, trained_by(trial, self._folder, None))
        _log.info("%s: trial %d became %s:%d", self._folder.id, trial.number, version.name, version.version)

    def _await_snapshot(self) -> None:
        """Wait for the snapshot of code and packages, which models refer to; it is taken beside the first trial."""
        give_up_at = time.monotonic() + _SNAPSHOT_S
        while not self._folder.snapshot.exists() and time.monotonic() < give_up_at:
            time.sleep(_LOOK_S)
