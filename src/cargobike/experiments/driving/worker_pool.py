"""The pool of workers: which were started, which have come, which are gone."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from cargobike.core.errors import EngineError
from cargobike.core.running.descriptors import (
    FREE_DESCRIPTORS_WITHIN_S,
    from_reserve,
    is_out_of_descriptors,
    out_of_descriptors,
)
from cargobike.core.running.ending import Ending, EndKind
from cargobike.core.running.member import Role
from cargobike.engines.capabilities import AvoidsBadMachines, Elsewhere, TellsWaiting
from cargobike.engines.engine import Engine, WorkerHandle, WorkerSpec
from cargobike.experiments.driving.request import Patience
from cargobike.experiments.scheduling.events import Event, WorkerArrived, WorkerGone
from cargobike.experiments.trial.messages import FromWorker
from cargobike.workers.wire.messages import Hello
from cargobike.workers.wire.ways import DriverEnd, Ticket

log = logging.getLogger(__name__)

_LOOK_AT_SUSPECTS_S = 0.01
_LOOK_AT_NEWCOMERS_S = 0.1
_LOOK_AT_ALL_S = 1.0
_AWAY_S = 2.0


class _Due(msgspec.Struct):
    """An attempt that a worker was told to end, and by when."""

    trial: int
    attempt: int
    by: float


class _Member(msgspec.Struct):
    handle: WorkerHandle
    since: float
    joined: bool = False
    released: bool = False
    due: _Due | None = None


class WorkerPool:
    """Starts workers through the engine and notices when they are gone."""

    def __init__(
        self,
        engine: Engine,
        server: DriverEnd[FromWorker],
        make_spec: Callable[[str, Role, Ticket], WorkerSpec],
        patience: Patience,
    ) -> None:
        self._engine = engine
        self._server = server
        self._make_spec = make_spec
        self.patience = patience
        self._join_s = max(patience.join_s, engine.join_s) if isinstance(engine, Elsewhere) else patience.join_s
        self._members: dict[str, _Member] = {}
        self._newcomers: dict[str, _Member] = {}
        self._suspects: dict[str, float] = {}
        self._postponed: dict[str, tuple[Role, float]] = {}
        self._stillborn: list[tuple[str, Ending]] = []
        self._next_round = 0.0
        self._next_roll_call = 0.0
        self._has_had_workers = False

    @property
    def leaving(self) -> bool:
        """Whether workers are still there that have joined and not left yet."""
        return any(member.joined for member in self._members.values())

    @property
    def next_check(self) -> float:
        """When `check` has something to do at the latest, in the driver's time."""
        return 0.0 if self._stillborn else self._next_round

    def start(self, worker: str, role: Role, now_s: float) -> None:
        """Start a worker; a failure to do so is reported by `check`."""
        self._start(worker, role, now_s, give_up_at=now_s + FREE_DESCRIPTORS_WITHIN_S)

    def _start(self, worker: str, role: Role, now_s: float, give_up_at: float) -> None:
        """Start a worker, or try again in the next round while no descriptor is free."""
        try:
            spec = self._make_spec(worker, role, self._server.issue(worker))
            handle = from_reserve(lambda: self._engine.start_worker(spec))
        except (EngineError, OSError) as error:
            self._server.forget(worker)
            if not is_out_of_descriptors(error):
                if not isinstance(error, EngineError):
                    raise
                self._stillborn.append((worker, Ending(EndKind.NOT_STARTED, str(error))))
            elif now_s < give_up_at:
                self._postponed[worker] = (role, give_up_at)
                self._next_round = min(self._next_round, now_s + _LOOK_AT_NEWCOMERS_S)
            else:
                self._stillborn.append((worker, Ending(EndKind.NOT_STARTED, out_of_descriptors())))
            return
        member = _Member(handle, now_s)
        self._members[worker] = member
        self._newcomers[worker] = member
        self._next_round = min(self._next_round, now_s + _LOOK_AT_NEWCOMERS_S)

    def arrived(self, worker: str, hello: Hello, now_s: float) -> Event | None:
        """Handle the greeting of a worker, its first one or one after a reconnect; only the first is an event."""
        member = self._members.get(worker)
        if member is None:
            return None
        self._suspects.pop(worker, None)
        self._newcomers.pop(worker, None)
        if member.joined or member.released:
            return None
        member.joined = self._has_had_workers = True
        member.since = now_s
        return WorkerArrived(
            at=now_s, worker=worker, host=hello.host, pid=hello.pid, gpus=hello.gpus, holds=hello.holds
        )

    def heard(self, worker: str, now_s: float) -> None:
        """Note that a worker is alive."""
        member = self._members.get(worker)
        if member is not None:
            member.since = now_s
            self._suspects.pop(worker, None)  # it has come back

    def disconnected(self, worker: str, now_s: float) -> None:
        """Watch a worker closely whose connection has closed."""
        if worker in self._members:
            self._suspects[worker] = now_s
            self._next_round = now_s

    def released(self, worker: str) -> None:
        """Expect a worker to leave; one that has not come yet is ended."""
        if self._postponed.pop(worker, None) is not None:
            self._server.forget(worker)
        member = self._members.get(worker)
        if member is not None:
            member.released = True
            if not member.joined:
                member.handle.kill()

    def left(self, worker: str, now_s: float) -> Event | None:
        """Forget a worker that has said goodbye; one that was not released is lost, with what it was working on."""
        member = self._members.get(worker)
        if member is None:
            return None
        self._forget(worker)
        if member.released:
            return None
        member.handle.kill()
        return WorkerGone(at=now_s, worker=worker, ending=Ending(EndKind.LEFT, "it left without being released"))

    def _forget(self, worker: str) -> None:
        del self._members[worker]
        self._newcomers.pop(worker, None)
        self._suspects.pop(worker, None)
        self._server.forget(worker)

    def waiting_for(self) -> str:
        """Say what keeps the first worker from coming, if the engine knows; empty once one has come."""
        if self._has_had_workers:
            return ""
        return self._engine.waiting_for() if isinstance(self._engine, TellsWaiting) else ""

    def told_to_end(self, worker: str, trial: int, attempt: int, by: float) -> None:
        """Expect the end of an attempt by a certain time."""
        member = self._members.get(worker)
        if member is not None:
            due = member.due
            is_same = due is not None and (due.trial, due.attempt) == (trial, attempt)
            member.due = _Due(trial, attempt, min(by, due.by) if is_same and due is not None else by)

    def trial_ended(self, worker: str, trial: int, attempt: int, *, died: bool) -> None:
        """Expect nothing more, and tell the engine whether the process of a trial has died, if it wants to know."""
        member = self._members.get(worker)
        if member is not None and member.due is not None and (member.due.trial, member.due.attempt) == (trial, attempt):
            member.due = None
        if isinstance(self._engine, AvoidsBadMachines):
            self._engine.work_ended(worker, died=died)

    def check(self, now_s: float) -> list[WorkerGone]:
        """Return an event for each worker that is gone; looks no more often than useful."""
        gone = [WorkerGone(at=now_s, worker=worker, ending=ending) for worker, ending in self._stillborn]
        self._stillborn.clear()
        if now_s < self._next_round:
            return gone
        postponed, self._postponed = self._postponed, {}
        for worker, (role, give_up_at) in postponed.items():
            self._start(worker, role, now_s, give_up_at)
        if now_s >= self._next_roll_call:
            candidates = self._members
            self._excuse_all_if_we_were_away(now_s)
            self._next_roll_call = now_s + _LOOK_AT_ALL_S
        else:
            candidates = {**self._newcomers, **{worker: self._members[worker] for worker in self._suspects}}
        for worker, member in list(candidates.items()):
            ending = self._ending_of(worker, member, now_s)
            if ending is not None:
                self._forget(worker)
                if not member.released:
                    gone.append(WorkerGone(at=now_s, worker=worker, ending=ending))
        is_starting = self._newcomers or self._postponed
        pause_s = _LOOK_AT_SUSPECTS_S if self._suspects else _LOOK_AT_NEWCOMERS_S if is_starting else _LOOK_AT_ALL_S
        self._next_round = min(now_s + pause_s, self._next_roll_call)
        return gone

    def _excuse_all_if_we_were_away(self, now_s: float) -> None:
        """Excuse the silence of all workers if the driver itself was away: stopped, suspended, or held up.

        It could not have heard them.
        """
        away_s = now_s - self._next_roll_call
        if self._next_roll_call and away_s > _AWAY_S:
            for member in self._members.values():
                member.since = now_s
                if member.due is not None:
                    member.due.by += away_s
            self._suspects = dict.fromkeys(self._suspects, now_s)

    def _ending_of(self, worker: str, member: _Member, now_s: float) -> Ending | None:
        """Return how a worker ended, `None` if it seems to be alive; one that has been away too long is killed."""
        ended = member.handle.poll()
        if ended is not None:
            return Ending(ended.kind, f"its process {ended}")
        ending = self._too_long_away(worker, member, now_s)
        if ending is not None:
            member.handle.kill()
        return ending

    def _too_long_away(self, worker: str, member: _Member, now_s: float) -> Ending | None:
        patience, away_s = self.patience, now_s - member.since
        suspect_since = self._suspects.get(worker)
        if suspect_since is not None and now_s - suspect_since > patience.reconnect_s:
            text = f"its connection closed and did not come back within {patience.reconnect_s:g} s"
            return Ending(EndKind.DISCONNECTED, text)
        if not member.joined and away_s > (join_s := self._join_s):
            return Ending(EndKind.NEVER_CAME, f"it did not connect within {join_s:g} s")
        if member.joined and away_s > patience.silence_s:
            return Ending(EndKind.SILENT, f"it has been silent for {patience.silence_s:g} s")
        if member.due is not None and now_s > member.due.by:
            return Ending(EndKind.STUCK, f"it was told to end trial {member.due.trial} and did not in time")
        return None
