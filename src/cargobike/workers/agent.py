"""The agent of a worker as a function from events to commands: no socket, no clock, no file descriptor.

It stands between the driver and the runner, the process in which a program works on one assignment. It never waits for
either. Time arrives inside events; `agent_loop` listens, passes events to the agent and carries out its commands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from cargobike.workers import agent_events as ev
from cargobike.workers.current import Current, Runner
from cargobike.workers.line import Line
from cargobike.workers.output import CapturedOutput
from cargobike.workers.quiet import AnswerWatch, QuietWatch, StackWait
from cargobike.workers.usage import UseWatch
from cargobike.workers.wire import inner
from cargobike.workers.wire import messages as wire
from cargobike.workers.wire.messages import Assign, Message, encode_message

BEAT_S = 1.0
EXIT_GRACE_S = 10.0
KILL_AGAIN_S = 0.1
MOST_IN_FLIGHT = 512
LATE_S = 0.05
"""After this time the assignments behind one that goes on are returned: others can begin them sooner."""
ALONE_S = 1.0
"""For so long after a program has printed something, the runner is given one assignment at a time."""


class Agent:
    """The state of one agent.

    Guarantees: each assignment ends with exactly one `Ended` or `Died`, unless the worker itself is lost; what was
    printed before arrives before; after `Leave` there are no more commands. A template that does not answer, because it
    is stopped or because its runner cannot be ended, makes the agent leave.

    Args:
        now: The time.
        reuse: Whether a runner takes one assignment after the other.
        holds: Whether assignments may come before they are needed; only for runners that are reused.
        carries_files: Whether files have to be transferred because the project's disk is not mounted here.
        driver_silence_s: How long the driver may be silent before the agent gives up.
    """

    def __init__(
        self,
        now: float,
        *,
        reuse: bool = False,
        holds: bool = False,
        carries_files: bool = False,
        driver_silence_s: float | None = None,
    ) -> None:
        self.now = now
        self.has_left = False
        self.runner = Runner.ABSENT
        self._reuse = reuse
        self._holds = holds
        self._line = Line()
        self._is_catching_up = False
        self._is_recalled = False
        self._is_late = False
        self._deferred: list[wire.Halt] = []
        self._alone_until = now
        self._began = now
        self._carries_files = carries_files
        self._driver_silence_s = driver_silence_s
        self._current: Current | None = None
        self._held: bytes | None = None
        self._early: list[ev.Command] = []
        self._releasing = False
        self._leave_by: float | None = None
        self._template = AnswerWatch(now)
        self._printing_task = 0
        self._output = CapturedOutput()
        self._errands: dict[int, Callable[[str], None]] = {}
        self._last_errand = 0
        self._last_sent = 0.0
        self._last_heard = now
        self._listens = True
        self._commands: list[ev.Command] = []
        self._handlers: dict[type[ev.Event], Callable[[Any], None]] = {
            ev.Ordered: self._ordered,
            ev.DriverHeard: self._driver_heard,
            ev.RunnerSaid: self._runner_said,
            ev.RunnerStarted: self._runner_started,
            ev.RunnerExited: self._runner_exited,
            ev.TakenBack: self._taken_back,
            ev.CaughtUp: self._caught_up,
            ev.TemplateGone: self._template_gone,
            ev.Printed: self._printed,
            ev.RunnerMeasured: self._runner_measured,
            ev.UseMeasured: self._use_measured,
            ev.StackRead: self._stack_read,
            ev.ErrandDone: self._errand_done,
            ev.Ticked: self._ticked,
        }

    def handle(self, event: ev.Event) -> list[ev.Command]:
        """Handle an event; returns the commands that follow from it, in order."""
        if self.has_left:
            return []
        commands: list[ev.Command] = []
        self._commands = commands
        self.now = event.at
        self._handlers[type(event)](event)
        if self._releasing and self._is_done and not self.has_left:
            self._finish_output()
            self._send(wire.Bye())
            self._leave()
        return commands

    @property
    def next_deadline(self) -> float:
        """When the next `Ticked` is due at the latest."""
        due, current = self._last_sent + BEAT_S, self._current
        others = current.deadlines if current is not None else ()
        if self._line.waiting:
            due = min(due, self._began + LATE_S)
        for other in (self._leave_by, self._template.due, self._output.due, *others):
            if other is not None and other < due:
                due = other
        return due

    @property
    def wants_stack(self) -> bool:
        """Whether the runner was asked for the stacks of its threads."""
        return self._current is not None and self._current.stack is not None

    @property
    def is_busy(self) -> bool:
        """Whether it has an assignment that has not ended."""
        return self._current is not None

    @property
    def holds(self) -> bool:
        """Whether assignments may come before they are needed."""
        return self._holds

    @property
    def sent(self) -> int:
        """How many assignments were sent to the runner and have not ended; with several, it goes on by itself."""
        return self._line.sent

    @property
    def _is_done(self) -> bool:
        return self._current is None and self.runner is Runner.ABSENT and not self._errands

    def _send(self, message: Message) -> None:
        self._send_packet(encode_message(message))

    def _send_packet(self, packet: bytes) -> None:
        self._last_sent = self.now
        self._commands.append(ev.SendDriver(packet))

    def _leave(self, failure: str = "") -> None:
        self.has_left = True
        self._commands.append(ev.Leave(failure))

    # -- from above ----------------------------------------------------------------------------------------------

    def _driver_heard(self, event: ev.DriverHeard) -> None:
        self._last_heard = event.at

    def _ordered(self, event: ev.Ordered) -> None:
        message = event.message
        if isinstance(message, Assign):
            if self._holds and self._current is not None:
                self._line.waiting.append((message, event.packet))
                self._send_ahead()
            else:
                self._assigned(message, event.packet)
        elif isinstance(message, wire.Recall):
            self._is_recalled = True
            self._catch_up()
        elif isinstance(message, wire.Release):
            self._released()
        elif self._current is None or not self._current.is_meant(message):
            return
        elif isinstance(message, wire.Tell):
            # A runner that is still leaving could take it for its own: it waits with the assignment.
            to = self._commands if self.runner is Runner.BUSY else self._early
            to.append(ev.SendRunner(event.packet, message.droppable))
        elif self._line.is_ahead:
            self._deferred.append(message)  # it must not stop the next one, which the runner may have begun
            self._catch_up()
        else:
            self._halt(self._current, message)

    def _assigned(self, assign: Assign[msgspec.Raw], packet: bytes) -> None:
        self._current = Current(assign, packet)
        self._began = self.now
        self._early.clear()
        if assign.quiet_after_s is not None:
            self._current.quiet = QuietWatch.begin(assign.quiet_after_s, self.now)
        self._commands.append(ev.SetStopFlag(False))
        if self.runner is Runner.LEAVING:
            self._held = packet
        else:
            self._prepare(assign, packet)

    def _prepare(self, assign: Assign[msgspec.Raw], packet: bytes) -> None:
        """Start an assignment, once everything that it needs is here."""
        self._finish_output()
        self._printing_task = assign.task
        if assign.files is None or not self._carries_files:
            self._start(packet)
            return

        def start(error: str) -> None:
            if error:
                self._complain(f"files could not be fetched from the driver: {error}")
            self._start(packet)

        self._commands.append(ev.BringFolders(self._errand(start), assign.files))

    def _start(self, packet: bytes) -> None:
        """Give an assignment to the runner that waits for it, or to a new one."""
        if self._current is not None:
            self._current.use = UseWatch.begin(self.now, is_fresh=self.runner is not Runner.IDLE)
        if self.runner is Runner.IDLE:
            self._commands.append((ev.SendInLine if self._holds else ev.SendRunner)(packet))
        else:
            self._commands.append(ev.TellTemplate(inner.Start(msgspec.Raw(packet))))
            self._template.expect_start(self.now)
        self.runner = Runner.BUSY
        self._commands += self._early
        self._early.clear()
        if self._holds:
            self._line.was_sent(packet)
            self._send_ahead()

    def _halt(self, current: Current, message: wire.Halt) -> None:
        current.halted = True
        current.kill_at = self.now + message.grace_s
        self._commands.append(ev.SetStopFlag(True))
        if message.stack and current.stack is None:
            current.stack = StackWait.begin(self.now)
            self._commands.append(ev.TellTemplate(inner.ShowStack()))

    def _released(self) -> None:
        self._releasing = True
        if self.runner is Runner.IDLE and self._current is None:
            leave = encode_message(inner.Leave())
            self._commands.append((ev.SendInLine if self._holds else ev.SendRunner)(leave))
            self._expect_exit()

    def _expect_exit(self) -> None:
        self.runner = Runner.LEAVING
        self._leave_by = self.now + EXIT_GRACE_S

    # -- from below ----------------------------------------------------------------------------------------------

    def _runner_said(self, event: ev.RunnerSaid) -> None:
        message, current = event.message, self._current
        if current is not None and current.quiet is not None:
            current.quiet.heard(event.at)
        if isinstance(message, wire.Said):
            if current is not None and current.is_meant(message):
                self._send_packet(event.packet)
        elif isinstance(message, wire.Ended):
            if current is not None and current.is_meant(message):
                self._ended(current, message, event.packet)
        elif isinstance(message, inner.Imported):
            self._commands.append(ev.TellTemplate(inner.Import(message.names)))
        elif isinstance(message, inner.Keep):
            self._keep(message)
        else:
            self._bring(message)

    def _ended(self, current: Current, message: wire.Ended[msgspec.Raw], packet: bytes) -> None:
        stack = current.stack.text if current.stack is not None else ""
        if message.failed or stack:
            last_output = self._output.last_lines() if message.failed else ""
            packet = encode_message(msgspec.structs.replace(message, last_output=last_output, stack=stack))
        self._close(current, packet)
        if self._reuse:
            self.runner = Runner.IDLE
            if self._holds:
                self._line.ended()
                self._go_on(after=current)
            if self._releasing and self._current is None:
                self._released()
        else:
            self._expect_exit()

    def _keep(self, message: inner.Keep) -> None:
        errand = self._errand(lambda error: self._answer(inner.Kept(message.path, error)))
        self._commands.append(ev.KeepFolder(errand, message.path, message.alone))

    def _bring(self, message: inner.Bring) -> None:
        errand = self._errand(lambda error: self._answer(inner.Brought(message.path, error)))
        self._commands.append(ev.BringFile(errand, message.path))

    def _answer(self, message: inner.Kept | inner.Brought) -> None:
        if self.runner is Runner.BUSY:
            self._commands.append(ev.SendRunner(encode_message(message)))

    def _runner_started(self, event: ev.RunnerStarted) -> None:
        self._template.has_answered()

    def _runner_exited(self, event: ev.RunnerExited) -> None:
        exited, current = event.exited, self._current
        self._template.has_answered()
        if exited.goes_on:
            return
        self._is_catching_up = False
        if self._holds and current is not None:
            self._died_in_line(current, exited)
            return
        if self._reuse and current is not None and exited.goes_on is None:
            # It may have died before it took the assignment.
            self._commands.append(ev.TellTemplate(inner.CheckUnread()))
            return
        was_leaving = self.runner is Runner.LEAVING
        self.runner = Runner.ABSENT
        if was_leaving:
            self._leave_by = None
            packet, self._held = self._held, None
            if packet is not None and current is not None:
                self._prepare(current.assign, packet)
        elif current is not None:
            self._died(current, exited)

    # -- assignments given ahead -----------------------------------------------------------------------------------

    def _send_ahead(self) -> None:
        """Send what waits to the runner, unless the next one must not begin before we know that the current one ended.

        A flag to stop is the current one's, and so is what it prints.
        """
        current, line = self._current, self._line
        if current is None or current.halted or self._is_catching_up or self.now < self._alone_until:
            return
        while self.runner is Runner.BUSY and (packet := line.next_packet()) is not None:
            line.was_sent(packet)
            self._commands.append(ev.SendInLine(packet))

    def _go_on(self, after: Current) -> None:
        """Make the next assignment in line the current one."""
        if not self._line.waiting:
            return
        assign, packet = self._line.waiting.popleft()
        self._current = Current(assign, packet)
        self._began = self.now
        self._finish_output()
        self._printing_task = assign.task
        if after.halted:
            self._commands.append(ev.SetStopFlag(False))
        if self._line.sent:
            self.runner = Runner.BUSY
            self._current.use = UseWatch.begin(self.now, is_fresh=False)
            self._send_ahead()
        elif not self._is_catching_up:
            self._start(packet)

    def _catch_up(self) -> None:
        """Find out what the runner works on; it has nothing to go on with meanwhile."""
        if not self._is_catching_up:
            self._is_catching_up = True
            self._commands.append(ev.CatchUp())

    def _taken_back(self, event: ev.TakenBack) -> None:
        self._is_catching_up = True
        self._line.taken_back(event.count)
        if not self._line.sent and self.runner is Runner.BUSY:
            self.runner = Runner.IDLE

    def _caught_up(self, event: ev.CaughtUp) -> None:
        self._is_catching_up = False
        is_late, self._is_late = self._is_late, False
        if self._is_recalled or (is_late and event.at - self._began >= LATE_S):
            self._is_recalled = False
            self._send(wire.Returned(tuple(self._line.clear())))
        halts, self._deferred = self._deferred, []
        current = self._current
        if current is not None:
            for halt in halts:
                if current.is_meant(halt):
                    self._halt(current, halt)
            if not self._line.sent and self.runner is Runner.IDLE:
                self._start(current.packet)
        self._send_ahead()

    def _died_in_line(self, current: Current, exited: inner.Exited) -> None:
        """Go on after the end of a runner; what it had not begun has been taken back."""
        self.runner = Runner.ABSENT
        if not self._line.sent:
            self._start(current.packet)
            return
        self._line.ended()
        self._died(current, exited)
        self._go_on(after=current)

    # -- ends --------------------------------------------------------------------------------------------------------

    def _died(self, current: Current, exited: inner.Exited) -> None:
        died = wire.Died(
            current.assign.task,
            current.assign.attempt,
            exited.code,
            current.halted,
            current.killed,
            exited.peak_memory_bytes,
            self._output.last_lines(),
            current.stack.text if current.stack is not None else "",
        )
        self._close(current, encode_message(died))

    def _close(self, current: Current, packet: bytes) -> None:
        """End the current assignment; the driver hears of it when its files have arrived."""
        self._pass_on_output()
        self._current = None
        files = current.assign.files
        if files is None or not self._carries_files:
            self._send_packet(packet)
            return

        def tell(error: str) -> None:
            if error:
                self._complain(f"files could not be sent to the driver: {error}")
            self._send_packet(packet)

        self._commands.append(ev.DeliverFiles(self._errand(tell), files))

    def _template_gone(self, event: ev.TemplateGone) -> None:
        self._finish_output()
        self._leave("the template has ended, and the runner with it")

    # -- files ---------------------------------------------------------------------------------------------------

    def _errand(self, then: Callable[[str], None]) -> int:
        self._last_errand += 1
        self._errands[self._last_errand] = then
        return self._last_errand

    def _errand_done(self, event: ev.ErrandDone) -> None:
        self._errands.pop(event.errand)(event.error)

    def _complain(self, text: str) -> None:
        """Write a message to the program's standard error, where its own errors are."""
        self._send(wire.Output(self._printing_task, "stderr", f"cargobike: {text}\n".encode()))

    # -- output --------------------------------------------------------------------------------------------------

    def _printed(self, event: ev.Printed) -> None:
        self._output.add(event.stream, event.data, event.at)
        self._alone_until = event.at + ALONE_S
        if self._current is not None and self._current.quiet is not None:
            self._current.quiet.heard(event.at)

    def _pass_on_output(self) -> None:
        for stream, data in self._output.take():
            self._send(wire.Output(self._printing_task, stream, data))

    def _finish_output(self) -> None:
        """Attribute everything printed so far to the assignment that printed it."""
        for stream, data in self._output.finish():
            self._send(wire.Output(self._printing_task, stream, data))

    # -- time ----------------------------------------------------------------------------------------------------

    def _ticked(self, event: ev.Ticked) -> None:
        now = event.at
        if self._template.is_overdue(now):
            self._finish_output()
            self._leave("the template does not answer: it is stopped, or its runner cannot be ended")
            return
        if self._current is not None:
            self._look_after(self._current)
        if self._line.waiting and now - self._began >= LATE_S:
            self._is_late = True
            self._catch_up()
        if self._leave_by is not None and now >= self._leave_by:
            self._leave_by = now + EXIT_GRACE_S
            self._kill()
        if self._output.due is not None and now >= self._output.due:
            self._pass_on_output()
        # A runner that reports faster than the driver hears it must wait, not fill our memory.
        listens = event.in_flight <= MOST_IN_FLIGHT
        if listens != self._listens:
            self._listens = listens
            self._commands.append(ev.ListenToRunner(listens))
        if self._driver_silence_s is not None and now - self._last_heard > self._driver_silence_s:
            self._leave(f"the driver has been silent for {self._driver_silence_s:g} s")
        elif now - self._last_sent >= BEAT_S:
            self._send(wire.Beat())

    def _kill(self) -> None:
        self._commands.append(ev.TellTemplate(inner.Kill()))
        self._template.expect_end(self.now)

    def _look_after(self, current: Current) -> None:
        now = self.now
        if current.kill_at is not None and now >= current.kill_at:
            current.kill_at = now + KILL_AGAIN_S  # it may be about to begin: until it has ended, this is repeated
            current.killed = True
            self._kill()
        if current.stack is not None and current.stack.next_look is not None and now >= current.stack.next_look:
            self._commands.append(ev.ReadStack())
        if current.quiet is not None and now >= current.quiet.next_look:
            self._commands.append(ev.MeasureRunner())
        if current.use is not None and now >= current.use.next_look:
            self._commands.append(ev.MeasureUse())

    def _use_measured(self, event: ev.UseMeasured) -> None:
        if self._current is not None and self._current.use is not None:
            self._send(self._current.used(self._current.use, event.at, event.measured))

    def _stack_read(self, event: ev.StackRead) -> None:
        current = self._current
        if current is not None and current.stack is not None and current.stack.has_come(event.at, event.text):
            current.kill_at = event.at

    def _runner_measured(self, event: ev.RunnerMeasured) -> None:
        current = self._current
        if current is None or current.quiet is None:
            return
        idle_s = current.quiet.look(event.at, event.processor_s)
        if idle_s:
            self._send(wire.Quiet(current.assign.task, current.assign.attempt, idle_s))
