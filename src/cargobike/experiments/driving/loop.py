"""The driver's loop: hands events to the scheduler, and carries out its commands.

One round: send what is due, ask the optimizer, write the facts, wait for workers, hand their messages to the scheduler
as events. Facts are in the journal before any message that follows from them leaves this process, so that a driver that
takes over after a crash knows everything that workers were told.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cargobike.core.facts import Fact
from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import ExperimentState
from cargobike.core.running.forks import end_copy
from cargobike.core.values.exact import pack_exactly
from cargobike.experiments.display.display import Display
from cargobike.experiments.driving.clock import Clock
from cargobike.experiments.driving.data_pace import DataPaces
from cargobike.experiments.driving.interrupt import InterruptWatch
from cargobike.experiments.driving.optimizer_thread import OptimizerThread
from cargobike.experiments.driving.output_files import OutputFiles
from cargobike.experiments.driving.remarks import Remarks
from cargobike.experiments.driving.request import Callback, HearsMembers
from cargobike.experiments.driving.translating import event_of_end, event_of_report
from cargobike.experiments.driving.usage_files import UsageFiles
from cargobike.experiments.driving.worker_pool import WorkerPool
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.scheduler import Scheduler
from cargobike.experiments.trial import messages
from cargobike.store.journal.journal import JournalWriter
from cargobike.workers.wire import messages as wire
from cargobike.workers.wire.ways import DriverEnd

if TYPE_CHECKING:
    from cargobike.experiments.driving.board import Board
    from cargobike.experiments.driving.file_server import FileServer

POLITE_STOP_S = 1.0
SERVER_STOP_S = 10.0
STACK_S = 5.0
GOODBYE_S = 2.0
_STOP_FILE_EVERY_S = 0.25
_REFRESH_EVERY_S = 0.1
_ACK_EVERY_S = 5.0
_LONGEST_WAIT_MS = 250
_SETTLE_AFTER_MS = 5
_SEND_EVERY_S = 0.001


class Parts(msgspec.Struct):
    """Everything that a loop connects."""

    scheduler: Scheduler
    optimizer_thread: OptimizerThread
    pool: WorkerPool
    server: DriverEnd[messages.FromWorker]
    journal: JournalWriter
    folder: ExperimentFolder
    display: Display
    clock: Clock
    file_server: FileServer | None = None
    callbacks: Sequence[Callback] = ()
    interrupt: InterruptWatch = msgspec.field(default_factory=InterruptWatch)


class Loop:
    """Runs an experiment to its end."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts
        self._facts: list[Fact] = []
        self._questions: deque[ev.Ask | ev.Judge] = deque()
        self._now = parts.clock.now()
        self._pid = os.getpid()
        self._is_stopping = False
        self._remarks = Remarks(parts.scheduler.plan)
        self._board: Board | None = None
        self._outputs = OutputFiles()
        self._usage = UsageFiles(parts.folder, self._outputs)
        self._data_paces = DataPaces()
        self._ranks: dict[str, int] = {}
        self._given: dict[str, set[int]] = {}
        self._with_peers: set[str] = set()
        self._project = parts.folder.root.absolute().parent.parent
        self._next_refresh = 0.0
        self._next_look = 0.0
        self._next_ack = self._now + _ACK_EVERY_S
        self._actions = ev.table(
            ev.entry(ev.Ask, self._questions.append),
            ev.entry(ev.Judge, self._questions.append),
            ev.entry(ev.Run, self._run),
            ev.entry(ev.Recall, lambda command: self._p.server.send(command.worker, wire.Recall())),
            ev.entry(ev.Answer, self._answer),
            ev.entry(ev.Confirm, self._confirm),
            ev.entry(ev.StopAttempt, self._stop_attempt),
            ev.entry(ev.StartWorker, self._start_worker),
            ev.entry(ev.ReleaseWorker, self._release_worker),
            ev.entry(ev.Finish, lambda _: None),
        )

    def run(self) -> None:
        """Run until the scheduler says that it is over, then wait for the workers to leave."""
        p = self._p
        p.server.watch(p.optimizer_thread.wake_fd)
        with p.interrupt:
            if p.interrupt.wake_fd is not None:
                p.server.watch(p.interrupt.wake_fd)
            self._do(p.scheduler.begin(self._now))
            try:
                while not p.scheduler.finished:
                    self._round()
                p.journal.check_place()
                self._say_goodbye()
            finally:
                self._outputs.close()

    # -- one round -----------------------------------------------------------------------------------------------

    def _round(self) -> None:
        p = self._p
        # Answers and trials leave first: workers wait for them, and an optimizer may take its time.
        self._send_out()
        sent_at = time.monotonic()
        while self._questions:
            self._ask(self._questions.popleft())
            # Trials for several workers leave together, but none waits for long until there are more.
            if time.monotonic() - sent_at >= _SEND_EVERY_S:
                self._send_out()
                sent_at = time.monotonic()
        self._send_out()
        # Facts that no message follows from are written, and flushed to disk, only when there is nothing to hear.
        if not self._facts or not p.server.poll(0):
            self._write()
            if not p.server.poll(self._wait_ms()):
                p.journal.settle()
        # Workers are heard before the pool looks for lost ones: a message proves that its sender was alive.
        self._now = p.clock.now()
        self._hear_workers()
        if p.optimizer_thread.is_beside:
            for event in p.optimizer_thread.answers(self._now):
                self._happen(event)
        if self._now >= p.pool.next_check:
            for event in p.pool.check(self._now):
                self._end_transfers(event.worker)
                self._data_paces.ended(event.worker)
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
        """Do what need not be done in every round: draw, sync, acknowledge, look for a request to stop."""
        p = self._p
        self._next_look = self._now + _REFRESH_EVERY_S
        if waiting := p.pool.waiting_for():
            p.display.phase(waiting)
        p.display.draws_data(self._data_paces.total(self._now))
        p.display.refresh(self._now)
        p.journal.sync_if_due(self._now)
        self._outputs.try_again(self._now)
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
        """Send the waiting messages, after writing the facts that they follow from into the journal."""
        if self._p.server.has_mail:
            self._write()
            self._p.journal.settle()
            self._p.server.flush()

    def _write(self) -> None:
        """Append the facts to the journal, and show them to the display and the callbacks."""
        facts = self._facts
        if not facts:
            return
        self._facts = []
        self._p.journal.append(facts, settle=False)
        self._p.display.update(facts)
        for callback in self._p.callbacks:
            callback.on_facts(facts)
        self._end_copies()

    def _end_copies(self) -> None:
        """After calling user code: end a copy of the driver that it forked and let out."""
        if os.getpid() != self._pid:
            end_copy(None)

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

    def _as_event(self, worker: str, message: messages.FromWorker) -> ev.Event | None:
        at = self._now
        if isinstance(message, wire.Said):
            return self._said(worker, message)
        if isinstance(message, wire.Ended | wire.Died):
            return self._ended(worker, message)
        if isinstance(message, wire.Output):
            if message.task in self._given.get(worker, ()):
                trial = self._p.folder.trial(message.task)
                self._outputs.append(trial.output(message.stream, self._ranks.get(worker, 0)), message.data)
            return ev.RankActive(at=at, worker=worker, trial=message.task) if self._ranks else None
        if isinstance(message, wire.Used):
            if message.task in self._given.get(worker, ()):
                pace = self._data_paces.of(worker, message.task, message.attempt)
                self._usage.keep(message, self._ranks.get(worker, 0), pace)
            return None
        if isinstance(message, wire.Quiet):
            return ev.RankQuiet(
                at=at, worker=worker, trial=message.task, attempt=message.attempt, idle_s=message.idle_s
            )
        if isinstance(message, wire.Returned):
            return ev.TrialsReturned(at=at, worker=worker, trials=message.tasks)
        if isinstance(message, wire.Hello):
            return self._p.pool.arrived(worker, message, at)
        if isinstance(message, wire.Bye):
            self._end_transfers(worker)
            return self._p.pool.left(worker, at)
        return None

    def _said(self, worker: str, message: wire.Said[messages.FromTrial]) -> ev.Event | None:
        trial, attempt, body = message.task, message.attempt, message.body
        if isinstance(body, messages.Drawn):
            if trial in self._given.get(worker, ()):
                self._data_paces.note(worker, trial, attempt, body, self._now)
            return ev.RankActive(at=self._now, worker=worker, trial=trial) if self._ranks else None
        if isinstance(body, messages.Point | messages.Saved | messages.KeptModel):
            return event_of_report(worker, message, body, at=self._now, project=self._project)
        if isinstance(body, messages.Published) and trial in self._given.get(worker, ()):
            self._hand_on(self._ranks.get(worker, 0), body)
        for other, answer in self._board.take(worker, trial, attempt, body) if self._board is not None else ():
            self._p.server.send(other, wire.Tell(trial, attempt, answer, droppable=True))
        return ev.RankActive(at=self._now, worker=worker, trial=trial)

    def _hand_on(self, rank: int, published: messages.Published) -> None:
        """Show what a member publishes to the callbacks that look at such things."""
        for callback in self._p.callbacks:
            if isinstance(callback, HearsMembers):
                callback.on_published(rank, published.name, published.value)
        self._end_copies()

    def _ended(self, worker: str, message: wire.Ended[messages.AttemptEnd] | wire.Died) -> ev.Event:
        self._end_transfers(worker)
        self._data_paces.ended(worker)
        event = event_of_end(worker, message, at=self._now, has_peers=worker in self._with_peers)
        died = isinstance(message, wire.Died) and event.outcome != "stopped"
        self._p.pool.trial_ended(worker, message.task, message.attempt, died=died)
        self._remarks.ended(event, self._p.scheduler.record.runs)
        return event

    def _end_transfers(self, worker: str) -> None:
        """Serve no more files to a worker until its next trial: what it had to send, it has sent, or it is lost."""
        if self._p.file_server is not None:
            self._p.file_server.disallow(worker)

    # -- doing ---------------------------------------------------------------------------------------------------

    def _ask(self, command: ev.Ask | ev.Judge) -> None:
        answer = self._p.optimizer_thread.put(command, self._now)
        self._end_copies()
        if answer is not None:
            self._now = max(self._now, answer.at)
            self._happen(answer)

    def _run(self, command: ev.Run) -> None:
        p = self._p
        trial = p.scheduler.record.runs[command.trial]
        source = p.scheduler.start_from(command.trial)
        checkpoints = p.folder.trial(source).checkpoints if source is not None else None
        start_from = self._inside(checkpoints) if checkpoints is not None else None
        members = self._introduce(command) if command.hosts else [None]
        world_size = len(command.workers) - command.servers
        params = pack_exactly(trial.params)
        for index, (worker, membership) in enumerate(zip(command.workers, members, strict=True)):
            is_server = index >= world_size
            self._given.setdefault(worker, set()).add(command.trial)
            assignment = messages.Assignment(
                params,
                trial.seed,
                index - world_size if is_server else index,
                world_size,
                p.scheduler.milestones(command.trial),
                start_from,
                membership,
                trial.reports,
            )
            quiet_after_s = membership.stall_timeout_s if membership is not None and len(membership.roles) > 1 else None
            files = p.file_server.allow(worker, command.trial, source, prunes=index == 0) if p.file_server else None
            p.server.send(worker, wire.Assign(command.trial, command.attempt, assignment, quiet_after_s, files))

    def _inside(self, path: Path) -> str:
        """Return a path relative to the project, as workers on other machines need it."""
        return path.absolute().relative_to(self._project).as_posix()

    def _introduce(self, command: ev.Run) -> Sequence[messages.Membership | None]:
        """Open the board of a gang; returns what each member has to know about the others."""
        from cargobike.experiments.driving.board import Board  # noqa: PLC0415 - most experiments have no gangs

        self._board = self._board or Board()
        self._ranks.update({worker: index for index, worker in enumerate(command.workers)})
        (self._with_peers.update if len(command.workers) > 1 else self._with_peers.difference_update)(command.workers)
        return self._board.open(command, self._p.scheduler.plan)

    def _answer(self, command: ev.Answer) -> None:
        self._p.server.send(
            command.worker,
            wire.Tell(command.trial, command.attempt, messages.Verdict(command.step, command.decision.value)),
        )

    def _confirm(self, command: ev.Confirm) -> None:
        # A later one says the same and more: a function that does not report any more must not be waited for.
        confirmed = messages.Confirmed(command.number)
        self._p.server.send(command.worker, wire.Tell(command.trial, command.attempt, confirmed, droppable=True))

    def _stop(self, reason: str) -> None:
        self._is_stopping = True
        self._p.display.phase("stopping")
        self._happen(ev.StopRequested(at=self._now, reason=reason))

    def _stop_attempt(self, command: ev.StopAttempt) -> None:
        grace_s = 0.0 if command.kill else SERVER_STOP_S if command.is_server else POLITE_STOP_S
        if command.stack and not command.is_server:
            grace_s = STACK_S  # a limit only: it is ended as soon as it has sent its stack
        self._p.server.send(command.worker, wire.Halt(command.trial, command.attempt, grace_s, command.stack))
        patience = self._p.pool.patience
        within_s = grace_s + (patience.end_s if self._p.file_server is None else patience.deliver_s)
        self._p.pool.told_to_end(command.worker, command.trial, command.attempt, self._now + within_s)

    def _start_worker(self, command: ev.StartWorker) -> None:
        self._p.pool.start(command.worker, command.role, self._now)

    def _release_worker(self, command: ev.ReleaseWorker) -> None:
        self._p.server.send(command.worker, wire.Release())
        self._p.pool.released(command.worker)

    # -- the end -------------------------------------------------------------------------------------------------

    def _say_goodbye(self) -> None:
        """Give the workers time to deliver what they still have; one that takes too long is not waited for."""
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
