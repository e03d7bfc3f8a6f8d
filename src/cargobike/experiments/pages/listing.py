"""The list of experiments, from the index, with how each went in a few points."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.core.facts import EXPERIMENT_FACTS, ExperimentStarted
from cargobike.core.goals import Goals, read_constraints
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import ExperimentState, TrialState
from cargobike.experiments.index.index import ExperimentRow, ExperimentSort, Index
from cargobike.experiments.index.opening import open_index
from cargobike.store.files.locking import is_held
from cargobike.store.journal.journal import read_header
from cargobike.ui.web.overview.refreshed import Lately

_REST_S: Final = 1.0
_SHARE: Final = 10.0
"""The share of time that catching up may take: one that took a second is not repeated for ten."""
MOST_POINTS: Final = 40
_GOODBYE_S: Final = 1.0
PATIENCE_S: Final = 30.0
"""How long an answer waits for the index to catch up; a page waits less."""


class _Sync(threading.Thread):
    """One round of catching up with all journals."""

    def __init__(self, index: Index) -> None:
        super().__init__(name="cargobike-ui-sync", daemon=True)
        self._index = index
        self.done = threading.Event()
        self.took_s = 0.0
        self.error: StoreError | None = None

    def run(self) -> None:
        """Catch up, and keep an error for the requests that wait."""
        began = time.monotonic()
        try:
            self._index.sync()
        except StoreError as error:
            self.error = error
        finally:
            self.took_s = time.monotonic() - began
            self.done.set()


class Listing:
    """Answers from the project's index, which is caught up with the journals in the background, never too often."""

    def __init__(self, project: ProjectFolder) -> None:
        self.project = project
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._index: Index | None = None
        self._rest_until = 0.0
        self._syncing: _Sync | None = None
        self._kept: dict[tuple[ExperimentSort, bool], Lately[list[ExperimentRow]]] = {}
        self._progress: dict[str, tuple[float, list[float] | None]] = {}

    def experiments(
        self,
        *,
        states: Sequence[ExperimentState] = (),
        sort: ExperimentSort = "started",
        descending: bool = True,
        words: str = "",
        patience_s: float = PATIENCE_S,
    ) -> list[ExperimentRow]:
        """Return experiments whose name, id, function, description or optimizer holds all words."""
        is_complete = self.catch_up(patience_s)
        rows = self._rows(states, sort, descending=descending)
        if not is_complete and not states:
            rows = [*self._unknown(rows), *rows]
        parts = words.lower().split()
        if not parts:
            return rows
        return [row for row in rows if all(word in _text(row) for word in parts)]

    def _rows(
        self, states: Sequence[ExperimentState], sort: ExperimentSort, *, descending: bool
    ) -> list[ExperimentRow]:
        def read() -> list[ExperimentRow]:
            return self._opened().experiments(states=states, sort=sort, descending=descending)

        return read() if states else self._kept.setdefault((sort, descending), Lately(read)).get()

    def known(self, experiment_id: str) -> ExperimentRow | None:
        """Return what the index has already read of an experiment; `None` if it never saw it."""
        try:
            return self._opened().experiment(experiment_id)
        except NotFoundError:
            return None

    def progress(self, row: ExperimentRow) -> list[float] | None:
        """Return the best value so far as a few points, `None` if nothing has a value yet."""
        entry = self._progress.get(row.id)
        if entry is None or entry[0] != row.last_at:
            scores = self._allowed(row) if row.header.constraints else self._opened().scores(row.id)
            entry = self._progress[row.id] = (row.last_at, few_points([score for _, score in scores], row.header))
        return entry[1]

    def _allowed(self, row: ExperimentRow) -> list[tuple[int, float]]:
        """Return the scores of trials that keep all limits."""
        goals = Goals(constraints=read_constraints(row.header.constraints))
        trials = self._opened().trials(row.id, states=[TrialState.COMPLETED], sort="ended")
        return [
            (each.number, each.value)
            for each in trials
            if each.value is not None and math.isfinite(each.value) and not goals.violation(each.metrics) > 0
        ]

    def prepare(self) -> None:
        """Open the index in advance; reads no journal."""
        self._opened()

    def catch_up(self, patience_s: float = PATIENCE_S) -> bool:
        """Bring the index up to date unless that was just done; returns whether it is.

        A first look at very long journals takes a while. After `patience_s` this returns with what is known by then;
        the rest follows in the background.

        Raises:
            StoreError: If the index cannot be used.
        """
        with self._lock:
            syncing = self._syncing
            if syncing is None:
                if time.monotonic() < self._rest_until:
                    return True
                syncing = self._syncing = _Sync(self._opened())
                syncing.start()
        if not syncing.done.wait(patience_s):
            return False
        with self._lock:
            if self._syncing is syncing:
                self._syncing = None
                self._rest_until = time.monotonic() + max(_REST_S, _SHARE * syncing.took_s)
        if syncing.error is not None:
            raise syncing.error
        return True

    def _unknown(self, indexed: Sequence[ExperimentRow]) -> list[ExperimentRow]:
        """Return experiments that the index has not seen yet, made from the first lines of their journals."""
        ids = {row.id for row in indexed}
        rows = []
        for journal in self.project.journals:
            folder = self.project.experiment(journal.parent.name)
            header = None if folder.id in ids else read_header(journal, EXPERIMENT_FACTS)
            if header is not None:
                state = ExperimentState.RUNNING if is_held(folder) else ExperimentState.COMPLETED
                note = "its journal is being read"
                rows.append(
                    ExperimentRow(
                        id=folder.id, header=header, state=state, started_at=header.at, last_at=header.at, problem=note
                    )
                )
        return sorted(rows, key=lambda row: -row.started_at)

    def close(self) -> None:
        """Close the index, once a round of catching up that is under way has ended."""
        if self._syncing is not None:
            self._syncing.join(_GOODBYE_S)
        with self._opening:
            if self._index is not None:
                self._index.close()
                self._index = None

    def _opened(self) -> Index:
        with self._opening:
            if self._index is None:
                self._index = open_index(self.project)
            return self._index


def _text(row: ExperimentRow) -> str:
    header = row.header
    return " ".join((header.name, row.id, header.function, header.description, header.optimizer)).lower()


def few_points(scores: Sequence[float], header: ExperimentStarted) -> list[float] | None:
    """Return the best so far of finite scores, in their order, as a few points; `None` if there is none to draw."""
    if header.objectives or not scores:
        return None
    series = list(accumulate(scores, max if header.direction == "max" else min))
    step = max(1, len(series) / MOST_POINTS)
    picked = [series[min(len(series) - 1, round(index * step))] for index in range(min(MOST_POINTS, len(series)))]
    return [*picked[:-1], series[-1]]
