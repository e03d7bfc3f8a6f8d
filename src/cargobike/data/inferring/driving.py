"""Gives pieces to workers until all are predicted: workers that die or hang are replaced, their pieces given again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.errors import EngineError, PredictionError
from cargobike.core.records import Resources
from cargobike.core.running.ending import process_ending
from cargobike.core.values.words import count
from cargobike.core.version import __version__
from cargobike.data.inferring.program import MODULE, Piece, Predicted
from cargobike.engines.engine import Engine, WorkerHandle, WorkerSpec
from cargobike.workers.wire.connection import AgentConfig
from cargobike.workers.wire.messages import (
    Assign,
    Beat,
    Bye,
    Died,
    Ended,
    Halt,
    Hello,
    Output,
    Quiet,
    Release,
    Said,
    Used,
)
from cargobike.workers.wire.server import WireServer

ATTEMPTS: Final = 3
"""How often a piece is begun before it is given up: what kills three processes kills the fourth."""
SILENCE_S: Final = 60.0
JOIN_S: Final = 120.0
_LOOK_EVERY_MS: Final = 50
_ACK_EVERY_S: Final = 1.0
_GOODBYE_S: Final = 5.0

_Heard = Hello | Beat | Said[msgspec.Raw] | Ended[Predicted] | Died | Quiet | Used | Output | Bye
_decode_heard = msgspec.msgpack.Decoder(_Heard).decode


@dataclass(slots=True)
class _Worker:
    handle: WorkerHandle
    heard_at: float
    has_come: bool = False
    task: int | None = None
    deadline: float | None = None
    last_output: str = ""


@dataclass(slots=True)
class Driver:
    """Runs a job.

    Args:
        engine: Where workers live.
        folder: Where they work.
        payload: The job.
        workers: How many there are at once.
        resources: What each gets.
        timeout_s: How long a piece may take; `None` for ever.
        on_done: Called with the number of each piece that is written, and its rows.
        on_output: Called with what predict prints.
    """

    engine: Engine
    folder: Path
    payload: bytes
    workers: int
    resources: Resources
    timeout_s: float | None
    on_done: Callable[[int, int], None]
    on_output: Callable[[str, bytes], None]
    _server: WireServer[_Heard] = field(init=False)
    _team: dict[str, _Worker] = field(default_factory=dict)
    _waiting: deque[int] = field(default_factory=deque)
    _pieces: Mapping[int, Piece] = field(default_factory=dict)
    _attempts: dict[int, int] = field(default_factory=dict)
    _started: int = 0
    _stillborn: int = 0

    def run(self, pieces: Mapping[int, Piece]) -> None:
        """Predict all pieces.

        Raises:
            PredictionError: If predict fails; the text is the user's traceback and the row.
            EngineError: If no worker can be started, or a piece kills its process again and again.
        """
        self._pieces = pieces
        self._waiting = deque(sorted(pieces))
        self._attempts = dict.fromkeys(pieces, 0)
        self._server = WireServer(_decode_heard)
        next_ack = 0.0
        try:
            while self._waiting or any(worker.task is not None for worker in self._team.values()):
                now = time.monotonic()
                self._staff(now)
                self._assign(now)
                if now >= next_ack:
                    next_ack = now + _ACK_EVERY_S
                    self._server.acknowledge_all()
                self._server.flush()
                self._server.poll(_LOOK_EVERY_MS)
                self._hear(time.monotonic())
                self._look(time.monotonic())
            self._dismiss()
        finally:
            self._server.close()

    def _staff(self, now: float) -> None:
        busy = sum(worker.task is not None for worker in self._team.values())
        while len(self._team) < min(self.workers, busy + len(self._waiting)):
            self._started += 1
            name = f"w{self._started}"
            public, secret = self._server.admit(name)
            config = AgentConfig(
                worker=name,
                address=self._server.address,
                server_key=self._server.server_key,
                public_key=public,
                secret_key=secret,
                folder=str(self.folder),
                project=str(self.folder),
                reuse=True,
            )
            spec = WorkerSpec(
                name=name,
                module=MODULE,
                config=config.encode(),
                payload=self.payload,
                resources=self.resources,
                peers=self.workers,
                version=__version__,
            )
            self._team[name] = _Worker(self.engine.start_worker(spec), now)

    def _assign(self, now: float) -> None:
        for name, worker in self._team.items():
            if worker.has_come and worker.task is None and self._waiting:
                worker.task = self._waiting.popleft()
                self._attempts[worker.task] += 1
                worker.deadline = None if self.timeout_s is None else now + self.timeout_s
                body = self._pieces[worker.task]
                self._server.send(name, Assign(worker.task, self._attempts[worker.task], body))

    def _hear(self, now: float) -> None:
        messages, _ = self._server.receive()
        for name, message in messages:
            worker = self._team.get(name)
            if worker is None:
                continue
            worker.heard_at = now
            if isinstance(message, Hello):
                worker.has_come = True
                self._stillborn = 0
            elif isinstance(message, Output):
                self.on_output(message.stream, message.data)
            elif isinstance(message, Ended | Died) and message.task == worker.task:
                task, worker.task = message.task, None
                if isinstance(message, Ended):
                    self._ended(task, message.body)
                else:
                    self._died(task, _how(message), message.last_output)

    def _ended(self, task: int, predicted: Predicted) -> None:
        if predicted.error:
            raise PredictionError(predicted.error)
        self.on_done(task, predicted.rows)

    def _died(self, task: int, how: str, last_output: str = "") -> None:
        """Give a piece to another process, unless it has killed too many."""
        if self._attempts[task] < ATTEMPTS:
            self._waiting.appendleft(task)
            return
        first = self._pieces[task].first_row
        printed = f"\nIts last words were:\n{last_output.rstrip()}" if last_output.strip() else ""
        raise EngineError(
            f"The process that predicts the rows from {first:,} on {how}, {ATTEMPTS} times in a row. What was finished "
            f"is kept: call inference again when the reason is gone.{printed}"
        )

    def _look(self, now: float) -> None:
        """Look for workers that are dead, silent or too slow."""
        for name, worker in list(self._team.items()):
            ending = worker.handle.poll()
            if worker.deadline is not None and worker.task is not None and now > worker.deadline:
                self._server.send(name, Halt(worker.task, self._attempts[worker.task], 0.0))
                worker.deadline = None  # its end comes as `Died`
            is_silent = now - worker.heard_at > (SILENCE_S if worker.has_come else JOIN_S)
            if ending is None and not is_silent:
                continue
            worker.handle.kill()
            del self._team[name]
            self._server.forget(name)
            why = str(ending) if ending is not None else "did not answer any more"
            if worker.task is not None:
                self._died(worker.task, why)
            elif not worker.has_come:
                self._stillborn += 1
                if self._stillborn >= ATTEMPTS:
                    raise EngineError(f"{count(self._stillborn, 'worker')} in a row did not start: the last one {why}.")

    def _dismiss(self) -> None:
        """Send the workers home, and wait a moment for them."""
        for name in self._team:
            self._server.send(name, Release())
        deadline = time.monotonic() + _GOODBYE_S
        while time.monotonic() < deadline and any(worker.handle.poll() is None for worker in self._team.values()):
            self._server.flush()
            self._server.poll(_LOOK_EVERY_MS)
            messages, _ = self._server.receive()
            for _, message in messages:
                if isinstance(message, Output):
                    self.on_output(message.stream, message.data)


def _how(died: Died) -> str:
    if died.halted:
        return "took longer than timeout_s allows"
    return str(process_ending(died.code))
