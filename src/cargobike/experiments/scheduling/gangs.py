"""Puts gangs together from free workers, with parameter servers where they are asked for. Pure, like the scheduler."""

from __future__ import annotations

from collections.abc import Iterable

from cargobike.core.running.member import Role
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.attempt import Attempt
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.scheduling.roster import Roster
from cargobike.experiments.scheduling.running import Running


class Gangs:
    """Knows which workers are free, how many of them make a gang now, and when a gang should grow.

    An elastic gang starts when it is complete, or when enough workers are there and the others take too long. It grows
    when a worker is free and a checkpoint has just been saved: then nothing is lost but the time to start again.

    Attributes:
        roster: The workers that train.
        servers: Parameter servers.
    """

    def __init__(self, plan: Plan, out: ev.Outbox) -> None:
        self._plan = plan
        self.roster = Roster(out, plan.workers, plan.max_worker_losses)
        self.servers = Roster(out, plan.servers * plan.most_gangs, plan.max_worker_losses, Role.SERVER)
        self._waits_since: float | None = None

    def roster_of(self, worker: str) -> Roster:
        """Return the roster that a worker is on."""
        return self.servers if self._plan.servers and worker in self.servers else self.roster

    def arrived(self, event: ev.WorkerArrived) -> None:
        """Add a worker that has come to its roster."""
        self.roster_of(event.worker).arrived(event)

    def skip_names(self, taken: Iterable[str]) -> None:
        """Give no worker a name that an earlier driver of the experiment gave."""
        names = list(taken)
        self.roster.skip_names(names)
        self.servers.skip_names(names)

    @property
    def is_elastic(self) -> bool:
        """Whether gangs may be smaller than asked for."""
        return self._plan.least_gang is not None

    @property
    def is_complete(self) -> bool:
        """Whether there are as many workers as there may be, counting those that are starting."""
        return self.roster.is_complete and self.servers.is_complete

    @property
    def next_deadline(self) -> float | None:
        """When an elastic gang has waited long enough for missing workers."""
        return None if self._waits_since is None else self._waits_since + self._plan.elastic_wait_s

    def size_now(self, at: float) -> int:
        """Return how many workers the next gang can have now, 0 if it should wait."""
        plan, idle = self._plan, self.roster.idle
        if plan.servers and self.servers.idle < plan.servers:
            return 0
        if idle >= plan.gang:
            return plan.gang
        if plan.least_gang is None or idle < plan.least_gang:
            return 0
        if self.roster.starting:  # a gang that starts now would have to be re-formed when they come
            self._waits_since = at if self._waits_since is None else self._waits_since
            if at - self._waits_since < plan.elastic_wait_s:
                return 0
        return idle

    def form(self, trial: int, number: int, size: int, horizon: int | None) -> Attempt:
        """Make a gang of free workers."""
        plan = self._plan
        self._waits_since = None
        workers = self.roster.take(size, trial)
        if not plan.meets:
            return Attempt(trial, number, workers, horizon)
        workers += self.servers.take(plan.servers, trial)
        hosts = tuple([self.roster_of(worker).host_of(worker) for worker in workers])
        return Attempt(trial, number, workers, horizon, hosts, plan.servers, plan.deciding)

    def start_up_to(self, gangs: int, running: Running) -> None:
        """Start workers until there are enough for so many more gangs, and for running gangs that are too small."""
        plan = self._plan
        self.roster.start_up_to(self.roster.busy + gangs * plan.gang)
        if plan.servers:
            self.servers.start_up_to(self.servers.busy + gangs * plan.servers)
        if self.is_elastic and self.keeps_idle(running):
            self.roster.start_up_to(plan.workers)

    def enlarge(self, running: Running) -> None:
        """Re-form elastic gangs that have saved a checkpoint, if workers have become free that they can use."""
        if not self.is_elastic:
            return
        for attempt in list(running):
            more = min(self.roster.idle, self._plan.gang - len(attempt.workers) + attempt.servers)
            if self._wants_more(attempt) and attempt.saved_step is not None and more:
                running.re_form(attempt, f"re-formed at step {attempt.saved_step}: {more} more came to join it")

    def keeps_idle(self, running: Running) -> bool:
        """Tell whether free workers are kept: for a gang that may grow, or one that is being ended to start again."""
        if self._plan.gang == 1:
            return False
        return any(attempt.is_doomed or self._wants_more(attempt) for attempt in running)

    def _wants_more(self, attempt: Attempt) -> bool:
        return self.is_elastic and len(attempt.workers) - attempt.servers < self._plan.gang and not attempt.force

    def release_idle(self) -> None:
        """Release the free workers."""
        self.roster.release_idle()
        self.servers.release_idle()

    def release_all(self) -> None:
        """Release all workers, now that none of them is busy."""
        self.roster.release_all()
        self.servers.release_all()
