"""The roster: which workers there are, and which of them are free."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from cargobike.core.facts import WorkerJoined, WorkerLost
from cargobike.core.running.member import Role
from cargobike.experiments.scheduling.events import Outbox, ReleaseWorker, StartWorker, WorkerArrived, WorkerGone


class Roster:
    """Every worker is starting, idle or busy with a trial; any other name is not one of ours, or not any more.

    Args:
        out: Where facts and commands go.
        most: How many workers there may be.
        max_losses: How many may be lost in a row while they have no trial, without any attempt ending in between.
        role: The role of all of them; their names begin with its first letter.

    Attributes:
        losses_in_row: How many have been lost in a row.
        has_had_workers: Whether any has ever come.
    """

    def __init__(self, out: Outbox, most: int, max_losses: int, role: Role = Role.WORKER) -> None:
        self._out = out
        self._role = role
        self._prefix = role[0]
        self._hosts: dict[str, str] = {}
        self._most = most
        self._max_losses = max_losses
        self._starting: dict[str, None] = {}
        self._idle: OrderedDict[str, None] = OrderedDict()
        self._busy: dict[str, int | None] = {}
        self._started = 0
        self.losses_in_row = 0
        self.has_had_workers = False

    def skip_names(self, taken: Iterable[str]) -> None:
        """Give no worker a name that an earlier driver of the experiment gave."""
        self._started = 1 + max(
            (int(name[1:]) for name in taken if name[1:].isdigit() and name.startswith(self._prefix)), default=-1
        )

    def __contains__(self, worker: str) -> bool:
        return worker in self._busy or worker in self._idle or worker in self._starting

    @property
    def idle(self) -> int:
        """How many are free."""
        return len(self._idle)

    @property
    def busy(self) -> int:
        """How many work on a trial."""
        return len(self._busy)

    @property
    def loses_too_many(self) -> bool:
        """Whether so many were lost in a row that starting more makes no sense.

        One dying machine may take all workers along. But if none has ever come, they all fail for a common reason.
        """
        limit = max(self._max_losses, self._most) if self.has_had_workers else self._max_losses
        return self.losses_in_row > limit

    @property
    def is_complete(self) -> bool:
        """Whether there are as many workers as there may be, counting those that are starting."""
        return len(self._idle) + len(self._busy) + len(self._starting) >= self._most

    def start_up_to(self, wanted: int) -> None:
        """Start workers until there are so many, counting those that are starting."""
        present = len(self._idle) + len(self._busy) + len(self._starting)
        for _ in range(min(wanted, self._most) - present):
            name = f"{self._prefix}{self._started}"
            self._started += 1
            self._starting[name] = None
            self._out.command(StartWorker(name, self._role))

    def arrived(self, event: WorkerArrived) -> None:
        """Add a worker that was started; any other has come before, or was given up in the meantime."""
        if event.worker in self._starting:
            del self._starting[event.worker]
            self._idle[event.worker] = None
            self._hosts[event.worker] = event.host
            self.has_had_workers = True
            self._out.fact(
                WorkerJoined(
                    at=event.at,
                    worker=event.worker,
                    host=event.host,
                    pid=event.pid,
                    gpus=event.gpus,
                    role=self._role,
                )
            )

    def gone(self, event: WorkerGone) -> int | None:
        """Remove a lost worker; returns the trial that it was busy with, if any."""
        worker = event.worker
        is_busy = worker in self._busy
        trial = self._busy.pop(worker, None)
        if not is_busy:
            group = self._starting if worker in self._starting else self._idle
            if worker not in group:
                return None
            del group[worker]
            self.losses_in_row += 1  # the loss of a busy worker is counted by its trial, which has its own limit
        self._hosts.pop(worker, None)
        self._out.fact(WorkerLost(at=event.at, worker=worker, reason=str(event.ending), cause=event.ending.kind))
        return trial

    def take(self, count: int, trial: int) -> tuple[str, ...]:
        """Assign so many free workers to a trial and return them, the one that has been free for longest first.

        Several are taken from as few hosts as possible, and those of one host follow each other.
        """
        if count > 1:
            workers = self._neighbours(count)
            for worker in workers:
                del self._idle[worker]
        else:
            workers = tuple([self._idle.popitem(last=False)[0] for _ in range(count)])
        for worker in workers:
            self._busy[worker] = trial
        return workers

    def _neighbours(self, count: int) -> tuple[str, ...]:
        by_host: dict[str, list[str]] = {}
        for worker in self._idle:
            by_host.setdefault(self._hosts[worker], []).append(worker)
        enough = [workers for workers in by_host.values() if len(workers) >= count]
        # From the smallest host that is large enough, so that larger ones stay whole; else from the largest ones.
        chosen = [min(enough, key=len)[:count]] if enough else sorted(by_host.values(), key=len, reverse=True)
        in_order = [sorted(workers, key=lambda name: int(name[len(self._prefix) :])) for workers in chosen]
        return tuple([worker for workers in in_order for worker in workers][:count])

    def host_of(self, worker: str) -> str:
        """Return the host of a worker."""
        return self._hosts.get(worker, "")

    @property
    def starting(self) -> int:
        """How many have been started and have not come yet."""
        return len(self._starting)

    def pass_to(self, worker: str, trial: int | None) -> None:
        """Let a busy worker go on with another trial; `None` as long as it has not said whether it does."""
        self._busy[worker] = trial
        self.losses_in_row = 0

    def is_busy(self, worker: str) -> bool:
        """Tell whether a worker works on a trial."""
        return worker in self._busy

    def is_between(self, worker: str) -> bool:
        """Tell whether it is not known what a busy worker works on."""
        return worker in self._busy and self._busy[worker] is None

    def give_back(self, worker: str) -> None:
        """Make a busy worker free again."""
        del self._busy[worker]
        self._idle[worker] = None
        self.losses_in_row = 0

    def release_idle(self) -> None:
        """Release the free workers."""
        self._release(self._idle)

    def release_all(self) -> None:
        """Release all workers, now that none of them is busy."""
        self._release(self._idle)
        self._release(self._starting)

    def _release(self, group: dict[str, None]) -> None:
        for worker in group:
            self._out.command(ReleaseWorker(worker))
        group.clear()
