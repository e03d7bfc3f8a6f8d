"""What a Spark cluster has: how many workers fit into its executors now, and how many ever will."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Any

import msgspec

from cargobike.core.errors import EngineError
from cargobike.engines.engine import NO_LIMIT

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

_STABLE_S = 3.0
_NEW_S = 20.0
_LOOK_S = 0.1
_SAY_AFTER_S = 3.0


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker takes of an executor."""

    cpus: int
    gpus: float

    def __str__(self) -> str:
        cores = f"{self.cpus} core{'s' if self.cpus != 1 else ''}"
        return f"{cores} and {self.gpus:g} GPU{'s' if self.gpus != 1 else ''}" if self.gpus else cores


class Cluster:
    """Asks a Spark context about its executors; all settings are read once.

    Args:
        context: The context.
        wait_s: How long to wait for executors that have not come yet.
        is_new: Whether the context was made a moment ago; else that is asked.
    """

    def __init__(self, context: SparkContext, wait_s: float, *, is_new: bool = False) -> None:
        self._context = context
        self._wait_s = wait_s
        self._is_new = is_new
        conf = context.getConf()
        self.master: str = context.master
        self.is_local = self.master.startswith("local") and not self.master.startswith("local-cluster")
        self.task = Need(
            cpus=int(conf.get("spark.task.cpus", "1") or 1),
            gpus=float(conf.get("spark.task.resource.gpu.amount", "0") or 0),
        )
        self._executor_cores = int(conf.get("spark.executor.cores", "0") or 0)
        self._executor_gpus = int(conf.get("spark.executor.resource.gpu.amount", "0") or 0)
        self.is_dynamic = (conf.get("spark.dynamicAllocation.enabled", "false") or "").lower() == "true"
        self._most_executors = int(conf.get("spark.dynamicAllocation.maxExecutors", "0") or 0)
        self._instances = int(conf.get("spark.executor.instances", "0") or 0)
        self._profiles: dict[Need, Any] = {}
        self._seen: dict[Need, int] = {}
        self._is_settled = False

    def profile(self, need: Need) -> Any:
        """Return the resource profile for a need, `None` if Spark's settings are just that."""
        if self.is_local or need == self.task:
            return None
        if need not in self._profiles:
            from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests  # noqa: PLC0415 - see spark.py

            requests = TaskResourceRequests().cpus(need.cpus)
            if need.gpus:
                requests.resource("gpu", need.gpus)
            profile = ResourceProfileBuilder().require(requests).build
            self._context._jsc.sc().resourceProfileManager().addResourceProfile(profile._java_resource_profile)
            self._profiles[need] = profile
        return self._profiles[need]

    def now(self, need: Need) -> int:
        """Return how many workers fit into the executors that are there."""
        if self.is_local:
            return self._most_locally(need)
        scala = self._context._jsc.sc()
        profile = self.profile(need)
        wanted = scala.resourceProfileManager().defaultResourceProfile() if profile is None else None
        fits = int(scala.maxNumConcurrentTasks(wanted if profile is None else profile._java_resource_profile))
        self._seen[need] = max(fits, self._seen.get(need, 0))
        return fits

    def most(self, need: Need, enough: int | None = None) -> int:
        """Return how many workers can ever run at once, `NO_LIMIT` if that is not known; waits for executors to come.

        Args:
            need: What one worker takes.
            enough: If there is room for so many, it need not be known for how many more.

        Raises:
            EngineError: If none comes in time.
        """
        if self.is_local:
            return self._most_locally(need)
        slots = self._slots(need)
        if self.is_dynamic:
            return NO_LIMIT if not self._most_executors or slots is None else self._most_executors * slots
        if self._instances and slots is not None:
            return self._instances * slots
        if not self._is_settled:
            self._await_executors(need, enough)
        self.now(need)
        return self._seen.get(need, 0)

    def describe(self) -> str:
        """Say what the cluster has."""
        if self.is_local:
            return f"Spark runs on this machine, with {self._context.defaultParallelism} task slots ({self.master})"
        known = [f"{self._executor_cores} cores" if self._executor_cores else "all cores of a node"]
        known += [f"{self._executor_gpus} GPUs"] if self._executor_gpus else []
        each = " and ".join(known)
        if self.is_dynamic:
            limit = f"at most {self._most_executors}" if self._most_executors else "any number of"
            return f"{self.master} may give {limit} executors with {each} each"
        slots = self.now(Need(cpus=1, gpus=0))
        executors = len(self._context._jsc.sc().statusTracker().getExecutorInfos()) - 1  # the driver is one of them
        return f"{self.master} has {executors} executors with {slots} cores in all, {each} each"

    def _most_locally(self, need: Need) -> int:
        return 0 if need.gpus else int(self._context.defaultParallelism) // need.cpus

    def _slots(self, need: Need) -> int | None:
        """Return how many workers fit into one executor, `None` if its size is not known beforehand."""
        if not self._executor_cores:
            return None
        slots = self._executor_cores // need.cpus
        if need.gpus:
            share = math.floor(1 / need.gpus + 1e-9) * self._executor_gpus if need.gpus < 1 else None
            slots = min(slots, share if share is not None else int(self._executor_gpus // need.gpus))
        return slots

    def _has_run_s(self) -> float:
        """Return for how long the context has been there, by the clock that said when it began: ours may be another."""
        now_ms = int(self._context._jvm.java.lang.System.currentTimeMillis())
        return (now_ms - int(self._context.startTime)) / 1000

    def _await_executors(self, need: Need, enough: int | None) -> None:
        """Wait until enough executors have come, or no more are coming."""
        any_core = Need(cpus=1, gpus=0)
        start = time.monotonic()
        # One that was lost a moment ago may be on its way back: who is about to be refused waits as well.
        may_change = self._is_new or enough is not None or self._has_run_s() < _NEW_S
        stable_s = _STABLE_S if may_change else 0.0
        changed_at, before, has_said = start, -1, False
        while True:
            if self._context._jsc is None or self._context._jsc.sc().isStopped():
                raise EngineError(
                    f"Spark has given up the connection to {self.master}: is that its address, and is it running?"
                )
            cores = self.now(any_core)
            now = time.monotonic()
            if cores != before:
                if before == 0 and stable_s:  # where the first takes long, the others may come long after it
                    stable_s = max(stable_s, now - start)
                before, changed_at = cores, now
            if enough is not None and cores >= enough and self.now(need) >= enough:
                return
            if cores and now - changed_at >= stable_s:
                self._is_settled = True
                return
            if now - start > self._wait_s:
                raise EngineError(
                    f"No executor has come within {self._wait_s:g} s from {self.master}. Look at the cluster's own "
                    "page whether it has free cores and memory for executors of the size that was asked for, and "
                    "whether executors can connect to this machine."
                )
            if not has_said and now - start > _SAY_AFTER_S:
                has_said = True
                log.warning("waiting for executors from %s, %g s at most", self.master, self._wait_s)
            time.sleep(_LOOK_S)
