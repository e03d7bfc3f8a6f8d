"""The Spark engine: every worker is a job of one task, so that each can be lost, replaced or cancelled alone."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from cargobike.core import settings
from cargobike.core.errors import EngineError, InvalidInputError
from cargobike.core.records import Resources
from cargobike.core.running.ending import Ending, EndKind
from cargobike.core.running.hosting import Listening
from cargobike.core.values.kinds import read_mapping
from cargobike.core.values.times import Seconds, read_seconds
from cargobike.core.version import __version__
from cargobike.engines.capabilities import AvoidsBadMachines, ChecksWorkers, Elsewhere, TellsWaiting
from cargobike.engines.engine import Engine, WorkerSpec
from cargobike.engines.spark import task as spark_task
from cargobike.engines.spark.cluster import Cluster, Need
from cargobike.engines.spark.exclusion import Exclusion
from cargobike.engines.spark.handle import CANCEL_AFTER_S, SparkHandle
from cargobike.engines.spark.pythons import is_on_this_machine
from cargobike.engines.spark.session import OwnContext, active_context, context_of
from cargobike.engines.spark.tether import Placed, TetherServer

log = logging.getLogger(__name__)

_ENOUGH_UNFIT = 2


class SparkEngine(Engine, Elsewhere, ChecksWorkers, AvoidsBadMachines, TellsWaiting):
    """Starts workers as tasks of a Spark application.

    Args:
        session: A `SparkSession` or `SparkContext` to use and leave as it is. Without one, the session that is active
            in this process is used, or one is made and stopped with the engine.
        master: Where to make a session: `local[4]`, `spark://host:7077`, `yarn`, `k8s://…`; what Spark's own settings
            say if not given, else this machine.
        cores: Cores for each worker, unless `Resources` say so; `spark.task.cpus` by default.
        gpus: GPUs for each worker, unless `Resources` say so; `spark.task.resource.gpu.amount` by default.
        memory: Memory of an executor, such as `4g`, if a session is made.
        conf: Spark properties, if a session is made.
        address: Name or address by which executors reach this machine; `spark.driver.host` by default.
        port: First of two ports to listen on, where a firewall lets only some through.
        wait_s: How long to wait for executors.
        share_disk: Whether workers that find the project's folder on their machine use it; else, and where they do not
            find it, its files travel through the driver.
        detaches: Whether workers can go on without the slots of their tasks; see `free_slots`.

    A session that is made here ends with the search. In a `with` block it serves all searches of the block, and ends
    with the block: `with SparkEngine() as engine:`, then `launch(…, engine=engine)` as often as needed.

    Example:
        >>> from cargobike.engines import SparkEngine
        >>> SparkEngine(master="local[4]").name
        'spark'
    """

    name = "spark"

    def __init__(
        self,
        session: object = None,
        *,
        master: str | None = None,
        cores: int | None = None,
        gpus: float | None = None,
        memory: str | None = None,
        conf: Mapping[str, str] | None = None,
        address: str | None = None,
        port: int = 0,
        wait_s: Seconds = 300.0,
        share_disk: bool = True,
        detaches: bool = False,
    ) -> None:
        given = {} if conf is None else read_mapping("conf", conf, "{'spark.executor.cores': '4'}")
        settings = given | ({"spark.executor.memory": memory} if memory else {})
        if session is not None and (master or settings):
            raise InvalidInputError(
                "A session was given, and master, memory or conf besides; these are for a session that is made here. "
                "Set them where yours is made."
            )
        if address:
            settings.setdefault("spark.driver.host", address)
        self._master, self._settings = master, settings
        self._cores, self._gpus = cores, gpus
        self._address, self._port = address, port
        self.may_share_disk = share_disk
        self._may_detach = detaches
        patience_s = read_seconds("wait_s", wait_s, may_be_zero=True)
        self._wait_s = math.inf if patience_s is None else patience_s
        self.join_s = self._wait_s + 30.0
        self._given = None if session is None else context_of(session)
        self._own: OwnContext | None = None
        self._blocks = 0
        self._context: Any = None
        self._cluster: Cluster | None = None
        self._tethers: TetherServer | None = None
        self._payloads: dict[bytes, Any] = {}
        self._handles: dict[str, SparkHandle] = {}
        self._exclusion = Exclusion()
        self._told: set[str] = set()
        self._unfit: list[str] = []
        self._enough: int | None = None
        self._has_placed_worker = False
        self._lock = threading.RLock()

    @classmethod
    def at(cls, address: str) -> SparkEngine:
        """Return an engine that makes a session at the address of a master."""
        return cls(master=address)

    # -- the place -----------------------------------------------------------------------------------------------

    @property
    def cluster(self) -> Cluster:
        """What Spark has; makes a session if there is none."""
        with self._lock:
            if self._cluster is None:
                if self._own is not None and not self._own.is_alive:
                    self._own.stop()
                    self._own = None
                self._context = self._given or (self._own.context if self._own is not None else active_context())
                is_new = self._context is None
                if is_new:
                    self._own = OwnContext(self._master, self._settings)
                    self._context = self._own.context
                self._cluster = Cluster(self._context, self._wait_s, is_new=is_new)
            return self._cluster

    def __enter__(self) -> SparkEngine:
        with self._lock:
            self._blocks += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._blocks -= 1
            is_last = self._blocks <= 0
        self._end(stop_session=is_last)

    @property
    def listening(self) -> Listening:
        """Listen where Spark's own driver does: executors reach that address already."""
        if self.cluster.is_local:
            return Listening(port=self._port)
        conf = self._context.getConf()
        reach = self._address or conf.get("spark.driver.host") or "127.0.0.1"
        return Listening(bind=conf.get("spark.driver.bindAddress") or reach, reach=reach, port=self._port)

    def capacity(self, resources: Resources) -> int:
        """Return how many workers fit into the cluster, once its executors are there."""
        return self.cluster.most(self._need(resources), enough=self._enough)

    def check_workers(self, workers: int, resources: Resources) -> None:
        """Refuse more workers than the cluster can ever give."""
        need = self._need(resources)
        most = self.cluster.most(need, enough=workers)
        if workers > most:
            raise InvalidInputError(
                f"{workers} workers with {need} each were asked for, but there is room for {most}: "
                f"{self.cluster.describe()}. Ask for fewer or smaller workers, or give Spark more."
            )
        self._enough = workers

    def _need(self, resources: Resources) -> Need:
        task = self.cluster.task
        cpus = resources.cpus or self._cores or task.cpus
        gpus = next((share for share in (resources.gpus, self._gpus) if share is not None), task.gpus)
        return Need(cpus=cpus, gpus=gpus)

    def waiting_for(self) -> str:
        """Say how many workers have no executor yet."""
        with self._lock:
            missing = sum(handle.place is None and handle.gone is None for handle in self._handles.values())
            there = sum(handle.place is not None for handle in self._handles.values())
        return f"waiting for executors ({there} of {there + missing} workers placed)" if missing else ""

    # -- workers -------------------------------------------------------------------------------------------------

    def start_worker(self, spec: WorkerSpec) -> SparkHandle:
        """Submit the job of one worker, which waits until Spark has a place for it."""
        need = self._need(spec.resources)
        if len(self._unfit) >= _ENOUGH_UNFIT and not self._has_placed_worker:
            raise EngineError(self._unfit[-1])  # it would be the same everywhere
        with self._lock:
            living = sum(handle.gone is None and handle.need == need for handle in self._handles.values())
            most = self.cluster.most(need, enough=living + 1)
            if living >= most:
                raise EngineError(
                    f"{spec.name} asks for {need}, which are not free: {living} such workers run already. "
                    f"{self.cluster.describe()}."
                )
            if self._tethers is None:
                listening = self.listening
                self._tethers = TetherServer(listening.bind, self._port + 1 if self._port else 0, self)
            handle = SparkHandle(spec.name, self, need)
            self._handles[spec.name] = handle
            order = self._order(spec, need)
            payload = self._broadcast(spec.payload)
        task = functools.partial(spark_task.run_worker, order, payload)
        handle.submit(self._context, self.cluster.profile(need), task)
        return handle

    def _order(self, spec: WorkerSpec, need: Need) -> dict[str, Any]:
        assert self._tethers is not None
        listening = self.listening
        return {
            "worker": spec.name,
            "module": spec.module,
            "config": spec.config,
            "version": spec.version,
            "cargobike": __version__,
            "package_path": os.environ.get(settings.PACKAGE_PATH, ""),
            "python": "{}.{}".format(*sys.version_info[:2]),
            "libraries": _versions(spec.libraries),
            "cpus": need.cpus,
            "uses_gpus": need.gpus > 0,
            "may_detach": self._may_detach,
            "address": (listening.reach or listening.bind, self._tethers.port),
            "key": self._tethers.key,
        }

    def _broadcast(self, payload: bytes) -> Any:
        """Send the train function to each executor once, however many workers run there."""
        if payload not in self._payloads:
            self._payloads[payload] = self._context.broadcast(payload)
        return self._payloads[payload]

    def shutdown(self, timeout_s: float = 5.0) -> None:
        """Ask the workers to end, end those that do not, and stop the session if it is ours."""
        self._end(timeout_s)

    def _end(self, timeout_s: float = 5.0, *, stop_session: bool = True) -> None:
        """End the workers; the session stays for the next search if it is ours and that was asked for."""
        with self._lock:
            handles = [handle for handle in self._handles.values() if not handle.is_over]
        for handle in handles:
            handle.kill()
        give_up_at = time.monotonic() + max(timeout_s, CANCEL_AFTER_S + 5.0)
        for handle in handles:
            handle.wait(max(0.0, give_up_at - time.monotonic()))
        with self._lock:
            tethers, self._tethers = self._tethers, None
            own = self._own if stop_session else None
            self._own = None if stop_session else self._own
            payloads, self._payloads = self._payloads, {}
            self._handles.clear()
        if tethers is not None:
            tethers.close()
        if own is not None:
            own.stop()
        else:
            for payload in payloads.values():
                with contextlib.suppress(Exception):  # its Java may be dead already
                    payload.destroy()
        for handle in handles:
            handle.end(Ending(EndKind.ENDED, "was ended with its engine"))
        self._cluster, self._context, self._enough = None, None, None

    def free_slots(self, timeout_s: float = 30.0) -> None:
        """Have all workers go on without the slots of their tasks, so that other tasks can run on their executors.

        They stay tied to the engine and to their executors. Cores, GPUs and memory are theirs as before, but Spark does
        not know that any more.

        Raises:
            EngineError: If the engine was not made with `detaches=True`, or a worker does not do it in time.
        """
        if not self._may_detach:
            raise EngineError("Workers of this engine live in their tasks: make it with SparkEngine(detaches=True).")
        with self._lock:
            handles = [handle for handle in self._handles.values() if handle.gone is None]
            tethers = self._tethers
        told = [handle for handle in handles if tethers is not None and tethers.free(handle.name)]
        give_up_at = time.monotonic() + timeout_s
        for handle in told:
            if not handle.wait_until_detached(max(0.0, give_up_at - time.monotonic())):
                raise EngineError(f"The worker {handle.name} has not given its slot back within {timeout_s:g} s.")

    def pull(self, worker: str) -> bool:
        """Tell a worker to end; returns whether it could be told."""
        tethers = self._tethers
        return tethers is not None and tethers.pull(worker)

    # -- what tethers tell ---------------------------------------------------------------------------------------

    def placed(self, place: Placed) -> bytes:
        """Accept a worker that was placed, if it is still wanted and has not been placed elsewhere."""
        with self._lock:
            handle = self._handles.get(place.worker)
            if handle is None or handle.gone is not None or handle.is_killed:
                return spark_task.NOT_WANTED
            if handle.place is not None:
                came_back = handle.place.task == place.task
                handle.cut_at = None if came_back else handle.cut_at
                return spark_task.GO if came_back else spark_task.NOT_WANTED
            if place.obstacles:
                handle.end(self.unfit(f"cannot run on {place.host}: {'; '.join(place.obstacles)}"))
                return spark_task.NOT_WANTED
            if self._exclusion.is_excluded(place.executor):
                return spark_task.ELSEWHERE
            handle.place, handle.gpus = place, place.gpus
            self._has_placed_worker = True
        for difference in place.differences:
            if (line := f"{place.host} has {difference}") not in self._told:
                self._told.add(line)
                log.warning("versions differ on an executor: %s", line)
        return spark_task.GO

    def unfit(self, why: str) -> Ending:
        """Return how a worker ended that can never run where it was placed: in vain for all if that holds everywhere.

        Where Spark runs on one machine, one word is enough; elsewhere the next executor may be a better one.
        """
        with self._lock:
            self._unfit.append(why)
            enough = 1 if is_on_this_machine(self.cluster.master) else _ENOUGH_UNFIT
            is_hopeless = not self._has_placed_worker and len(self._unfit) >= enough
        return Ending(EndKind.HOPELESS if is_hopeless else EndKind.NOT_STARTED, why)

    def ended(self, worker: str, ending: Ending) -> None:
        """Take in how a worker has ended."""
        with self._lock:
            handle = self._handles.get(worker)
        if handle is not None:
            if ending.kind is not EndKind.LEFT:
                self._judge(handle, died=True)
            handle.end(ending)

    def cut(self, worker: str, task: str) -> None:
        """Wait a moment whether a worker comes back whose connection has closed."""
        with self._lock:
            handle = self._handles.get(worker)
            if handle is not None and handle.place is not None and handle.place.task == task:
                handle.cut_at = time.monotonic()

    def tick(self) -> None:
        """Give up workers that are gone, cancel jobs whose workers should be, and submit anew what was turned away."""
        now = time.monotonic()
        with self._lock:
            handles = list(self._handles.values())
        for handle in handles:
            handle.poll()
            handle.look_after(now, self._wait_s)

    def lost(self, handle: SparkHandle, place: Placed) -> None:
        """Give up a worker whose connection has closed and which has not come back."""
        self._judge(handle, died=True)
        handle.end(Ending(EndKind.PLACE_LOST, f"was lost with its executor on {place.host}, or killed there"))

    def work_ended(self, worker: str, *, died: bool) -> None:
        """Count what dies on an executor and what does not."""
        with self._lock:
            handle = self._handles.get(worker)
        if handle is not None:
            self._judge(handle, died=died)

    def _judge(self, handle: SparkHandle, *, died: bool) -> None:
        place = handle.place
        if place is None or handle.is_killed or handle.gone is not None:
            return
        with self._lock:
            if not self._exclusion.note(place.executor, died=died):
                return
            placed = [(other, other.place.executor) for other in self._handles.values() if other.place is not None]
        log.warning("the executor on %s gets no more workers, because they keep dying there", place.address)
        for other, executor in placed:
            if executor == place.executor:
                other.kill()


def _versions(libraries: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for name in dict.fromkeys(library.partition(".")[0] for library in libraries):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
