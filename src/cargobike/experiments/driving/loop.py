"""The driver's loop: takes in what happens, lets the scheduler decide, and does it.

One round: hear the workers, hand events to the scheduler, write the facts, carry out the commands. Facts are in the
journal before anything that follows from them leaves this process.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cargobike.core.facts import Fact
from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import ExperimentState
from cargobike.experiments.display.display import Display
from cargobike.experiments.driving.interrupt import InterruptWatch
from cargobike.experiments.driving.optimizer_thread import OptimizerThread
from cargobike.experiments.driving.request import Callback
from cargobike.experiments.driving.server import WireServer
from cargobike.experiments.driving.worker_pool import WorkerPool
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.scheduler import Scheduler
from cargobike.store.journal.journal import JournalWriter
from cargobike.workers import wire

if TYPE_CHECKING:
    from cargobike.experiments.driving.board import Board

log = logging.getLogger(__name__)

POLITE_STOP_S = 1.0
SERVER_STOP_S = 10.0
STACK_S = 5.0
GOODBYE_S = 2.0
_STOP_FILE_EVERY_S = 0.25
_REFRESH_EVERY_S = 0.1
_ACK_EVERY_S = 5.0
_LONGEST_WAIT_MS = 250
_SETTLE_AFTER_MS = 5


class Clock:
    """The driver's time: seconds since the epoch that never run backwards, whatever the wall clock does."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Return the time."""
        return time.monotonic() + self._offset


@dataclass(slots=True)
class Parts:
    """Everything that a loop joins."""

    scheduler: Scheduler
    optimizer_thread: OptimizerThread
    pool: WorkerPool
    server: WireServer
    journal: JournalWriter
    folder: ExperimentFolder
    display: Display
    clock: Clock
    callbacks: Sequence[Callback] = ()
    interrupt: InterruptWatch = field(default_factory=InterruptWatch)


class Loop:
    """Runs an experiment to its end."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts
        self._facts: list[Fact] = []
        self._questions: deque[ev.Ask | ev.Judge] = deque()
        self._now = parts.clock.now()
        self._is_stopping = False
        self._board: Board | None = None
        self._ranks: dict[str, int] = {}
        self._next_refresh = 0.0
        self._next_look = 0.0
        self._next_ack = self._now + _ACK_EVERY_S
        self._actions = ev.table(
            ev.entry(ev.Ask, self._questions.append),
            ev.entry(ev.Judge, self._questions.append),
            ev.entry(ev.Run, self._run),
            ev.entry(ev.Answer, self._answer),
            ev.entry(ev.StopAttempt, self._stop_attempt),
            ev.entry(ev.StartWorker, self._start_worker),
            ev.entry(ev.ReleaseWorker, self._release_worker),
            ev.entry(ev.Finish, lambda _: None),
        )

    def run(self) -> None:
        """Run until the scheduler says that it is over, then see everybody off."""
        p = self._p
        p.server.watch(p.optimizer_thread.wake_fd)
        with p.interrupt:
            if p.interrupt.wake_fd is not None:
                p.server.watch(p.interrupt.wake_fd)
            self._do(p.scheduler.begin(self._now))
            while not p.scheduler.finished:
                self._round()
            self._see_off()

    # -- one round -----------------------------------------------------------------------------------------------

    def _round(self) -> None:
        p = self._p
        self._send_out()
        while self._questions:
            self._ask(self._questions.popleft())
            self._send_out()
        if not p.server.poll(0):
            self._write()
            if not p.server.poll(self._wait_ms()):
                p.journal.settle()
        self._now = p.clock.now()
        self._hear_workers()
        if p.optimizer_thread.is_beside:
            for event in p.optimizer_thread.answers(self._now):
                self._happen(event)
        if self._now >= p.pool.next_check:
            for event in p.pool.check(self._now):
                self._happen(event)
        if p.interrupt.requested and not self._is_stopping:
            self._stop("interrupted by the user")
        due = p.scheduler.next_deadline
        if due is not None and self._now >= due:
            self._happen(ev.Tick(at=self._now))
        if self._now >= self._next_look:
            self._look_around()

    def _wait_ms(self) -> int:
        due = self._next_look
        for other in (self._p.scheduler.next_deadline, self._p.pool.next_check):
            if other is not None:
                due = min(due, other)
        longest = _LONGEST_WAIT_MS if self._p.journal.is_settled else _SETTLE_AFTER_MS
        return max(0, min(longest, int((due - self._now) * 1000) + 1))

    def _look_around(self) -> None:
        """Do what need not be done in every round."""
        p = self._p
        self._next_look = self._now + _REFRESH_EVERY_S
        if waiting := p.pool.waiting_for():
            p.display.phase(waiting)
        p.display.refresh(self._now)
        p.journal.sync_if_due(self._now)
        if self._now >= self._next_ack:
            self._next_ack = self._now + _ACK_EVERY_S
            p.server.acknowledge_all()
        if self._now >= self._next_refresh:
            self._next_refresh = self._now + _STOP_FILE_EVERY_S
            if not self._is_stopping and p.folder.stop_request.exists():
                self._stop("stopped by request")

    def _happen(self, event: ev.Event) -> None:
        self._do(self._p.scheduler.handle(event))

    def _do(self, commands: Iterable[ev.Command]) -> None:
        for command in commands:
            if type(command) is ev.Record:
                self._facts.append(command.fact)
            else:
                self._actions[type(command)](command)

    def _send_out(self) -> None:
        """Let messages leave, once the facts that they follow from are in the journal.

        The optimizer is asked afterwards: a worker that waits for its next trial need not wait for that, too.
        """
        if self._p.server.has_mail:
            self._write()
            self._p.journal.settle()
            self._p.server.flush()

    def _write(self) -> None:
        """Write down what was recorded."""
        facts = self._facts
        if not facts:
            return
        self._facts = []
        self._p.journal.append(facts, settle=False)
        self._p.display.update(facts)
        for callback in self._p.callbacks:
            callback.on_facts(facts)

    # -- hearing -------------------------------------------------------------------------------------------------

    def _hear_workers(self) -> None:
        p = self._p
        messages, disconnected = p.server.receive()
        for worker, message in messages:
            p.pool.heard(worker, self._now)
            event = self._as_event(worker, message)
            if event is not None:
                self._happen(event)
        for worker in disconnected:
            p.pool.disconnected(worker, self._now)

    def _as_event(self, worker: str, message: wire.WorkerMessage) -> ev.Event | None:
        at = self._now
        if isinstance(message, wire.Point):
            return ev.PointsReported(
                at=at,
                worker=worker,
                trial=message.trial,
                attempt=message.attempt,
                step=message.step,
                metrics=message.metrics,
                waits=message.waits,
                again=message.again,
            )
        if isinstance(message, wire.Ended):
            self._p.pool.trial_ended(worker, died=message.alike.startswith(("was ended by", "exited with code")))
            return ev.AttemptEnded(
                at=at,
                worker=worker,
                trial=message.trial,
                attempt=message.attempt,
                outcome=message.outcome,
                value=message.value,
                metrics=message.metrics,
                error=message.error,
                alike=message.alike,
                peak_memory_bytes=message.peak_memory_bytes,
                is_symptom=message.is_symptom,
                stack=message.stack,
            )
        if isinstance(message, wire.Saved):
            return ev.CheckpointWritten(
                at=at,
                worker=worker,
                trial=message.trial,
                attempt=message.attempt,
                step=message.step,
                path=message.path,
                size_bytes=message.size_bytes,
            )
        if isinstance(message, wire.Output):
            self._keep_output(message, self._ranks.get(worker, 0))
            return ev.RankActive(at=at, worker=worker, trial=message.trial) if self._ranks else None
        if isinstance(message, wire.Published | wire.Wanted):
            for other, answer in self._board.take(worker, message) if self._board is not None else ():
                self._p.server.send(other, answer)
            return ev.RankActive(at=at, worker=worker, trial=message.trial)
        if isinstance(message, wire.Quiet):
            return ev.RankQuiet(
                at=at, worker=worker, trial=message.trial, attempt=message.attempt, idle_s=message.idle_s
            )
        if isinstance(message, wire.Hello):
            return self._p.pool.arrived(worker, message, at)
        if isinstance(message, wire.Bye):
            self._p.pool.left(worker)
        return None

    def _keep_output(self, message: wire.Output, rank: int) -> None:
        path = self._p.folder.trial(message.trial).output(message.stream, rank)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(message.data)
        except OSError as error:
            log.warning("output of trial %s could not be kept: %s", message.trial, error)

    # -- doing ---------------------------------------------------------------------------------------------------

    def _ask(self, command: ev.Ask | ev.Judge) -> None:
        answer = self._p.optimizer_thread.put(command, self._now)
        if answer is not None:
            self._now = max(self._now, answer.at)
            self._happen(answer)

    def _run(self, command: ev.Run) -> None:
        p = self._p
        trial = p.scheduler.record.trials[command.trial]
        source = p.scheduler.start_from(command.trial)
        start_from = str(p.folder.trial(source).checkpoints) if source is not None else None
        members = self._introduce(command) if command.hosts else [None]
        world_size = len(command.workers) - command.servers
        for index, (worker, membership) in enumerate(zip(command.workers, members, strict=True)):
            p.server.send(
                worker,
                wire.Assign(
                    command.trial,
                    command.attempt,
                    trial.params,
                    trial.seed,
                    index if index < world_size else index - world_size,
                    world_size,
                    p.scheduler.milestones(command.trial),
                    start_from,
                    membership,
                ),
            )

    def _introduce(self, command: ev.Run) -> Sequence[wire.Membership | None]:
        """Let the members of a gang know of each other."""
        from cargobike.experiments.driving.board import Board  # noqa: PLC0415 - most experiments have no gangs

        self._board = self._board or Board()
        self._ranks.update({worker: index for index, worker in enumerate(command.workers)})
        return self._board.open(command, self._p.scheduler.plan)

    def _answer(self, command: ev.Answer) -> None:
        self._p.server.send(
            command.worker,
            wire.Verdict(command.trial, command.attempt, command.step, command.decision.value),
        )

    def _stop(self, reason: str) -> None:
        self._is_stopping = True
        self._p.display.phase("stopping")
        self._happen(ev.StopRequested(at=self._now, reason=reason))

    def _stop_attempt(self, command: ev.StopAttempt) -> None:
        grace_s = 0.0 if command.kill else SERVER_STOP_S if command.is_server else POLITE_STOP_S
        if command.stack and not command.is_server:
            grace_s = STACK_S  # it is ended as soon as it has answered
        self._p.server.send(command.worker, wire.Halt(command.trial, command.attempt, grace_s, command.stack))

    def _start_worker(self, command: ev.StartWorker) -> None:
        self._p.pool.start(command.worker, self._now)

    def _release_worker(self, command: ev.ReleaseWorker) -> None:
        self._p.server.send(command.worker, wire.Release())
        self._p.pool.released(command.worker)

    # -- the end -------------------------------------------------------------------------------------------------

    def _see_off(self) -> None:
        """Let the workers deliver what they still have; a worker that takes too long is ended."""
        p = self._p
        self._write()
        p.journal.settle()
        p.server.flush()
        p.display.refresh(self._now)
        in_a_hurry = p.scheduler.record.state is ExperimentState.INTERRUPTED
        deadline = p.clock.now() + (GOODBYE_S / 2 if in_a_hurry else GOODBYE_S)
        while p.pool.leaving and (left := deadline - p.clock.now()) > 0 and not p.interrupt.insisted:
            p.server.poll(max(1, int(min(left, 0.05) * 1000)))
            self._now = p.clock.now()
            with contextlib.suppress(OSError):
                self._hear_workers()
            p.pool.check(self._now)
