"""A query of Structured Streaming as a follower: batches are taken one by one, and rows are summed by executors."""

from __future__ import annotations

import contextlib
import queue
import shutil
import tempfile
import threading
import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import Stretch
from cargobike.engines.spark.session import OwnContext, active_context
from cargobike.monitoring.states.layout import Layout
from cargobike.monitoring.states.state import State
from cargobike.monitoring.streaming.source import FORMAT, LogSource, splitter_of
from cargobike.monitoring.streaming.tasks import PREPARED, SUMMED, preparing, summing
from cargobike.monitoring.watching.far import Places

_WAIT_S: Final = 0.5
"""How long one waits for a batch before saying that there is nothing new."""
_EVERY: Final = "1 second"
_SETTINGS: Final = {"spark.sql.shuffle.partitions": "2"}


class _Batch:
    """A batch that was handed over; Spark's thread waits until it is done."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.done = threading.Event()


class SparkRows:
    """The rows of a batch, in executors; here are their times and versions."""

    def __init__(self, prepared: Any, layout: Layout) -> None:
        self._prepared = prepared
        self._layout = layout
        pieces = sorted(prepared.drop("features").collect(), key=lambda piece: piece["number"])
        ats = [np.frombuffer(bytes(piece["ats"]), np.float64) for piece in pieces]
        self.start, self.end = pieces[0]["start"], pieces[0]["end"]
        self.ats = np.concatenate(ats)
        self.versions = np.concatenate([np.frombuffer(bytes(piece["versions"]), np.int64) for piece in pieces])
        self._ends = np.cumsum([len(some) for some in ats])

    def sum(self, cuts: Sequence[Places]) -> list[list[State]]:
        """Have rows summed."""
        wanted: dict[int, list[tuple[int, Places]]] = {}
        begins = np.concatenate([[0], self._ends[:-1]])
        for cut, places in enumerate(cuts):
            of = np.searchsorted(self._ends, places, "right")
            for number in np.unique(of):
                wanted.setdefault(int(number), []).append((cut, places[of == number] - begins[number]))
        try:
            features = self._prepared.select("number", "features")
            summed = features.mapInArrow(summing(self._layout, wanted), SUMMED).collect()
        except Exception as error:
            raise StoreError(f"Spark cannot sum rows: {_words(error)}") from error
        states: list[list[State]] = [[] for _ in cuts]
        for one in sorted(summed, key=lambda one: (one["cut"], one["number"])):
            states[one["cut"]].append(State.decode(bytes(one["state"]), self._layout))
        return states

    def let_go(self) -> None:
        """Free what executors hold of it."""
        with contextlib.suppress(Exception):  # Spark may be gone
            self._prepared.unpersist()


class SparkFollower:
    """Follows a log with a streaming query: made, used and closed by one thread.

    The rows of a stretch are `SparkRows`. A batch counts as read when the next one is asked for: until then Spark does
    not go on. A query that fails, because the log cannot be reached or executors are lost, is an error that is waited
    out: the next follower begins a new query where the monitor is.

    Args:
        deployment: Whose log.
        project: The project.
        layout: What states count.
        master: Where Spark runs, if no session runs in this process; by default what Spark's own settings say.
    """

    def __init__(self, deployment: str, project: ProjectFolder, layout: Layout, master: str | None = None) -> None:
        self._deployment, self._project, self._layout = deployment, project, layout
        self._log = splitter_of(deployment, project)
        self._own: OwnContext | None = None
        context = active_context()
        if context is None:
            self._own = OwnContext(master, _SETTINGS)
            context = self._own.context
        self._session = SparkSession(context, options={"spark.sql.execution.arrow.maxRecordsPerBatch": "1"})
        self._session.dataSource.register(LogSource)
        self._batches: queue.SimpleQueue[_Batch] = queue.SimpleQueue()
        self._taken: _Batch | None = None
        self._rows: SparkRows | None = None
        self._query: StreamingQuery | None = None
        self._folder = tempfile.mkdtemp(prefix="cargobike-stream-")
        self._closing = threading.Event()

    def read(self, position: str, most: int) -> Stretch:
        """Return the next batch; no rows if none comes for a moment."""
        if self._query is None:
            self._query = self._started(position, most)
        self._release()
        try:
            batch = self._batches.get(timeout=_WAIT_S)
        except queue.Empty:
            self._check(self._query)
            return Stretch(_Nothing(), position, more=self._log.ahead(position, 1) != position)
        self._taken = batch
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # about pandas, which is not used here
                prepared = batch.frame.mapInArrow(preparing(self._layout), PREPARED).persist()
                rows = self._rows = SparkRows(prepared, self._layout)
        except Exception as error:
            raise StoreError(f"Spark cannot read the log of {self._deployment}: {_words(error)}") from error
        if rows.start != position:
            raise StoreError(f"Spark has read the log of {self._deployment} from another place; it begins anew.")
        return Stretch(rows, rows.end, more=True)

    def end(self) -> str:
        """Not asked of a query: those who want only what comes ask the log itself."""
        raise NotImplementedError

    def close(self) -> None:
        """End the query, and Spark if it was started for it."""
        self._closing.set()
        self._release()
        if self._query is not None:
            with contextlib.suppress(Exception):  # its Java may be dead already
                self._query.stop()
            self._query = None
        if self._own is not None:
            self._own.stop()
            self._own = None
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _started(self, position: str, most: int) -> StreamingQuery:
        options = {
            "deployment": self._deployment,
            "project": str(self._project.root),
            "position": position,
            "most": str(10 * most),
        }
        try:
            stream = self._session.readStream.format(FORMAT).options(**options).load()
            return (
                stream.writeStream.foreachBatch(self._hand_over)
                .option("checkpointLocation", f"file://{self._folder}")
                .trigger(processingTime=_EVERY)
                .start()
            )
        except Exception as error:
            raise StoreError(f"Spark cannot follow the log of {self._deployment}: {_words(error)}") from error

    def _hand_over(self, frame: Any, _number: int) -> None:
        """Give a batch to the thread that reads, and wait until it is done; called by Spark."""
        batch = _Batch(frame)
        self._batches.put(batch)
        while not batch.done.wait(_WAIT_S) and not self._closing.is_set():
            pass

    def _release(self) -> None:
        if self._rows is not None:
            self._rows.let_go()
            self._rows = None
        if self._taken is not None:
            self._taken.done.set()
            self._taken = None

    def _check(self, query: StreamingQuery) -> None:
        if not query.isActive:
            error = query.exception()
            raise StoreError(f"Spark no longer follows the log of {self._deployment}: {_words(error)}")


class _Nothing:
    """No rows."""

    ats = np.empty(0)
    versions = np.empty(0, np.int64)

    def sum(self, cuts: Sequence[Places]) -> list[list[State]]:
        """Return nothing: there are no cuts."""
        return [[] for _ in cuts]


def _words(error: Any) -> str:
    """Return what an error of Spark says, without Java's frames."""
    lines = [line for line in str(error).strip().splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return " ".join(lines[-3:] if len(lines) > 3 else lines)[:600] or type(error).__name__
