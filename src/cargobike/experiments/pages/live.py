"""Experiments in memory, each a folded journal that is read on at the next request."""

from __future__ import annotations

import gc
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from cargobike.core.errors import NotFoundError
from cargobike.core.facts import AnyFact, Reported
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.core.record import ExperimentRecord, fold
from cargobike.core.records import Curve, ExperimentState
from cargobike.experiments.reading import Curves, journal_reader, settle
from cargobike.store.files.mirror import fetch, refresh
from cargobike.store.files.shared import shared_url

_BYTES_AT_ONCE: Final = 4 << 20
MOST_EXPERIMENTS: Final = 12
_FETCH_EVERY_S: Final = 3.0
MOST_POINTS: Final = 6_000_000


class LiveExperiment:
    """One experiment, kept up to date; use it inside `with live.reading() as record`.

    Attributes:
        version: Grows with every change; what was made from one version is right until the next.
        points: How many points of all metrics are kept.
    """

    def __init__(self, folder: ExperimentFolder) -> None:
        self.folder = folder
        self.version = 0
        self.points = 0
        self._lock = threading.RLock()
        self._reader = journal_reader(folder)
        self._record: ExperimentRecord | None = None
        self._others: dict[int, Curves] = {}
        self._seen: tuple[int, int] | None = None
        self._made: dict[Any, tuple[int, Any]] = {}

    @property
    def is_read(self) -> bool:
        """Whether the journal has been read, so that reading on takes no longer than what was added."""
        return self._seen is not None

    @contextmanager
    def reading(self) -> Iterator[ExperimentRecord]:
        """Give the record as it is now; it does not change while it is looked at.

        Raises:
            NotFoundError: If its journal is gone.
            StoreError: If its journal cannot be read.
        """
        with self._lock:
            self._read_on()
            assert self._record is not None
            yield self._record

    def metrics(self, trial: int) -> dict[str, Curve]:
        """Return every reported point of one trial by metric, the objective first; only inside `reading`."""
        record = self._record
        curves = dict[str, Curve]()
        run = (record.trials.get(trial) or record.runs.get(trial)) if record is not None else None
        if record is not None and run is not None and len(run.curve):
            curves[record.objective or "value"] = run.curve
        others = self._others.get(trial)
        if others is not None:
            curves |= {name: curve for name, curve in others.by_metric.items() if len(curve)}
        return curves

    def made(self, key: Any, make: Callable[[ExperimentRecord], Any]) -> tuple[int, Any]:
        """Return what `make` makes of the record, and of which version; made once for each version."""
        with self.reading() as record:
            entry = self._made.get(key)
            if entry is None or entry[0] != self.version:
                if len(self._made) > 200:
                    self._made.clear()
                entry = self._made[key] = (self.version, make(record))
            return entry

    def _read_on(self) -> None:
        try:
            stat = self.folder.journal.stat()
        except OSError as error:
            raise NotFoundError(f"There is no experiment {self.folder.id!r}.") from error
        seen = (stat.st_size, stat.st_mtime_ns)
        record = self._record
        if record is not None and seen == self._seen and record.state is not ExperimentState.RUNNING:
            return
        if stat.st_size < self._reader.offset:  # replaced by another, as after an import or a repair
            self._reader = journal_reader(self.folder)
            self._record, self._others, self.points = None, {}, 0
        with _without_collections():
            self._read_all()
        self._seen = seen

    def _read_all(self) -> None:
        while new := self._reader.read_new(_BYTES_AT_ONCE):
            if self._record is None:
                self._record = fold(new[:1])
                new = new[1:]
            self._apply(new)
            self.version += 1
        if self._record is None:
            raise NotFoundError(f"Experiment {self.folder.id!r} has not begun yet.")
        before = self._record.state
        fresh = settle(self._record, self._reader, self.folder)
        for fact in fresh:
            if type(fact) is Reported:
                self._keep(fact)
        self.version += bool(fresh) or before is not self._record.state

    def _apply(self, facts: list[AnyFact]) -> None:
        assert self._record is not None
        apply = self._record.apply
        for fact in facts:
            apply(fact)
            if type(fact) is Reported:
                self._keep(fact)

    def _keep(self, fact: Reported) -> None:
        """Keep the points of metrics other than the objective, which the record has."""
        assert self._record is not None
        objective, metrics = self._record.objective, fact.metrics
        self.points += len(metrics)
        curves = self._others.get(fact.trial)
        if curves is None:
            if len(metrics) == 1 and objective in metrics:
                return
            curves = self._others[fact.trial] = Curves()
            curves.reports = (fact.number or self._record.runs[fact.trial].reports) - 1
        curves.add(fact, but=objective)


class LiveExperiments:
    """The experiments that were looked at last; others are dropped, and read again when they are needed."""

    def __init__(self, project: ProjectFolder) -> None:
        self.project = project
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, LiveExperiment] = OrderedDict()
        self._fetched_at_s: dict[str, float] = {}

    def with_files(self, experiment_id: str) -> LiveExperiment:
        """Return an experiment like `get`, its logs and files brought here if the project is on shared storage."""
        live = self.get(experiment_id)
        if shared_url(self.project):
            now_s = time.monotonic()
            if now_s - self._fetched_at_s.get(experiment_id, -_FETCH_EVERY_S) >= _FETCH_EVERY_S:
                fetch(live.folder)
                self._fetched_at_s[experiment_id] = time.monotonic()
        return live

    def get(self, experiment_id: str) -> LiveExperiment:
        """Return an experiment by its full id, whether it has been read or not.

        Raises:
            NotFoundError: If there is no such experiment.
        """
        refresh(self.project)  # does nothing unless the project is on shared storage
        with self._lock:
            live = self._kept.get(experiment_id)
            if live is None:
                folder = self.project.experiment(experiment_id)
                if not folder.journal.is_file():
                    raise NotFoundError(f"There is no experiment {experiment_id!r}.")
                live = self._kept[experiment_id] = LiveExperiment(folder)
            self._kept.move_to_end(experiment_id)
            self._drop_oldest()
            return live

    def _drop_oldest(self) -> None:
        while len(self._kept) > 1 and (
            len(self._kept) > MOST_EXPERIMENTS or sum(each.points for each in self._kept.values()) > MOST_POINTS
        ):
            self._kept.popitem(last=False)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Keep the garbage collector from walking over a million facts again and again; they form no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
