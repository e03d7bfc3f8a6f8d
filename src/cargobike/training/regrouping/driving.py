"""Starts workers, carries out what the roster decides, and passes on what ranks print."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.records import Resources
from cargobike.core.running.ending import process_ending
from cargobike.core.version import __version__
from cargobike.engines.capabilities import Elsewhere
from cargobike.engines.engine import Engine, WorkerHandle, WorkerSpec
from cargobike.training.regrouping.messages import FromRank, Outcome, Progress, Ready, Task
from cargobike.training.regrouping.program import MODULE
from cargobike.training.regrouping.roster import Command, End, Finish, GiveUp, Roster, Say, Start, State, Terms
from cargobike.workers.wire.connection import AgentConfig
from cargobike.workers.wire.messages import (
    Assign,
    Beat,
    Bye,
    Died,
    Ended,
    Hello,
    Output,
    Quiet,
    Release,
    Said,
    Tell,
    Used,
)
from cargobike.workers.wire.server import WireServer

SILENCE_S: Final = 60.0
JOIN_S: Final = 120.0
_LOOK_EVERY_MS: Final = 50
_ACK_EVERY_S: Final = 1.0
_GOODBYE_S: Final = 5.0
_TASK: Final = 0
_ATTEMPT: Final = 1

_Heard = Hello | Beat | Said[FromRank] | Ended[Outcome] | Died | Quiet | Used | Output | Bye
_decode_heard = msgspec.msgpack.Decoder(_Heard).decode


class JobFailedError(Exception):
    """A job failed; `why` says it for people, with the rank, its host and the exit code of a program."""

    def __init__(self, given_up: GiveUp) -> None:
        super().__init__(given_up.why)
        self.why, self.rank, self.host, self.code = given_up.why, given_up.rank, given_up.host, given_up.code


@dataclass(slots=True)
class _Started:
    handle: WorkerHandle
    heard_at: float
    has_come: bool = False
    is_over: bool = False
    last_output: str = ""


@dataclass(slots=True)
class Driver:
    """Runs a job whose ranks may come and go.

    Args:
        engine: Where workers live.
        folder: Where they work.
        payload: The `Job`.
        terms: How many ranks there may be.
        resources: What each gets.
        on_output: Called with a rank, a stream and what was printed to it.
        look_around: Called now and then; returns how many ranks there should be, `None` if that did not change.
    """

    engine: Engine
    folder: Path
    payload: bytes
    terms: Terms
    resources: Resources
    on_output: Callable[[int, str, bytes], None]
    look_around: Callable[[], int | None] | None = None
    _server: WireServer[_Heard] = field(init=False)
    _roster: Roster = field(init=False)
    _team: dict[str, _Started] = field(default_factory=dict)
    _names: int = 0
    _ranks: dict[str, int] = field(default_factory=dict)
    _said: dict[str, list[tuple[str, bytes]]] = field(default_factory=dict)

    def run(self) -> list[int]:
        """Run the job to its end; returns the ranks that have returned.

        Raises:
            JobFailedError: If it fails; names the rank, with its traceback.
            EngineError: If no worker can be started.
        """
        listening = self.engine.listening if isinstance(self.engine, Elsewhere) else None
        self._server = WireServer(_decode_heard, listening)
        self._roster = Roster(self.terms)
        next_ack = 0.0
        try:
            while True:
                now = time.monotonic()
                if self.look_around is not None and (wanted := self.look_around()) is not None:
                    self._roster.resize(wanted)
                if self._carry_out(self._roster.decide(now), now):
                    break
                if now >= next_ack:
                    next_ack = now + _ACK_EVERY_S
                    self._server.acknowledge_all()
                self._server.flush()
                self._server.poll(_LOOK_EVERY_MS)
                self._hear(time.monotonic())
                self._look(time.monotonic())
            self._dismiss()
        finally:
            for started in self._team.values():
                started.handle.kill()
            self._server.close()
        return sorted(worker.rank or 0 for worker in self._roster.workers.values() if worker.state is State.DONE)

    def _carry_out(self, commands: list[Command], now: float) -> bool:
        for command in commands:
            if isinstance(command, Start):
                self._start(now)
            elif isinstance(command, Say):
                self._server.send(command.worker, Tell(_TASK, _ATTEMPT, command.body))
                self._print_unsaid(command.worker)
            elif isinstance(command, End):
                self._gone(command.worker, "did not answer any more, and was ended", now)
            elif isinstance(command, GiveUp):
                self._drain()
                raise JobFailedError(command)
            elif isinstance(command, Finish):
                return True
        return False

    def _start(self, now: float) -> None:
        self._names += 1
        name = f"w{self._names}"
        public, secret = self._server.admit(name)
        config = AgentConfig(
            worker=name,
            address=self._server.address,
            server_key=self._server.server_key,
            public_key=public,
            secret_key=secret,
            folder=str(self.folder),
            project=str(self.folder),
            reuse=False,
            driver_silence_s=self.engine.driver_silence_s if isinstance(self.engine, Elsewhere) else None,
        )
        spec = WorkerSpec(
            name=name,
            module=MODULE,
            config=config.encode(),
            payload=self.payload,
            resources=self.resources,
            peers=self.terms.start,
            version=__version__,
        )
        self._roster.started(name)
        self._team[name] = _Started(self.engine.start_worker(spec), now)

    def _hear(self, now: float) -> None:
        messages, _ = self._server.receive()
        for name, message in messages:
            worker = self._team.get(name)
            if worker is None:
                continue
            worker.heard_at = now
            if isinstance(message, Hello) and not worker.has_come:
                worker.has_come = True
                self._roster.came(name, message.host)
                self._server.send(name, Assign(_TASK, _ATTEMPT, Task()))
            elif isinstance(message, Output):
                self._printed(name, message.stream, message.data)
            elif isinstance(message, Said) and not worker.is_over:
                if isinstance(message.body, Ready):
                    self._roster.ready(name, message.body.place, now)
                elif isinstance(message.body, Progress):
                    self._roster.progressed()
            elif isinstance(message, Ended | Died) and not worker.is_over:
                self._ended(name, worker, message, now)

    def _ended(self, name: str, worker: _Started, message: Ended[Outcome] | Died, now: float) -> None:
        worker.is_over = True
        worker.last_output = message.last_output
        if isinstance(message, Died):
            how = process_ending(message.code)
            self._roster.lost(name, str(how), now, 128 - message.code if message.code < 0 else message.code or 1)
        elif message.body.code:
            self._roster.failed(name, message.body.error, message.body.code, now)
        else:
            self._roster.returned(name)
        self._server.send(name, Release())

    def _look(self, now: float) -> None:
        """Look for workers that are dead or silent."""
        join_s = max(JOIN_S, self.engine.join_s) if isinstance(self.engine, Elsewhere) else JOIN_S
        for name, worker in list(self._team.items()):
            ending = worker.handle.poll()
            is_silent = now - worker.heard_at > (SILENCE_S if worker.has_come else join_s)
            if ending is None and not is_silent:
                continue
            self._gone(name, str(ending) if ending is not None else "did not answer any more", now)

    def _gone(self, name: str, why: str, now: float) -> None:
        worker = self._team.pop(name, None)
        if worker is None:
            return
        worker.handle.kill()
        self._server.forget(name)
        if not worker.is_over:
            self._roster.lost(name, why, now)

    def _printed(self, name: str, stream: str, data: bytes) -> None:
        known = self._roster.workers.get(name)
        rank = self._ranks.get(name) if known is None or known.rank is None else known.rank
        if rank is None:  # it has not met the others yet: what it prints has no name to go by
            self._said.setdefault(name, []).append((stream, data))
            return
        self._ranks[name] = rank
        self.on_output(rank, stream, data)

    def _print_unsaid(self, name: str) -> None:
        for stream, data in self._said.pop(name, []):
            self._printed(name, stream, data)

    def _drain(self) -> None:
        """Pass on what ranks have printed until now."""
        self._server.flush()
        self._server.poll(_LOOK_EVERY_MS)
        for name, message in self._server.receive()[0]:
            if isinstance(message, Output):
                self._printed(name, message.stream, message.data)
        for name, chunks in self._said.items():
            for stream, data in chunks:
                self.on_output(int(name[1:]) - 1, stream, data)
        self._said.clear()

    def _dismiss(self) -> None:
        """Wait a moment until all have left."""
        deadline = time.monotonic() + _GOODBYE_S
        while time.monotonic() < deadline and any(worker.handle.poll() is None for worker in self._team.values()):
            self._drain()
        self._drain()
