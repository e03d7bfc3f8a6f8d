"""Agents without runners: they speak the real wire to a real driver, hundreds of them in one process."""

from __future__ import annotations

import heapq
import itertools
import multiprocessing
import os
import socket
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import msgspec
import zmq

from cargobike.core.records import Resources
from cargobike.core.running.ending import Ending, EndKind
from cargobike.core.version import __version__
from cargobike.engines.engine import Engine, WorkerHandle, WorkerSpec
from cargobike.experiments.trial.messages import AttemptEnd, Point
from cargobike.workers.wire.connection import AgentConfig
from cargobike.workers.wire.link import Link
from cargobike.workers.wire.messages import (
    Assign,
    Beat,
    Bye,
    Ended,
    Hello,
    Message,
    Release,
    Said,
    decode_driver_message,
    encode_message,
)

BEAT_S = 1.0


@dataclass
class FakeAgent:
    """One worker as the driver sees it: takes a trial, reports so many times a second, ends it."""

    config: AgentConfig
    socket: zmq.Socket[bytes]
    link: Link = field(default_factory=Link)
    assignment: Assign[msgspec.Raw] | None = None
    step: int = 0
    is_released: bool = False

    def greet(self) -> None:
        hello = Hello(self.config.worker, os.getpid(), socket.gethostname(), "", __version__)
        self.socket.send_multipart([encode_message(hello), self.link.pack([])])

    def send(self, message: Message) -> None:
        self.socket.send_multipart([b"", self.link.pack([encode_message(message)])])

    def hear(self) -> bool:
        """Take in orders; tell whether a trial begins."""
        begins = False
        while int(self.socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            for raw in self.link.unpack(self.socket.recv()):
                order = decode_driver_message(raw)
                if isinstance(order, Assign):
                    self.assignment, self.step, begins = order, 0, True
                elif isinstance(order, Release):
                    self.send(Bye())
                    self.is_released = True
        return begins

    def report(self, reports: int) -> bool:
        """Send the next report, or the end; tell whether the trial goes on."""
        assignment = self.assignment
        assert assignment is not None
        if self.step < reports:
            point = Point(self.step, {"sent_at": time.time()})
            self.send(Said(assignment.task, assignment.attempt, point))
            self.step += 1
            return True
        self.assignment = None
        end = AttemptEnd("completed", value=1.0, metrics={"sent_at": 1.0})
        self.send(Ended(assignment.task, assignment.attempt, end))
        return False


def serve(orders: Connection, reports: int, rate: float) -> None:
    """Be many agents until all of them are released, or until the driver's process closes the pipe."""
    context = zmq.Context()
    poller = zmq.Poller()
    poller.register(orders, zmq.POLLIN)
    agents: dict[zmq.Socket[bytes], FakeAgent] = {}
    due: list[tuple[float, int, FakeAgent]] = []
    order = itertools.count()
    next_beat = time.monotonic() + BEAT_S
    while True:
        wait_s = min(next_beat, due[0][0] if due else next_beat) - time.monotonic()
        ready = dict(poller.poll(max(0, round(wait_s * 1000))))
        if ready.pop(orders.fileno(), None):
            try:
                config = AgentConfig.decode(orders.recv_bytes())
            except EOFError:
                return
            agent = _connect(context, config)
            agents[agent.socket] = agent
            poller.register(agent.socket, zmq.POLLIN)
        now = time.monotonic()
        for source in ready:
            if source in agents and agents[source].hear():
                heapq.heappush(due, (now + next(order) % 100 / 100 / rate, next(order), agents[source]))
        while due and due[0][0] <= now:
            at, _, agent = heapq.heappop(due)
            if agent.report(reports):
                heapq.heappush(due, (at + 1 / rate, next(order), agent))
        if now >= next_beat:
            next_beat = now + BEAT_S
            for agent in agents.values():
                if agent.assignment is None and not agent.is_released:
                    agent.send(Beat())


def _connect(context: zmq.Context[zmq.Socket[bytes]], config: AgentConfig) -> FakeAgent:
    dealer = context.socket(zmq.DEALER)
    dealer.identity = config.worker.encode()
    dealer.linger = 1000
    dealer.sndhwm = dealer.rcvhwm = 0
    dealer.curve_serverkey = config.server_key
    dealer.curve_publickey = config.public_key
    dealer.curve_secretkey = config.secret_key
    dealer.connect(config.address)
    agent = FakeAgent(config, dealer)
    agent.greet()
    return agent


class FakeHandle(WorkerHandle):
    """A fake agent lives as long as the process it is in."""

    def __init__(self, name: str, process: multiprocessing.process.BaseProcess) -> None:
        self.name = name
        self._process = process
        self._is_killed = False

    def poll(self) -> Ending | None:
        has_ended = self._is_killed or not self._process.is_alive()
        return Ending(EndKind.ENDED, "was ended") if has_ended else None

    def kill(self) -> None:
        self._is_killed = True


class FakeAgents(Engine):
    """An engine of fake agents, divided among some processes.

    Args:
        processes: How many processes share them.
        reports: How many reports a trial sends.
        rate: How many reports a second each agent sends.
    """

    name = "fake agents"

    def __init__(self, processes: int, reports: int, rate: float) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._members = []
        for _ in range(processes):
            near, far = spawn.Pipe()
            process = spawn.Process(target=serve, args=(far, reports, rate), daemon=True)
            process.start()
            far.close()
            self._members.append((near, process))
        self._count = 0

    def start_worker(self, spec: WorkerSpec) -> FakeHandle:
        pipe, process = self._members[self._count % len(self._members)]
        self._count += 1
        pipe.send_bytes(spec.config)
        return FakeHandle(spec.name, process)

    def capacity(self, resources: Resources) -> int:
        return 100_000

    def shutdown(self, timeout_s: float = 5.0) -> None:
        for pipe, process in self._members:
            pipe.close()
            process.join(timeout_s)
            if process.is_alive():
                process.kill()
                process.join()
