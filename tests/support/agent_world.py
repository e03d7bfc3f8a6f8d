"""A world around an agent: a driver, a template and a runner, played by a test."""

from __future__ import annotations

from typing import Any

import msgspec

from cargobike.workers import agent_events as ev
from cargobike.workers.agent import Agent
from cargobike.workers.usage import Measured
from cargobike.workers.wire import inner
from cargobike.workers.wire import messages as wire

START = 100.0


def raw(body: object = None) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(body))


class World:
    """Carries out commands and keeps what each side has heard; complains about commands after the agent has left."""

    def __init__(self, **options: Any) -> None:
        self.at = START
        self.agent = Agent(self.at, **options)
        self.driver: list[Any] = []
        self.runner: list[Any] = []
        self.template: list[Any] = []
        self.errands: list[Any] = []
        self.template_is_stopped = False
        self.flag = False
        self.listens = True
        self.left: ev.Leave | None = None
        self.processor_s = 0.0
        self.memory_bytes = 1_000_000
        self.stack = ""
        self.in_flight = 0

    # -- what happens --------------------------------------------------------------------------------------------

    def assign(self, task: int, attempt: int = 1, **fields: Any) -> None:
        self._order(wire.Assign(task, attempt, raw({"task": task}), **fields))

    def tell(self, task: int, body: object, attempt: int = 1, **fields: Any) -> None:
        self._order(wire.Tell(task, attempt, raw(body), **fields))

    def halt(self, task: int, grace_s: float = 0.0, attempt: int = 1, *, stack: bool = False) -> None:
        self._order(wire.Halt(task, attempt, grace_s, stack))

    def release(self) -> None:
        self._order(wire.Release())

    def say(self, task: int, body: object = None, attempt: int = 1) -> None:
        self._hear_runner(wire.Said(task, attempt, raw(body)))

    def end(self, task: int, attempt: int = 1, *, failed: bool = False) -> None:
        if self.agent.wants_stack:
            self._happen(ev.StackRead(self.at, self.stack))
        self._hear_runner(wire.Ended(task, attempt, raw("done"), failed))

    def want(self, message: inner.Imported | inner.Keep | inner.Bring) -> None:
        self._hear_runner(message)

    def exit(self, code: int = 0, *, goes_on: bool | None = None) -> None:
        if self.agent.wants_stack:
            self._happen(ev.StackRead(self.at, self.stack))
        self._happen(ev.RunnerExited(self.at, inner.Exited(code, 1 << 20, goes_on)))

    def print(self, text: str, stream: wire.StreamName = "stdout") -> None:
        self._happen(ev.Printed(self.at, stream, text.encode()))

    def lose_template(self) -> None:
        self._happen(ev.TemplateGone(self.at))

    def finish_errand(self, error: str = "") -> None:
        self._happen(ev.ErrandDone(self.at, self.errands.pop(0).errand, error))

    def hear_driver(self) -> None:
        self._happen(ev.DriverHeard(self.at))

    def sleep(self, seconds: float) -> None:
        """Let time pass in which the agent does not run."""
        self.at += seconds

    def pass_time(self, seconds: float) -> None:
        """Let time pass as the loop does: up to each deadline in turn."""
        until = self.at + seconds
        while self.at < until and self.left is None:
            self.at = min(until, max(self.agent.next_deadline, self.at + 0.001))
            self._happen(ev.Ticked(self.at, self.in_flight))

    # -- what was heard ------------------------------------------------------------------------------------------

    def heard(self, *kinds: type) -> list[Any]:
        """Return what the driver has heard, without beats, or only some kinds of it."""
        return [message for message in self.driver if isinstance(message, kinds or object) and message != wire.Beat()]

    def output(self) -> dict[int, bytes]:
        """Return what the driver believes each task to have printed."""
        printed: dict[int, bytes] = {}
        for message in self.heard(wire.Output):
            printed[message.task] = printed.get(message.task, b"") + message.data
        return printed

    @property
    def has_left(self) -> bool:
        return self.left is not None

    @property
    def kills(self) -> int:
        return self.template.count(inner.Kill())

    # -- carrying out --------------------------------------------------------------------------------------------

    def _order(self, message: wire.Message) -> None:
        packet = wire.encode_message(message)
        self._happen(ev.Ordered(self.at, wire.decode_driver_message(packet), packet))

    def _hear_runner(self, message: wire.Message) -> None:
        packet = wire.encode_message(message)
        self._happen(ev.RunnerSaid(self.at, inner.decode_from_runner(packet), packet))

    def _happen(self, event: ev.Event) -> None:
        for command in self.agent.handle(event):
            assert self.left is None, f"{command} after it has left"
            self._do(command)

    def _do(self, command: ev.Command) -> None:
        if isinstance(command, ev.SendDriver):
            self.driver.append(wire.decode_worker_message(command.packet))
        elif isinstance(command, ev.SendRunner):
            self.runner.append(inner.decode_for_runner(command.packet))
        elif isinstance(command, ev.TellTemplate):
            message = inner.decode_for_template(wire.encode_message(command.message))
            self.template.append(message)
            if isinstance(message, inner.Start) and not self.template_is_stopped:
                self._happen(ev.RunnerStarted(self.at))
        elif isinstance(command, ev.SetStopFlag):
            self.flag = command.value
        elif isinstance(command, ev.ListenToRunner):
            self.listens = command.on
        elif isinstance(command, ev.MeasureRunner):
            self._happen(ev.RunnerMeasured(self.at, self.processor_s))
        elif isinstance(command, ev.MeasureUse):
            self._happen(ev.UseMeasured(self.at, Measured(self.processor_s, self.memory_bytes)))
        elif isinstance(command, ev.ReadStack):
            self._happen(ev.StackRead(self.at, self.stack))
        elif isinstance(command, ev.Leave):
            self.left = command
        else:
            self.errands.append(command)
