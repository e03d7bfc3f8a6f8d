"""The driver of a run: does what the conductor decides, and waits where a value is needed.

The pipeline's function runs in the thread that called `run`. A second thread listens to the processes of steps and to
the clock. Whatever either of them learns goes to the conductor under one lock, and its commands are carried out there:
a fact is in the journal before anything follows from it.
"""

from __future__ import annotations

import math
import os
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cargobike.core.errors import ConnectionLostError, InvalidInputError, RunCancelledError, WaitError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.steps import OwnCall
from cargobike.pipelines.driving import events
from cargobike.pipelines.driving.cache import Cache
from cargobike.pipelines.driving.clock import Clock
from cargobike.pipelines.driving.conductor import Conductor
from cargobike.pipelines.driving.endings import Failures, outcome_of
from cargobike.pipelines.driving.events import Command, Event
from cargobike.pipelines.driving.interrupts import Interrupts
from cargobike.pipelines.driving.own_calls import OwnCalls
from cargobike.pipelines.driving.packing import Packed, Packing
from cargobike.pipelines.facts import AnyRunFact, RunState, StepAsked, StepKind
from cargobike.pipelines.processes.attempt import read_outcome
from cargobike.pipelines.processes.crew import Crew
from cargobike.pipelines.processes.messages import Gone, Task
from cargobike.pipelines.record import RunRecord
from cargobike.pipelines.steps.current import Askable
from cargobike.pipelines.steps.result import StepResult
from cargobike.pipelines.values import passing
from cargobike.pipelines.values.keeping import restore
from cargobike.pipelines.values.value import Value
from cargobike.store.journal.journal import JournalWriter

LOOK_S: Final = 0.2
"""How often the driver looks whether it was asked to stop."""
GRACE_S: Final = 2.0
"""How long a step that is to end may clean up."""

Watch = Callable[[RunRecord, AnyRunFact], None]
"""Is shown the record after each fact, with the fact."""


class Driver:
    """Drives one run; see `steps.current.Drives` for what steps ask of it.

    Args:
        conductor: Decides.
        journal: Where facts go.
        crew: The processes of steps.
        project: The project.
        interrupts: Ctrl-C and its like.
        watch: Is told of every fact.
    """

    def __init__(
        self,
        conductor: Conductor,
        journal: JournalWriter,
        crew: Crew,
        *,
        project: ProjectFolder,
        interrupts: Interrupts,
        watch: Watch | None = None,
    ) -> None:
        self.record = conductor.record
        self.clock = Clock()
        self.project = project
        self.interrupts = interrupts
        self.lock = threading.RLock()
        self.is_cancelled = False
        self._folder = self.record.folder
        self._conductor = conductor
        self._journal = journal
        self._crew = crew
        self._watch = watch
        self._cache = Cache(project, self._folder)
        self.failures = Failures(self.record, self.restored)
        self._own_calls = OwnCalls(self)
        self._news = threading.Event()
        self._last_number = 0
        self._packing = Packing(crew.files)
        self._packed: dict[int, Packed] = {}
        self.settled: set[int] = set()
        self._refused = ""
        self._fatal: BaseException | None = None
        self._pid = os.getpid()
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._is_over = False
        self._thread = threading.Thread(target=self._listen, name="cargobike-pipeline", daemon=True)
        self._thread.start()

    # -- what the pipeline asks --------------------------------------------------------------------------------------

    @property
    def cause(self) -> dict[str, Any]:
        """What set the run off."""
        return dict(self.record.started.cause)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.record.id

    def ask(self, step: Askable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> StepResult:
        """Ask for a step; returns at once."""
        self.check()
        inputs = passing.describe(step.signature, args, kwargs, step.name)
        code = self._packing.code(step)
        with self.interrupts.whole(), self.lock:
            number = self.next_number()
            ask = StepAsked(
                at=self.clock.now(),
                step=number,
                name=step.name,
                code=code,
                inputs=inputs.described,
                digest=inputs.digest,
                after=inputs.after,
                function=step.place,
            )
            known = self.record.steps.get(number)
            if known is None or not known.state.is_done:
                self._packed[number] = self._packing.pack(step, args, kwargs, inputs.promises)
            self.happen(events.Asked(ask, step.options))
        return StepResult(number, step.name, self)

    def own_call(self, call: OwnCall, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        """Make a call of our own as a step, or return what it returned before."""
        self.check()
        number = self._own_calls.make(call, function, args, kwargs)
        return self.wait_for(number, None)

    def wait_for(self, number: int, timeout_s: float | None) -> Any:
        """Return what a step returned.

        Raises:
            StepFailedError: If it has no result.
            WaitError: If that takes longer.
        """
        give_up_at = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while not self.is_settled(number):
            self._news.clear()
            self.check()
            if self.is_settled(number):
                break
            left_s = give_up_at - time.monotonic()
            if left_s <= 0:
                step = self.record.steps[number]
                raise WaitError(
                    f"Step {number} ({step.name}) is {step.state} after {timeout_s:g} s.", missing=[f"step {number}"]
                )
            self._news.wait(min(left_s, 1.0))
        step = self.record.steps[number]
        if not step.state.is_done:
            raise self.failures.of(step)
        assert step.result is not None
        return self.restored(step.result)

    def is_settled(self, number: int) -> bool:
        """Tell whether a step has ended."""
        return number in self.settled

    # -- what ends a run ---------------------------------------------------------------------------------------------

    def wait_for_all(self) -> None:
        """Wait until no step runs, and none that waits will be begun."""
        while True:
            self._news.clear()
            with self.lock:
                if self._conductor.is_over:
                    return
            if self._fatal is not None:
                raise self._fatal
            self._news.wait(1.0)

    def leave(self, *, failed: bool) -> None:
        """Say that the pipeline's function has ended."""
        with self.interrupts.whole(), self.lock:
            self.happen(events.Left(self.clock.now(), failed))

    def stop(self, state: RunState) -> None:
        """End the steps that run."""
        with self.interrupts.whole(), self.lock:
            self.happen(events.Stopped(self.clock.now(), state))

    def close(self) -> None:
        """End the thread and all processes; may be called twice."""
        if self._is_over or os.getpid() != self._pid:
            return
        self._is_over = True
        os.eventfd_write(self._wake_fd, 1)
        self._thread.join()
        self._crew.close()
        os.close(self._wake_fd)

    # -- what its parts share ----------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise what has to end the pipeline's function."""
        if os.getpid() != self._pid:
            raise InvalidInputError(
                "A step was called in a copy of the pipeline's process (os.fork, multiprocessing). Call it in the "
                "pipeline itself; steps run beside each other by themselves."
            )
        if self._fatal is not None:
            raise self._fatal
        if self.is_cancelled:
            raise RunCancelledError(f"Run {self.run_id} was cancelled.", run=self.run_id)

    def next_number(self) -> int:
        """Return the number of the step that is asked for next."""
        self._last_number += 1
        return self._last_number

    def happen(self, event: Event) -> None:
        """Tell the conductor of an event and carry out its commands; needs the lock.

        Raises:
            InvalidInputError: If the pipeline asked for something else than it did before.
        """
        waiting: list[Event] = [event]
        while waiting:
            for command in self._conductor.handle(waiting.pop(0)):
                answer = self._do(command)
                if answer is not None:
                    waiting.append(answer)
        if self._refused:
            message, self._refused = self._refused, ""
            raise InvalidInputError(
                f"{message} Resume with `--accept-changes` (accept_changes=True) to run changed steps and what depends "
                "on them anew and keep the results of the others, or run the pipeline anew. What differs from one time "
                "to the next, such as the time or a random number, belongs into a step."
            )

    def write(self, fact: AnyRunFact) -> None:
        """Append a fact to the journal; needs the lock."""
        self._journal.append([fact])
        if self._watch is not None:
            self._watch(self.record, fact)

    def restored(self, value: Value) -> Any:
        """Return a value that was kept."""
        return restore(value, self._folder.root, self.project)

    # -- commands ----------------------------------------------------------------------------------------------------

    def _do(self, command: Command) -> Event | None:
        if isinstance(command, events.Write):
            self.write(command.fact)
        elif isinstance(command, events.Settle):
            self.settled.add(command.step)
            self._packed.pop(command.step, None)
            self._news.set()
        elif isinstance(command, events.Begin):
            return self._begin(command)
        elif isinstance(command, events.LookUp):
            now = self.clock.now()
            return events.LookedUp(
                now, command.step, self._cache.find(command.key, command.step, now - command.most_age_s)
            )
        elif isinstance(command, events.Remember):
            step = self.record.steps[command.step]
            assert step.result is not None
            self._cache.put(command.key, command.step, self.clock.now(), step.result)
        elif isinstance(command, events.Recover):
            if self.record.steps[command.step].kind is StepKind.OWN:
                self._own_calls.to_recover.add(command.step)
                return None
            outcome = read_outcome(self._folder, command.step, command.attempt)
            if outcome is not None and outcome.interrupted:
                outcome = None  # it was ended with its run, and has not failed
            return events.Recovered(self.clock.now(), command.step, outcome)
        elif isinstance(command, events.EndAttempt):
            self._crew.end(command.step, command.attempt, GRACE_S)
        else:
            self._refused = command.message
        return None

    def _begin(self, command: events.Begin) -> Event | None:
        step = self.record.steps[command.step]
        if step.kind is StepKind.OWN:
            self._own_calls.to_make.add(command.step)
            return None
        packed = self._packed[command.step]
        results = [self.record.steps[promise.number].result for promise in packed.promises]
        task = Task(
            step=command.step,
            attempt=command.attempt,
            title=step.name,
            function=packed.function,
            arguments=packed.arguments,
            results=[result for result in results if result is not None],
            token=step.token,
            folder=packed.folder,
            libraries=packed.libraries,
            engine=packed.engine,
        )
        try:
            self._crew.begin(task)
        except ConnectionLostError:
            return events.ProcessesLost(self.clock.now(), self._crew.bury())
        os.eventfd_write(self._wake_fd, 1)
        return None

    # -- the second thread -------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        try:
            while not self._is_over:
                self._listen_once()
        except BaseException as error:  # noqa: BLE001 - the pipeline's own thread raises it
            self._fatal = error
            self._news.set()

    def _listen_once(self) -> None:
        connection = self._crew.connection
        wait_s = min(LOOK_S, max(0.0, self._next_time() - time.time()))
        watched = [self._wake_fd] if connection is None else [self._wake_fd, connection.fileno()]
        try:
            ready, _, _ = select.select(watched, [], [], wait_s)
        except (OSError, ValueError):
            ready = []  # the other thread has just closed it
        if self._wake_fd in ready:
            os.eventfd_read(self._wake_fd)
        with self.lock:
            if connection is not None and connection is self._crew.connection and connection.fileno() in ready:
                self._hear()
            now = self.clock.now()
            if self._conductor.next_time <= now:
                self.happen(events.Passed(now))
            self._journal.sync_if_due(time.monotonic())
        if not self.is_cancelled and self._folder.stop_request.exists():
            self.is_cancelled = True
            self._folder.stop_request.unlink(missing_ok=True)
            self.stop(RunState.CANCELLED)
            self._news.set()
            if self.interrupts.can_interrupt and not self._is_over:
                self.interrupts.interrupt()

    def _next_time(self) -> float:
        with self.lock:
            return self._conductor.next_time

    def _hear(self) -> None:
        try:
            for gone in self._crew.read():
                self._gone(gone)
        except ConnectionLostError:
            self.happen(events.ProcessesLost(self.clock.now(), self._crew.bury()))
            self._news.set()

    def _gone(self, gone: Gone) -> None:
        outcome = outcome_of(gone, self._folder)
        self.happen(events.Ended(self.clock.now(), gone.step, gone.attempt, outcome))
        self._news.set()
