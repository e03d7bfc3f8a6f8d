"""The loop around an agent: listens to everything at once, passes events to the agent and carries out its commands.

One thread, one poll: orders from the driver, messages from the runner, exits from the template, captured output, the
courier, and what shows that the engine is closed or that its process has ended.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from cargobike.workers import agent_events as ev
from cargobike.workers.agent import Agent
from cargobike.workers.processes import IGNORED, end_descendants, processor_seconds, set_handler
from cargobike.workers.template_ends import TemplateEnd
from cargobike.workers.usage import GpuMeter, measure
from cargobike.workers.whereabouts import name_of_machine
from cargobike.workers.wire.inner import FromRunner, FromTemplate, ShowStack, Started, decode_from_runner
from cargobike.workers.wire.messages import (
    Assign,
    Ended,
    Hello,
    NoMessage,
    StreamName,
    decode_driver_message,
    encode_message,
)
from cargobike.workers.wire.packets import PacketReader
from cargobike.workers.wire.ways import AgentConfig, AgentEnd

if TYPE_CHECKING:
    from cargobike.workers.files.courier import Courier

_PIECE = 1 << 16
_MOST_PIECES = 16
_MOST_PACKETS = 256
_LONGEST_STACK = 20_000
_LINGER_MS = 2000
_BUSY_WITH = 4
_NAP_S = 0.001


class Below(msgspec.Struct):
    """The agent's ends of its connections to the template and the runner."""

    template: TemplateEnd
    runner: socket.socket
    stdout_fd: int
    stderr_fd: int
    flags: memoryview
    liveness_fds: tuple[int, ...]
    stack_fd: int
    line: tuple[socket.socket, socket.socket] | None = None
    """Both ends of what carries assignments to a runner that may have several."""


class AgentLoop:
    """Connects an agent to sockets, pipes and the clock.

    Args:
        config: What the driver has said.
        connection: The connection to the driver.
        below: Connections to the template and the runner.
        gpus: Devices of this worker.
        version: Version of Cargobike in the driver.
        courier: Transfers files where the project's disk is not mounted.
    """

    def __init__(
        self,
        config: AgentConfig,
        connection: AgentEnd,
        below: Below,
        *,
        gpus: tuple[str, ...],
        version: str,
        courier: Courier | None = None,
    ) -> None:
        self._below = below
        self._courier = courier
        self._packets = PacketReader(below.runner)
        self._connection = connection
        self._hello = encode_message(
            Hello(
                config.worker,
                os.getpid(),
                name_of_machine(config.address),
                ".".join(map(str, sys.version_info[:3])),
                version,
                gpus=gpus,
                holds=below.line is not None,
            )
        )
        self._now = time.monotonic()
        self._agent = Agent(
            self._now,
            reuse=config.reuse,
            holds=below.line is not None,
            carries_files=courier is not None,
            driver_silence_s=config.driver_silence_s,
        )
        self._runner_pid = 0
        self._gpus = GpuMeter(gpus) if gpus else None
        self._failure = ""
        self._batch: list[bytes] = []
        self._streams: dict[int, StreamName] = {below.stdout_fd: "stdout", below.stderr_fd: "stderr"}
        self._printed = select.poll()  # asking both at once costs less than being refused by each
        for fd in self._streams:
            os.set_blocking(fd, False)
            self._printed.register(fd, select.POLLIN)
        self._poller = connection.poller
        self._actions: dict[type, Callable[[Any], None]] = {
            ev.SendRunner: self._send_runner,
            ev.SendInLine: self._send_in_line,
            ev.CatchUp: lambda _: self._catch_up(),
            ev.TellTemplate: self._tell_template,
            ev.SetStopFlag: self._set_stop_flag,
            ev.ListenToRunner: self._listen_to_runner,
            ev.MeasureRunner: self._measure_runner,
            ev.MeasureUse: lambda _: self._happen(ev.UseMeasured(self._now, measure(self._runner_pid, self._gpus))),
            ev.ReadStack: lambda _: self._read_stack(),
            ev.BringFolders: self._bring_folders,
            ev.BringFile: self._bring_file,
            ev.KeepFolder: self._keep_folder,
            ev.DeliverFiles: self._deliver_files,
            ev.Leave: self._leave,
        }

    def serve(self) -> None:
        """Work until released, or until the driver is gone.

        Raises:
            ChildProcessError: If this worker cannot go on.
        """
        below, connection, poller, template = self._below, self._connection, self._poller, self._below.template
        runner_fd = below.runner.fileno()
        courier_fd = self._courier.wake_fd if self._courier is not None else -1
        for source in (runner_fd, below.stdout_fd, below.stderr_fd, *below.liveness_fds):
            poller.register(source, select.POLLIN)
        if courier_fd >= 0:
            poller.register(courier_fd, select.POLLIN)
        template.join(poller)
        connection.begin(self._hello)
        while True:
            if self._agent.sent >= _BUSY_WITH:
                time.sleep(_NAP_S)  # the runner has enough to do: to hear of each end alone would cost more than it
            wait_s = self._agent.next_deadline - time.monotonic()
            ready = dict(poller.poll(max(0, int(wait_s * 1000) + 1)))
            self._now = time.monotonic()
            if not ready.keys().isdisjoint(below.liveness_fds):
                return
            if connection.has_come(ready):
                self._hear_driver()
                if connection.is_closed:
                    return
            if runner_fd in ready:
                self._hear_runner(_MOST_PACKETS)
            self._hear_template(ready)
            if below.stdout_fd in ready or below.stderr_fd in ready:
                if self._agent.sent > 1:
                    self._catch_up()
                else:
                    self._read_output()
            if courier_fd in ready:
                self._hear_courier()
            self._happen(ev.Ticked(self._now, connection.in_flight))
            self._hear_template({})
            self._send_batch()
            if self._agent.has_left:
                connection.close(_LINGER_MS)
                if self._failure:
                    raise ChildProcessError(self._failure)
                return

    def _send_batch(self) -> None:
        if self._batch:
            self._connection.send(self._batch)
            self._batch = []

    def close(self) -> None:
        """End the template and the runner."""
        self._below.template.close()

    def _happen(self, event: ev.Event) -> None:
        for command in self._agent.handle(event):
            if type(command) is ev.SendDriver:  # nearly all are
                self._batch.append(command.packet)
            else:
                self._actions[type(command)](command)

    # -- hearing -------------------------------------------------------------------------------------------------

    def _hear_driver(self) -> None:
        self._happen(ev.DriverHeard(self._now))
        for raw in self._connection.receive():
            message = decode_driver_message(raw)
            if isinstance(message, Assign) and not self._agent.is_busy:
                self._read_output()  # what was printed before belongs to the assignment before
            self._happen(ev.Ordered(self._now, message, bytes(raw)))

    def _hear_runner(self, most: int) -> None:
        if self._agent.sent > 1:
            self._hear_many(self._receive(most))
            return
        for _ in range(most):
            packet = self._packets.receive(wait=False)
            if not packet:
                return  # there is no packet, or runner and template are both dead
            try:
                message = decode_from_runner(packet)
            except NoMessage:
                continue  # user code has written to a descriptor that is not its own
            is_last = type(message) is Ended
            if is_last:
                self._look_last()
            self._happen(ev.RunnerSaid(self._now, message, packet))
            if is_last and most != sys.maxsize:
                return  # what a reused runner says next comes in the next round

    def _hear_many(self, messages: list[tuple[FromRunner, bytes]]) -> None:
        if messages and self._printed.poll(0):
            self._catch_up(messages)
            return
        for message, packet in messages:  # none of those that have ended has printed: the runner would not have gone on
            self._happen(ev.RunnerSaid(self._now, message, packet))

    def _receive(self, most: int) -> list[tuple[FromRunner, bytes]]:
        """Return what the runner has said, as far as it is there."""
        messages: list[tuple[FromRunner, bytes]] = []
        while len(messages) < most and (packet := self._packets.receive(wait=False)):
            try:
                messages.append((decode_from_runner(packet), packet))
            except NoMessage:
                continue  # user code has written to a descriptor that is not its own
        return messages

    def _catch_up(self, heard: Sequence[tuple[FromRunner, bytes]] = (), *, is_dead: bool = False) -> None:
        """Take back what the runner has not begun, hear all that it has said, and read what it has printed.

        A runner goes on to its next assignment only when all that it has printed was read. So what is there belongs to
        the one that it works on, or, if that has ended, to the last one that has.
        """
        self._happen(ev.TakenBack(self._now, self._take_back()))
        messages = [*heard, *self._receive(sys.maxsize)]
        ends = sum(type(message) is Ended for message, _ in messages)
        is_between = 0 < ends >= self._agent.sent
        for message, packet in messages:
            if type(message) is Ended:
                ends -= 1
                if is_between and not ends:
                    self._look_last()
            self._happen(ev.RunnerSaid(self._now, message, packet))
        if not is_between:
            self._look_last()
        if not is_dead:
            self._happen(ev.CaughtUp(self._now))

    def _take_back(self) -> int:
        """Read what the runner has not read of its line; returns how many assignments that were."""
        count = 0
        if self._below.line is not None:
            with contextlib.suppress(BlockingIOError):
                while self._below.line[1].recv(1, socket.MSG_DONTWAIT):
                    count += 1
        return count

    def _hear_template(self, ready: Mapping[Any, int]) -> None:
        template = self._below.template
        while news := template.attend(ready):
            for message in news:
                self._template_said(message)
            ready = {}
        if template.is_gone and not self._agent.has_left:
            self._hear_runner(sys.maxsize)
            self._look_last()
            self._happen(ev.TemplateGone(self._now))

    def _template_said(self, message: FromTemplate) -> None:
        if isinstance(message, Started):
            self._runner_pid = message.pid
            self._happen(ev.RunnerStarted(self._now))
            return
        if self._agent.holds:
            self._catch_up(is_dead=True)
        else:
            self._hear_runner(sys.maxsize)
            self._look_last()
        end_descendants(spare=self._below.template.spared)
        self._happen(ev.RunnerExited(self._now, message))

    def _look_last(self) -> None:
        """Read everything that an assignment has left before its end is handled."""
        self._read_output()
        if self._agent.wants_stack:
            self._read_stack()

    def _read_output(self) -> None:
        """Read what is there, without waiting; only some of it if a process writes faster than we read."""
        for fd, _ in self._printed.poll(0):
            with contextlib.suppress(BlockingIOError):
                for _ in range(_MOST_PIECES):
                    data = os.read(fd, _PIECE)
                    if data:
                        self._happen(ev.Printed(self._now, self._streams[fd], data))
                    if len(data) < _PIECE:
                        break

    def _hear_courier(self) -> None:
        assert self._courier is not None
        for errand, error in self._courier.finished():
            self._happen(ev.ErrandDone(self._now, errand, error))

    # -- doing ---------------------------------------------------------------------------------------------------

    def _send_runner(self, command: ev.SendRunner) -> None:
        # A runner that does not read is not waiting for it. One that has ended will be reported by the template.
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionError):
            self._below.runner.send(command.packet, socket.MSG_DONTWAIT if command.droppable else 0)

    def _send_in_line(self, command: ev.SendInLine) -> None:
        assert self._below.line is not None
        self._below.line[0].send(command.packet)

    def _tell_template(self, command: ev.TellTemplate) -> None:
        if type(command.message) is ShowStack:
            os.ftruncate(self._below.stack_fd, 0)
            os.lseek(self._below.stack_fd, 0, os.SEEK_SET)
        self._below.template.tell(command.message)

    def _set_stop_flag(self, command: ev.SetStopFlag) -> None:
        self._below.flags[0] = int(command.value)

    def _listen_to_runner(self, command: ev.ListenToRunner) -> None:
        if command.on:
            self._poller.register(self._below.runner.fileno(), select.POLLIN)
        else:
            self._poller.unregister(self._below.runner.fileno())

    def _measure_runner(self, command: ev.MeasureRunner) -> None:
        self._happen(ev.RunnerMeasured(self._now, processor_seconds(self._below.template.pid)))

    def _read_stack(self) -> None:
        text = os.pread(self._below.stack_fd, _LONGEST_STACK, 0).decode(errors="replace").strip()
        self._happen(ev.StackRead(self._now, text))

    def _bring_folders(self, command: ev.BringFolders) -> None:
        assert self._courier is not None
        self._courier.bring_folders(command.errand, command.files)

    def _bring_file(self, command: ev.BringFile) -> None:
        assert self._courier is not None
        self._courier.bring_file(command.errand, command.path)

    def _keep_folder(self, command: ev.KeepFolder) -> None:
        assert self._courier is not None
        self._courier.keep_folder(command.errand, command.path, alone=command.alone)

    def _deliver_files(self, command: ev.DeliverFiles) -> None:
        assert self._courier is not None
        self._courier.deliver(command.errand, command.files)

    def _leave(self, command: ev.Leave) -> None:
        self._failure = command.failure


def run_agent(loop: AgentLoop) -> None:
    """Run an agent to its end, then end the processes below it."""
    set_handler(signal.SIGINT, IGNORED)
    try:
        loop.serve()
    finally:
        loop.close()
        end_descendants()
