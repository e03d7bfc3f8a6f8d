"""The simulated engine: workers that live in virtual time, as many as you like, on one core.

Nothing runs and nothing waits. A model of the train function says how long each step would take and what it would
report; the engine keeps a list of what happens when, and its clock jumps from one thing to the next.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from cargobike.core.records import Decision, Milestones, Params, Resources
from cargobike.core.running.ending import Ending, EndKind
from cargobike.engines.engine import Engine, WorkerHandle, WorkerSpec
from cargobike.engines.local.gpus import GpuPool
from cargobike.engines.simulated.world import (
    Cluster,
    Ended,
    Happening,
    Joined,
    Lost,
    Reported,
    SimulatedFunction,
    SimulatedRun,
    Usage,
)


class _Run(msgspec.Struct, gc=False):
    """An attempt as rank 0 of a gang goes through it; the other ranks follow."""

    trial: int
    attempt: int
    workers: tuple[str, ...]
    model: SimulatedRun
    done: int
    milestones: Milestones
    speed: float
    waits: bool = False
    due: int = 0


class SimulatedEngine(Engine):
    """Starts workers that exist only on paper.

    As an engine it keeps the promises of `Engine`, in virtual time: nothing happens until `advance` is called. What a
    real worker would be told over the wire it is told by `assign`, `answer`, `halt` and `release`, at the time `now`.

    Args:
        function: The model of the train function.
        cluster: What the workers are like.
        gpus: Names of the devices to hand out.

    Attributes:
        now: Virtual seconds; a caller that knows that time has passed may set it, up to `next_at`.
    """

    name = "simulated"

    def __init__(
        self, function: SimulatedFunction, cluster: Cluster | None = None, *, gpus: tuple[str, ...] = ()
    ) -> None:
        self.now = 0.0
        self._function = function
        self._cluster = cluster or Cluster()
        self._gpus = GpuPool(gpus)
        self._workers: dict[str, SimulatedHandle] = {}
        self._free_places: list[int] = []
        self._agenda: list[tuple[float, int, Happening | SimulatedHandle | _Run]] = []
        self._entries = 0
        self._saved: dict[int, int] = {}
        self._usage = Usage()
        self._busy = 0
        self._joined = 0
        self._accounted_at = 0.0
        self._idle_s = 0.0

    # -- an engine -----------------------------------------------------------------------------------------------

    def capacity(self, resources: Resources) -> int:
        """Return how many workers fit: as many as there are speeds, or by GPUs where they want some."""
        share = resources.gpus if resources.gpus is not None else float(bool(self._gpus.devices))
        return self._gpus.capacity(share) if share else len(self._cluster.speeds)

    def start_worker(self, spec: WorkerSpec) -> SimulatedHandle:
        """Put a worker's arrival on the agenda, and its death if it is to have one."""
        cluster = self._cluster
        share = spec.resources.gpus if spec.resources.gpus is not None else float(bool(self._gpus.devices))
        devices = self._gpus.take(spec.name, share) if share else ()
        place = heapq.heappop(self._free_places) if self._free_places else len(self._workers)
        worker = SimulatedHandle(spec.name, self, place, cluster.speeds[place % len(cluster.speeds)], devices)
        self._workers[spec.name] = worker
        arrives_at = self.now + cluster.startup_s
        if cluster.mean_time_to_failure_s is None and not cluster.failed_starts:
            self._put(arrives_at, worker)
            return worker
        chance = random.Random(f"{cluster.seed}/{spec.name}")
        if chance.random() < cluster.failed_starts:
            self._put(arrives_at, Lost(spec.name, Ending(EndKind.NOT_STARTED, "did not start")))
            return worker
        self._put(arrives_at, worker)
        if cluster.mean_time_to_failure_s is not None:
            lives_s = chance.expovariate(1 / cluster.mean_time_to_failure_s)
            self._put(arrives_at + lives_s, Lost(spec.name, Ending(EndKind.CRASHED, "died")))
        return worker

    def shutdown(self, timeout_s: float = 5.0) -> None:
        """End all workers."""
        for worker in list(self._workers.values()):
            self._bury(worker, Ending(EndKind.ENDED, "was ended with its engine"))
        self._agenda.clear()

    # -- what the driver tells workers ---------------------------------------------------------------------------

    def assign(
        self,
        workers: tuple[str, ...],
        trial: int,
        *,
        attempt: int,
        params: Params,
        seed: int,
        milestones: Milestones = (),
        start_from: int | None = None,
    ) -> None:
        """Start a trial on a gang, from its last checkpoint or that of another trial if there is one."""
        gang = [self._workers[name] for name in workers]
        model = self._function(params, seed)
        done = self._saved.get(trial, self._saved.get(start_from, 0) if start_from is not None else 0)
        done = min(done, len(model.steps))
        slowest = min(worker.speed for worker in gang)
        run = _Run(trial, attempt, workers, model, done, milestones, slowest)
        self._account()
        self._busy += len(gang)
        for worker in gang:
            worker.run = run
        self._usage.idle_s = self._idle_s
        self._usage.busy_with_more_to_come_s = self._usage.busy_s
        self._go_on(run)

    def answer(self, worker: str, trial: int, attempt: int, decision: Decision) -> None:
        """Tell a waiting train function to go on, stop or pause."""
        handle = self._workers.get(worker)
        run = handle.run if handle is not None else None
        if handle is None or run is None or (run.trial, run.attempt) != (trial, attempt) or not run.waits:
            return
        run.waits = False
        if decision is not Decision.STOP:
            self._saved[trial] = run.done
        if decision is Decision.CONTINUE:
            self._go_on(run)
        else:
            self._end(handle, run, "stopped" if decision is Decision.STOP else "paused")

    def halt(self, worker: str, trial: int, attempt: int) -> None:
        """Make a worker end an attempt at once."""
        handle = self._workers.get(worker)
        run = handle.run if handle is not None else None
        if handle is not None and run is not None and (run.trial, run.attempt) == (trial, attempt):
            self._end(handle, run, "stopped")

    def release(self, worker: str) -> None:
        """Send a worker home."""
        handle = self._workers.get(worker)
        if handle is not None:
            self._bury(handle, Ending(EndKind.LEFT, "was released"))

    # -- virtual time --------------------------------------------------------------------------------------------

    @property
    def next_at(self) -> float | None:
        """When something happens next, `None` if nothing does."""
        return self._agenda[0][0] if self._agenda else None

    def advance(self) -> Sequence[Happening]:
        """Set the clock to the next entry of the agenda, and return what happens then; possibly nothing."""
        at, entry, what = heapq.heappop(self._agenda)
        self.now = at
        if type(what) is _Run:
            return self._step(what) if what.due == entry else ()
        if isinstance(what, SimulatedHandle):
            return self._join(what)
        if isinstance(what, Lost):
            worker = self._workers.get(what.worker)
            if worker is None:
                return ()
            self._bury(worker, what.ending)
        return (what,)  # type: ignore[return-value]

    @property
    def usage(self) -> Usage:
        """How the workers have spent their time so far."""
        self._account()
        return self._usage

    def _put(self, at: float, what: Happening | SimulatedHandle | _Run) -> int:
        self._entries += 1
        heapq.heappush(self._agenda, (at, self._entries, what))
        return self._entries

    def _join(self, worker: SimulatedHandle) -> Sequence[Happening]:
        if worker.gone is not None:
            return ()
        self._account()
        worker.joined = True
        self._joined += 1
        return (Joined(worker.name),)

    def _go_on(self, run: _Run) -> None:
        steps = run.model.steps
        takes_s = steps[run.done][0] / run.speed if run.done < len(steps) else 0.0
        run.due = self._put(self.now + takes_s, run)

    def _step(self, run: _Run) -> Sequence[Happening]:
        steps = run.model.steps
        if run.done >= len(steps):
            return self._return(run)
        metrics = steps[run.done][1]
        run.done += 1
        self._usage.steps += 1
        run.waits = _is_milestone(run.done, run.milestones)
        if not run.waits:
            self._saved[run.trial] = run.done
            self._go_on(run)
        return (Reported(run.workers[0], run.trial, run.attempt, run.done, metrics, run.waits),)

    def _return(self, run: _Run) -> Sequence[Happening]:
        """End a run on every worker of its gang."""
        model = run.model
        said: list[Happening] = []
        for rank, name in enumerate(run.workers):
            worker = self._workers.get(name)
            if worker is None or worker.run is not run:
                continue
            self._free(worker)
            if model.error is not None:
                said.append(Ended(name, run.trial, run.attempt, "failed", error=model.error))
            else:
                value = model.value if rank == 0 else None
                said.append(Ended(name, run.trial, run.attempt, "completed", value))
        return said

    def _end(self, worker: SimulatedHandle, run: _Run, outcome: Literal["stopped", "paused"]) -> None:
        """End a run on one worker before its time; without rank 0 no rank gets any further."""
        self._free(worker)
        if worker.name == run.workers[0]:
            run.due = 0
        self._put(self.now, Ended(worker.name, run.trial, run.attempt, outcome))

    def _free(self, worker: SimulatedHandle) -> None:
        self._account()
        self._busy -= 1
        worker.run = None

    def _bury(self, worker: SimulatedHandle, ending: Ending) -> None:
        """Strike a worker off; what it ran comes to a halt."""
        if self._workers.pop(worker.name, None) is None:
            return
        run = worker.run
        if run is not None:
            self._free(worker)
            run.due = 0
        self._account()
        self._joined -= worker.joined
        worker.gone = ending
        heapq.heappush(self._free_places, worker.place)
        self._gpus.give_back(worker.name)

    def _account(self) -> None:
        passed_s = self.now - self._accounted_at
        if passed_s:
            self._usage.busy_s += self._busy * passed_s
            self._idle_s += (self._joined - self._busy) * passed_s
            self._accounted_at = self.now


class SimulatedHandle(WorkerHandle):
    """A worker on paper."""

    def __init__(self, name: str, engine: SimulatedEngine, place: int, speed: float, gpus: tuple[str, ...]) -> None:
        self.name = name
        self.gpus = gpus
        self.place = place
        self.speed = speed
        self.joined = False
        self.gone: Ending | None = None
        self.run: _Run | None = None
        self._engine = engine

    def poll(self) -> Ending | None:
        """Return how the worker ended, or `None`."""
        return self.gone

    def kill(self) -> None:
        """End the worker."""
        self._engine._bury(self, Ending(EndKind.KILLED, "was killed"))


def _is_milestone(step: int, milestones: Any) -> bool:
    return bool(milestones) and (milestones == "every" or step in milestones)
