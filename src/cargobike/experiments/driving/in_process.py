"""Runs trials in the driver's own process, one after the other: for `breakpoint()`, debuggers and profilers.

The scheduler, the journal and what a train function may call are the same as with workers; what is missing is what
takes processes: trials side by side, and an end by force. Everything happens in the thread that called `launch`: while
the train function reports, the driver does its part and returns.
"""

from __future__ import annotations

import bdb
import contextlib
import mmap
import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cargobike.core.errors import EngineError, TrialStopped
from cargobike.core.facts import Fact
from cargobike.core.layout import ExperimentFolder
from cargobike.core.values.exact import pack_exactly
from cargobike.experiments.display.display import Display
from cargobike.experiments.driving.clock import Clock
from cargobike.experiments.driving.data_pace import DataPaces
from cargobike.experiments.driving.deferring import Deferring
from cargobike.experiments.driving.output_files import OutputFiles
from cargobike.experiments.driving.remarks import Remarks
from cargobike.experiments.driving.request import Callback
from cargobike.experiments.driving.tee import copying_output
from cargobike.experiments.driving.translating import event_of_end, event_of_report
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.optimizer_session import OptimizerSession
from cargobike.experiments.scheduling.scheduler import Scheduler
from cargobike.experiments.trial import messages
from cargobike.experiments.trial.payload import Payload
from cargobike.experiments.trial.program import TrialProgram
from cargobike.store.journal.journal import JournalWriter
from cargobike.workers.program import Seat, encode_checked
from cargobike.workers.wire import messages as wire
from cargobike.workers.wire.messages import Message, encode_message

QUITS = (KeyboardInterrupt, bdb.BdbQuit)
"""What ends the experiment, not only the trial: Ctrl-C, and `quit` in Python's debugger."""


@dataclass(slots=True)
class HereParts:
    """Everything that is needed to run an experiment here; `function` is the train function itself, if it is known."""

    scheduler: Scheduler
    session: OptimizerSession
    payload: bytes
    function: Callable[..., Any] | None
    journal: JournalWriter
    folder: ExperimentFolder
    display: Display
    clock: Clock
    callbacks: Sequence[Callback] = ()


class _HereSeat(Seat):
    """A seat without an agent: what the trial says goes straight to the driver."""

    hear: Callable[[Message], None] = lambda _: None

    def send(self, message: Message, what: str = "A message") -> None:
        """Hand a message to the driver, which does its part before this returns."""
        encode_checked(message, what)  # what a worker could not send is refused here, too
        self.hear(message)


class InProcess:
    """Runs an experiment to its end, in this process."""

    def __init__(self, parts: HereParts) -> None:
        self._p = parts
        self._project = parts.folder.project.root
        self._remarks = Remarks(parts.scheduler.plan)
        self._outputs = OutputFiles()
        self._data_paces = DataPaces()
        self._deferring = Deferring()
        self._lock = threading.RLock()  # a train function may report and save from any thread
        self._facts: list[Fact] = []
        self._events: deque[ev.Event] = deque()
        self._questions: deque[ev.Ask | ev.Judge] = deque()
        self._next: ev.Run | None = None
        self._error: Exception | None = None
        self._is_stopping = False
        self._box, runner_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._seat = _HereSeat(
            agent=runner_end,
            flags=mmap.mmap(-1, mmap.PAGESIZE),
            folder=str(parts.folder.root),
            project=str(self._project),
            reuse=True,
            hear=self._hear,
        )
        self._payload = Payload.decode(parts.payload)
        self._program = TrialProgram(self._payload, function=parts.function, passes_on=QUITS)
        self._actions = ev.table(
            ev.entry(ev.Ask, self._questions.append),
            ev.entry(ev.Judge, self._questions.append),
            ev.entry(ev.Run, self._assigned),
            ev.entry(ev.Answer, self._answer),
            ev.entry(ev.Confirm, self._confirm),
            ev.entry(ev.StopAttempt, self._stop_attempt),
            ev.entry(ev.StartWorker, self._arrived),
            ev.entry(ev.ReleaseWorker, lambda _: None),
            ev.entry(ev.Finish, lambda _: None),
        )

    def run(self) -> None:
        """Run until the scheduler says that it is over."""
        scheduler = self._p.scheduler
        with contextlib.closing(self._box), contextlib.closing(self._seat.agent), self._deferring, self._imports():
            try:
                with self._deferring.deferred():
                    self._do(scheduler.begin(self._now))
                while not scheduler.finished:
                    self._round()
                self._p.journal.check_place()
            finally:
                self._outputs.close()

    # -- the driver's part ---------------------------------------------------------------------------------------

    @property
    def _now(self) -> float:
        return self._p.clock.now()

    def _round(self) -> None:
        try:
            with self._deferring.deferred():
                self._settle()
            if self._next is not None:
                self._work(self._next)
            elif not self._p.scheduler.finished:
                self._wait()
        except KeyboardInterrupt:  # between two trials
            self._stop("interrupted by the user")

    def _settle(self) -> None:
        """Handle everything that has happened, up to where the train function has to go on."""
        while self._events or self._questions:
            if self._events:
                self._happen(self._events.popleft())
            else:
                question = self._questions.popleft()
                self._happen(self._p.session.answer(question, self._now, self._p.session.show(question)))
        due = self._p.scheduler.next_deadline
        if due is not None and self._now >= due:
            self._happen(ev.Tick(at=self._now))
        self._write()

    def _happen(self, event: ev.Event) -> None:
        self._do(self._p.scheduler.handle(event))

    def _do(self, commands: Iterable[ev.Command]) -> None:
        for command in commands:
            if type(command) is ev.Record:
                self._facts.append(command.fact)
            else:
                self._actions[type(command)](command)

    def _write(self) -> None:
        """Append the facts to the journal, and show them to the display and the callbacks."""
        p, facts = self._p, self._facts
        if facts:
            self._facts = []
            p.journal.append(facts)
            p.display.update(facts)
            for callback in p.callbacks:
                callback.on_facts(facts)

    def _look_around(self) -> None:
        p, now = self._p, self._now
        p.display.refresh(now)
        p.journal.sync_if_due(now)
        self._outputs.try_again(now)
        if not self._is_stopping and p.folder.stop_request.exists():
            self._stop("stopped by request")

    def _wait(self) -> None:
        due = self._p.scheduler.next_deadline
        if due is None:
            raise EngineError("the search stands still: nothing will happen any more, but it is not over")
        self._look_around()
        time.sleep(max(0.0, min(due - self._now, 0.25)))

    def _stop(self, reason: str) -> None:
        self._is_stopping = True
        with self._deferring.deferred():
            self._happen(ev.StopRequested(at=self._now, reason=reason))

    # -- the worker's part ---------------------------------------------------------------------------------------

    def _arrived(self, command: ev.StartWorker) -> None:
        host, pid = socket.gethostname(), os.getpid()
        self._events.append(ev.WorkerArrived(at=self._now, worker=command.worker, host=host, pid=pid))

    def _assigned(self, command: ev.Run) -> None:
        self._next = command

    def _work(self, command: ev.Run) -> None:
        """Run one attempt of a trial."""
        self._next = None
        self._seat.flags[0] = 0
        (worker,) = command.workers
        packet = encode_message(wire.Assign(command.trial, command.attempt, self._assignment(command)))
        try:
            with self._surroundings(command.trial):
                ended = self._program.run(self._seat, packet)
            with self._deferring.deferred():
                event = event_of_end(worker, ended, at=self._now, has_peers=False)
        except QUITS as quits:
            self._stop("interrupted by the user" if isinstance(quits, KeyboardInterrupt) else "the debugger was quit")
            event = ev.AttemptEnded(
                at=self._now, worker=worker, trial=command.trial, attempt=command.attempt, outcome="stopped"
            )
        if self._error is not None:
            raise self._error
        self._remarks.ended(event, self._p.scheduler.record.runs)
        self._events.append(event)

    def _assignment(self, command: ev.Run) -> messages.Assignment:
        p = self._p
        trial = p.scheduler.record.runs[command.trial]
        source = p.scheduler.start_from(command.trial)
        checkpoints = None if source is None else p.folder.trial(source).checkpoints
        return messages.Assignment(
            pack_exactly(trial.params),
            trial.seed,
            milestones=p.scheduler.milestones(command.trial),
            start_from=None if checkpoints is None else checkpoints.relative_to(self._project).as_posix(),
            reports=trial.reports,
        )

    @contextlib.contextmanager
    def _surroundings(self, trial: int) -> Iterator[None]:
        """Copy what is printed to the trial's files; afterwards work where this process worked before."""
        directory = os.getcwd()
        folder = self._p.folder.trial(trial)
        try:
            with copying_output(lambda stream, data: self._outputs.append(folder.output(stream, 0), data)):
                yield
        finally:
            self._program.leave(self._seat)
            os.chdir(directory)

    @contextlib.contextmanager
    def _imports(self) -> Iterator[None]:
        """Make recorded modules importable, if the train function comes from a recording."""
        path, arguments = sys.path[:], sys.argv[:]
        if self._p.function is None:
            self._payload.prepare_imports()
        try:
            yield
        finally:
            sys.path[:], sys.argv[:] = path, arguments

    def _hear(self, message: Message) -> None:
        """Do what a driver does when a trial reports or saves."""
        if isinstance(message, wire.Said) and isinstance(message.body, messages.Drawn):
            return  # how fast rows come is shown of other processes only
        with self._lock, self._deferring.deferred():
            try:
                if self._error is None and isinstance(message, wire.Said):
                    worker = self._p.scheduler.record.runs[message.task].worker or ""
                    body = message.body
                    if isinstance(body, messages.Drawn):
                        self._data_paces.note(worker, message.task, message.attempt, body, self._now)
                        self._p.display.draws_data(self._data_paces.total(self._now))
                    else:
                        self._happen(event_of_report(worker, message, body, at=self._now, project=self._project))
                    self._look_around()
                    self._settle()
            except Exception as error:  # noqa: BLE001 - not the train function's: raised again when that has ended
                self._error = error
        if self._error is not None:
            raise TrialStopped("the experiment cannot go on")

    def _answer(self, command: ev.Answer) -> None:
        self._write()
        verdict = messages.Verdict(command.step, command.decision.value)
        self._box.send(encode_message(wire.Tell(command.trial, command.attempt, verdict)))

    def _confirm(self, command: ev.Confirm) -> None:
        self._write()
        confirmed = wire.Tell(command.trial, command.attempt, messages.Confirmed(command.number))
        with contextlib.suppress(BlockingIOError):  # a later one says the same and more
            self._box.send(encode_message(confirmed), socket.MSG_DONTWAIT)

    def _stop_attempt(self, _: ev.StopAttempt) -> None:
        self._seat.flags[0] = 1
