"""One worker on Spark: its job, its place once it has one, and its end."""

from __future__ import annotations

import contextlib
import re
import threading
import time
import uuid
from typing import Any, Protocol

import msgspec

from cargobike.core.running.ending import Ending, EndKind
from cargobike.engines.engine import WorkerHandle
from cargobike.engines.spark import task as spark_task
from cargobike.engines.spark.cluster import Cluster, Need
from cargobike.engines.spark.detaching import DETACHED
from cargobike.engines.spark.pythons import python_for_tasks
from cargobike.engines.spark.tether import Placed

CANCEL_AFTER_S = 2.0
"""How long a worker that was told to end may take before Spark is asked to end it."""

COME_BACK_S = 0.3
"""How long a worker whose connection has closed may take to connect again before it counts as lost."""

_TRY_ELSEWHERE_AFTER_S = 2.0
_DETACHED = Ending(EndKind.LEFT, "goes on without its job")
_TURNED_AWAY = Ending(EndKind.NOT_STARTED, "was turned away from an excluded executor")


class Owner(Protocol):
    """What a worker needs of its engine."""

    @property
    def cluster(self) -> Cluster:
        """What Spark has."""

    def pull(self, worker: str) -> bool:
        """Tell a worker to end; returns whether it could be told."""

    def unfit(self, why: str) -> Ending:
        """Return how a worker ended that can never run where it was placed."""

    def lost(self, handle: SparkHandle, place: Placed) -> None:
        """Give up a worker whose connection has closed and which has not come back."""


class SparkHandle(WorkerHandle):
    """A worker that is, was or will be a task."""

    def __init__(self, name: str, engine: Owner, need: Need) -> None:
        self.name = name
        self.need = need
        self.place: Placed | None = None
        self.gone: Ending | None = None
        self.is_killed = False
        self.cut_at: float | None = None
        self._engine = engine
        self._tag = f"cargobike-{uuid.uuid4().hex}"
        self._context: Any = None
        self._job: Any = None
        self._task: Any = None
        self._profile: Any = None
        self._job_is_over = threading.Event()
        self._has_gone = threading.Event()
        self._is_detached = False
        self._since = time.monotonic()
        self._cancel_at: float | None = None
        self._submit_at: float | None = None
        self._canceller: threading.Thread | None = None

    # -- what the driver calls -----------------------------------------------------------------------------------

    def poll(self) -> Ending | None:
        """Return how the worker ended, or `None`."""
        cut_at, place = self.cut_at, self.place
        if self.gone is None and cut_at is not None and place is not None and time.monotonic() - cut_at > COME_BACK_S:
            self._engine.lost(self, place)
        return self.gone

    def kill(self) -> None:
        """Tell the worker to end; if it cannot be told or does not listen, Spark cancels its job."""
        if self.is_killed or self.is_over:
            return
        self.is_killed = True
        told = self.place is not None and self._engine.pull(self.name)
        self._cancel_at = time.monotonic() + (CANCEL_AFTER_S if told else 0.0)
        if not told:
            self._cancel()

    # -- what the engine calls -----------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether both the worker and its job have ended."""
        return self.gone is not None and self._job_is_over.is_set()

    def wait(self, timeout_s: float) -> None:
        """Wait for the end of the job, or of a worker that goes on without it."""
        (self._has_gone if self._is_detached else self._job_is_over).wait(timeout_s)

    def wait_until_detached(self, timeout_s: float) -> bool:
        """Wait until the worker has given its slot back, or has ended; tells whether it has."""
        return self._job_is_over.wait(timeout_s)

    def end(self, ending: Ending) -> None:
        """Remember how the worker ended; only the first word counts. Its job has no reason to go on."""
        if self.gone is None:
            self.gone = ending
            self._has_gone.set()
            self._cancel_at = self._cancel_at or time.monotonic() + CANCEL_AFTER_S

    def submit(self, context: Any, profile: Any, task: Any) -> None:
        """Run the job in a thread of its own, which only waits."""
        from pyspark import InheritableThread  # noqa: PLC0415 - who does not use Spark need not have it
        from pyspark.cloudpickle import register_pickle_by_value  # noqa: PLC0415

        register_pickle_by_value(spark_task)  # executors without Cargobike are to say so, not to fail at unpickling
        self._context, self._profile, self._task = context, profile, task
        self._submit_at = None
        self._job = InheritableThread(target=self._run, name=f"cargobike-{self.name}", daemon=True)
        self._job.start()

    def look_after(self, now: float, wait_s: float) -> None:
        """Do what is due."""
        if self._job_is_over.is_set():
            if self._submit_at is not None and now >= self._submit_at and self.gone is None and not self.is_killed:
                self._job_is_over.clear()
                self.submit(self._context, self._profile, self._task)
            return
        if self.place is None and self.gone is None and now - self._since > wait_s:
            how = f"waited {wait_s:g} s in vain for a place. {self._engine.cluster.describe()}"
            self.end(Ending(EndKind.NOT_STARTED, how))
        if self._cancel_at is not None and now >= self._cancel_at:
            self._cancel_at = now + 1.0  # a job that was just being submitted has not heard the first call
            self._cancel()

    def _cancel(self) -> None:
        if self._canceller is not None and self._canceller.is_alive():
            return
        self._canceller = threading.Thread(target=self._cancel_job, name=f"cargobike-cancel-{self.name}", daemon=True)
        self._canceller.start()

    def _cancel_job(self) -> None:
        with contextlib.suppress(Exception):  # its Java may be dead already
            self._context.cancelJobsWithTag(self._tag)

    def _run(self) -> None:
        ending = Ending(EndKind.ENDED, "was cancelled before it had a place")
        try:
            if not self.is_killed:
                ending = self._run_job()
        except Exception as error:  # noqa: BLE001 - Py4J raises many kinds, and all mean that the job is over
            ending = self._explain(error)
        self._submit_at = None
        if ending is _DETACHED:
            self._is_detached = True
        elif ending is _TURNED_AWAY and self.gone is None and not self.is_killed:
            self._submit_at = time.monotonic() + _TRY_ELSEWHERE_AFTER_S
        else:
            self.end(ending)
        self._job_is_over.set()

    def _run_job(self) -> Ending:
        context = self._context
        context.addJobTag(self._tag)
        context.setJobDescription(f"cargobike worker {self.name}")
        rdd = context.parallelize([0], 1)
        if self._profile is not None:
            rdd = rdd.withResources(self._profile)
        job = rdd.mapPartitions(self._task)
        with python_for_tasks(context):
            _ = job._jrdd  # now its Python is chosen; collecting lasts as long as the worker lives
        said: list[dict[str, str]] = job.collect()
        if said and said[0]["kind"] == DETACHED:
            return _DETACHED
        return msgspec.convert(said[0], Ending) if said else Ending(EndKind.PLACE_LOST, "ended without a word")

    def _explain(self, error: Exception) -> Ending:
        text = str(error)
        if self.is_killed:
            return Ending(EndKind.ENDED, "was cancelled")
        if "is excluded, because workers kept dying" in text:
            return _TURNED_AWAY
        if "PYTHON_VERSION_MISMATCH" in text:
            how = "cannot run: executors have another version of Python than the driver; set PYSPARK_PYTHON for them"
            return self._engine.unfit(how)
        if missing := re.search(r'Cannot run program "([^"]*)"', text):
            how = f"cannot run: executors find no Python {missing[1]!r}; set PYSPARK_PYTHON to one that is there"
            return self._engine.unfit(how)
        cause = next((line.strip() for line in text.splitlines() if "Lost task" in line or "Caused by" in line), "")
        how = f"ended with its Spark job: {(cause or text.partition(chr(10))[0])[:500]}"
        return Ending(EndKind.PLACE_LOST, how)
