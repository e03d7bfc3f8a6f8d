"""The agent: a worker's link to the driver. It watches the runner, never runs user code and never waits for it.

One thread, one poll: orders from the driver, packets from the runner, exits from the template, captured output, and the
pipe whose closing says that the driver's machine has no use for us any more.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import zmq

from cargobike.experiments.trial.runner import LEAVE
from cargobike.workers.connection import AgentConfig, Connection
from cargobike.workers.output import OutputStream
from cargobike.workers.packets import PacketReader
from cargobike.workers.processes import describe_exit, end_descendants
from cargobike.workers.quiet import QuietWatch, StackReader
from cargobike.workers.template import Exit
from cargobike.workers.whereabouts import name_of_machine
from cargobike.workers.wire import (
    Assign,
    Beat,
    Bye,
    Ended,
    Gathered,
    Halt,
    Hello,
    Output,
    Quiet,
    Release,
    Verdict,
    decode_driver_message,
    decode_worker_message,
    encode_message,
)

BEAT_S = 1.0
OUTPUT_EVERY_S = 0.2
EXIT_GRACE_S = 10.0
KILL_AGAIN_S = 0.1
MOST_IN_FLIGHT = 512


@dataclass(slots=True)
class Below:
    """The agent's ends of the connections to what is below it."""

    template_pid: int
    template: socket.socket
    runner: socket.socket
    stdout: OutputStream
    stderr: OutputStream
    flags: memoryview
    liveness_fd: int
    stack_fd: int


class Agent:
    """The state of one agent."""

    def __init__(self, config: AgentConfig, below: Below, gpus: tuple[str, ...], version: str) -> None:
        self._config = config
        self._below = below
        self._packets = PacketReader(below.runner)
        self._connection = Connection(config)
        self._hello = encode_message(
            Hello(
                config.worker,
                os.getpid(),
                name_of_machine(config.address),
                ".".join(map(str, sys.version_info[:3])),
                version,
                gpus=gpus,
            )
        )
        self._current: Assign | None = None
        self._last_trial = 0
        self._runner_lives = False
        self._halted = False
        self._has_killed = False
        self._stack = StackReader(below.stack_fd)
        self._quiet: QuietWatch | None = None
        self._releasing = False
        self._kill_at: float | None = None
        self._leave_by: float | None = None
        self._delivered = False
        self._held: bytes | None = None
        self._batch: list[bytes] = []
        self._last_sent = 0.0
        self._last_heard = time.monotonic()
        self._output_due: float | None = None

    def serve(self) -> None:
        """Work until released, or until the driver is gone."""
        below = self._below
        poller = zmq.Poller()
        link, monitor = self._connection.socket, self._connection.monitor
        runner_fd, template_fd = below.runner.fileno(), below.template.fileno()
        for source in (link, monitor, template_fd, below.stdout.fd, below.stderr.fd, below.liveness_fd):
            poller.register(source, zmq.POLLIN)
        poller.register(runner_fd, zmq.POLLIN)
        others = self._other_sources()
        for source in others:
            poller.register(source, zmq.POLLIN)
        listening = True
        while True:
            ready = dict(poller.poll(self._wait_ms()))
            if below.liveness_fd in ready:
                return
            if monitor in ready and self._connection.reconnected():
                self._connection.repeat(self._hello)
            if link in ready:
                self._last_heard = time.monotonic()
                for raw in self._connection.receive():
                    self._order(raw)
            if runner_fd in ready:
                self._drain_runner()
            if template_fd in ready:
                self._hear_template()
            if below.stdout.fd in ready or below.stderr.fd in ready:
                self._drain_output()
            for source, listen in others.items():
                if source in ready:
                    listen()
            self._keep_time()
            self._flush()
            if self._releasing and self._may_leave:
                self._say_goodbye()
                return
            # A runner that reports faster than the driver takes it in must wait, not fill our memory.
            congested = self._connection.link.in_flight > MOST_IN_FLIGHT
            if congested == listening:
                (poller.unregister if congested else lambda fd: poller.register(fd, zmq.POLLIN))(runner_fd)
                listening = not congested

    @property
    def _may_leave(self) -> bool:
        return self._current is None and not self._runner_lives

    def _other_sources(self) -> dict[int, Callable[[], None]]:
        """Return further descriptors to listen to, each with what to do when it is readable."""
        return {}

    def _wait_ms(self) -> int:
        now = time.monotonic()
        due = self._last_sent + BEAT_S
        for other in (self._kill_at, self._leave_by, self._output_due, self._stack.next_look):
            if other is not None:
                due = min(due, other)
        if self._quiet is not None:
            due = min(due, self._quiet.next_look)
        return max(0, int((due - now) * 1000) + 1)

    # -- from above ----------------------------------------------------------------------------------------------

    def _order(self, raw: msgspec.Raw) -> None:
        message = decode_driver_message(raw)
        below = self._below
        if isinstance(message, Assign):
            self._current = message
            self._halted = self._has_killed = False
            self._stack.forget()
            self._kill_at = None
            if message.membership is not None:
                self._quiet = QuietWatch.of(message.membership, self._below.template_pid)
            below.flags[0] = 0
            if self._delivered:
                self._held = bytes(raw)  # the last trial's process is still ending, and what it prints is its own
            else:
                self._start(message.trial, bytes(raw))
        elif isinstance(message, Verdict):
            if self._is_current(message.trial, message.attempt):
                below.runner.send(b"V" + bytes(raw))
        elif isinstance(message, Gathered):
            if self._is_current(message.trial, message.attempt):
                with contextlib.suppress(BlockingIOError):  # it does not read: then it does not wait either
                    below.runner.send(b"G" + bytes(raw), socket.MSG_DONTWAIT)
        elif isinstance(message, Halt):
            if self._is_current(message.trial, message.attempt):
                self._halted = True
                below.flags[0] = 1
                self._kill_at = time.monotonic() + message.grace_s
                if message.stack and not self._stack.is_wanted:
                    self._stack.want()
                    below.template.send(b"D")
        elif isinstance(message, Release):
            self._releasing = True
            if self._runner_lives and self._current is None and self._config.reuse:
                below.runner.send(LEAVE)
                self._delivered = True
                self._leave_by = time.monotonic() + EXIT_GRACE_S

    def _start(self, trial: int, raw: bytes) -> None:
        """Give an assignment to the runner that waits for it, or to a new one."""
        self._finish_output()
        self._last_trial = trial
        if self._config.reuse and self._runner_lives:
            self._below.runner.send(b"A" + raw)
        else:
            self._runner_lives = True
            self._below.template.send(b"A" + raw)

    def _is_current(self, trial: int, attempt: int) -> bool:
        current = self._current
        return current is not None and (current.trial, current.attempt) == (trial, attempt)

    # -- from below ----------------------------------------------------------------------------------------------

    def _drain_runner(self, most: int = 256) -> None:
        for _ in range(most):
            packet = self._packets.receive(wait=False)
            if not packet:
                return  # there is none, or runner and template are both dead
            kind, body = packet[:1], packet[1:]
            if self._quiet is not None:
                self._quiet.heard()
            if kind == b"M":
                with contextlib.suppress(BrokenPipeError):  # it is only advice
                    self._below.template.send(b"P" + body)
            elif kind in (b"E", b"F"):
                self._ended(decode_worker_message(body), body)
            elif self._current is not None:
                self._forward(kind, body)

    def _forward(self, kind: bytes, body: bytes) -> None:
        """Pass on what a runner has said."""
        self._batch.append(body)

    def _ended(self, message: object, body: bytes) -> None:
        if not isinstance(message, Ended) or not self._is_current(message.trial, message.attempt):
            return
        self._drain_output()
        if message.outcome == "failed" or self._stack.is_wanted:
            error = self._with_last_output(message.error or "") if message.outcome == "failed" else message.error
            body = encode_message(msgspec.structs.replace(message, error=error, stack=self._stack.text))
        self._close_attempt(body)
        if not self._config.reuse:
            self._delivered = True
            self._leave_by = time.monotonic() + EXIT_GRACE_S

    def _hear_template(self) -> None:
        packet = self._below.template.recv(1 << 16)
        if not packet:
            self._pass_on_the_rest()
            raise ChildProcessError("the template was ended by somebody else, and the runner with it")
        end = msgspec.msgpack.decode(packet[1:], type=Exit)
        self._drain_runner(most=sys.maxsize)
        self._drain_output()
        end_descendants(spare=(self._below.template_pid,))
        if self._config.reuse and self._current is not None and end.goes_on is None:
            self._below.template.send(b"U")  # it may have died before it took the assignment
            return
        if end.goes_on:
            return
        self._runner_lives = False
        if self._delivered:
            self._delivered = False
            self._leave_by = None
            if self._held is not None and self._current is not None:
                raw, self._held = self._held, None
                self._start(self._current.trial, raw)
        elif self._current is not None:
            self._died(self._current, end)

    def _died(self, current: Assign, end: Exit) -> None:
        how = describe_exit(end.status)
        error = ""
        is_gang = current.membership is not None and len(current.membership.roles) > 1
        # A rank that was about to be ended because another one failed may have been the cause itself.
        by_itself = not (self._has_killed if is_gang else self._halted)
        if by_itself:
            error = f"the process of the trial {how} before the train function returned"
            if "SIGKILL" in how:
                error += f"; the machine may have run out of memory (peak {end.peak_memory_bytes / 2**20:.0f} MiB)"
        self._close_attempt(
            encode_message(
                Ended(
                    current.trial,
                    current.attempt,
                    "stopped" if not by_itself else "lost" if is_gang else "failed",
                    error=self._with_last_output(error) or None,
                    alike=how,
                    peak_memory_bytes=end.peak_memory_bytes,
                    stack=self._stack.text,
                )
            )
        )

    def _close_attempt(self, ended: bytes) -> None:
        self._pass_on_output()
        self._deliver(ended)
        self._current = None
        self._kill_at = None
        self._stack.forget()
        self._quiet = None

    def _deliver(self, ended: bytes) -> None:
        """Tell the driver how an attempt has ended."""
        self._batch.append(ended)

    # -- output --------------------------------------------------------------------------------------------------

    def _drain_output(self) -> None:
        for stream in (self._below.stdout, self._below.stderr):
            stream.drain()
            if stream.has_news and self._quiet is not None:
                self._quiet.heard()
            if stream.has_news and self._output_due is None:
                self._output_due = time.monotonic() + OUTPUT_EVERY_S

    def _pass_on_output(self) -> None:
        self._output_due = None
        for stream in (self._below.stdout, self._below.stderr):
            while stream.has_news:
                self._batch.append(encode_message(Output(self._last_trial, stream.name, stream.take())))

    def _finish_output(self) -> None:
        """Attribute everything printed so far to the trial that printed it."""
        self._drain_output()
        self._output_due = None
        for stream in (self._below.stdout, self._below.stderr):
            rest = stream.finish()
            if rest:
                self._batch.append(encode_message(Output(self._last_trial, stream.name, rest)))

    def _with_last_output(self, error: str) -> str:
        text = self._below.stdout.last_lines() + self._below.stderr.last_lines()
        return "\n".join(filter(None, (error, text and f"Last output:\n{text}")))

    # -- time ----------------------------------------------------------------------------------------------------

    def _keep_time(self) -> None:
        now = time.monotonic()
        if self._stack.has_come(now):
            self._kill_at = now
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = now + KILL_AGAIN_S  # it may be about to begin: until it has ended, this is repeated
            self._has_killed = True
            self._below.template.send(b"K")
        if self._leave_by is not None and now >= self._leave_by:
            self._leave_by = now + EXIT_GRACE_S
            self._below.template.send(b"K")
        if self._output_due is not None and now >= self._output_due:
            self._pass_on_output()
        if self._quiet is not None and now >= self._quiet.next_look and self._current is not None:
            idle_s = self._quiet.look(now)
            if idle_s:
                self._batch.append(encode_message(Quiet(self._current.trial, self._current.attempt, idle_s)))
        patience_s = self._config.driver_silence_s
        if patience_s is not None and now - self._last_heard > patience_s:
            raise TimeoutError(f"the driver has been silent for {patience_s:g} s")

    def _flush(self) -> None:
        now = time.monotonic()
        if self._batch:
            self._connection.send(self._batch)
            self._batch = []
        elif now - self._last_sent >= BEAT_S:
            self._connection.send([encode_message(Beat())])
        else:
            return
        self._last_sent = now

    def close(self) -> None:
        """Let everything below end."""
        self._below.template.close()

    def _say_goodbye(self) -> None:
        self._pass_on_the_rest(encode_message(Bye()))

    def _pass_on_the_rest(self, *farewell: bytes) -> None:
        """Deliver what the runner has said before it came to its end, and close the connection."""
        self._drain_runner(most=sys.maxsize)
        self._finish_output()
        self._batch += farewell
        self._flush()
        self._connection.close(linger_ms=2000)


def run_agent(agent: Agent) -> None:
    """Be an agent until it is over; takes everything below along at the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        agent.serve()
    finally:
        agent.close()
        end_descendants()
