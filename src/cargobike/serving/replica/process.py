"""The loop of a replica: load, warm up, connect to the front, answer one batch after the other."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from cargobike.core.errors import CargobikeError, DeploymentError, InvalidInputError
from cargobike.core.registering.looking_up import view_keeper
from cargobike.core.registering.modelling import KeptModel, model_keeper
from cargobike.serving.replica.pipeline import Pipeline, find_fault, unpack_functions
from cargobike.serving.specification import Specification
from cargobike.serving.wire import (
    REPLICAS,
    Answers,
    Failed,
    Frames,
    FromReplica,
    Leave,
    Piece,
    Predict,
    Ready,
    ReplicaConfig,
    Stop,
    ToReplica,
    framed,
)
from cargobike.store.files import project

_log: Final = logging.getLogger(__name__)
_RETRY_S: Final = 0.05
_READ_BYTES: Final = 1 << 18


def run_replica(config: ReplicaConfig, when_loaded: Callable[[], None] | None = None) -> None:
    """Serve one version until the front says that there will be no more, or is gone for longer than `grace_s`.

    Blocks. Ends with an error if the model cannot be loaded, or cannot answer its own example: nothing was connected
    then, and no request is lost.

    Args:
        config: What to serve, and where.
        when_loaded: Called when the model is loaded and warm.

    Raises:
        DeploymentError: If the model cannot be loaded or warmed up.
    """
    _obey_signals()
    specification = msgspec.json.decode(config.specification, type=Specification)
    project.use(config.project)
    pipeline, ready = prepare(specification, config)
    if when_loaded is not None:
        when_loaded()
    try:
        Replica(pipeline, ready, config).run()
    finally:
        pipeline.close()


def _obey_signals() -> None:
    """Leave Ctrl-C to the supervisor, which drains first; be ended by SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def prepare(specification: Specification, config: ReplicaConfig) -> tuple[Pipeline, Ready]:
    """Load the model and what stands around it, and answer its example once."""
    reference = f"{model_name(specification.model)}:{config.version}"
    try:
        model = model_keeper().get(reference)
        place = specification.view_project
        owner = project.at(place) if place else project.current()
        lookup = view_keeper().open_lookup(specification.view, owner) if specification.view else None
        pipeline = Pipeline(
            model.predictor(trust=specification.trust),
            signature=model.signature,
            functions=unpack_functions(specification.functions),
            lookup=lookup,
        )
    except CargobikeError:
        raise
    except Exception as error:
        raise DeploymentError(f"{reference} cannot be loaded: {type(error).__name__}: {error}") from error
    example = _warm_up(pipeline, model, reference)
    signature = pipeline.outer_signature
    ready = Ready(
        replica=config.replica,
        version=config.version,
        pid=os.getpid(),
        secret=config.secret,
        signature=b"" if signature is None else msgspec.json.encode(signature),
        keys=pipeline.keys,
        example=example,
        streams=pipeline.streams,
    )
    return pipeline, ready


def model_name(reference: str) -> str:
    """Return the name in `digits`, `digits:3` or `digits@champion`."""
    return reference.partition("@")[0].partition(":")[0]


def _warm_up(pipeline: Pipeline, model: KeptModel, reference: str) -> list[Any]:
    """Answer the registered example, alone and as a whole, so that no request pays for what happens only once.

    The example is of rows as the model takes them: where functions or features stand before it, it does not fit.
    """
    example = model.example
    if not example or (pipeline.outer_signature is None and (pipeline.keys or pipeline.has_before)):
        return []
    rows = msgspec.to_builtins(list(example), enc_hook=lambda value: value.tolist())
    try:
        pipeline.answer(rows[:1])
        pipeline.answer(rows)
    except Exception as error:
        raise DeploymentError(
            f"{reference} cannot answer the example that it was registered with: {type(error).__name__}: {error}"
        ) from error
    return list(rows)


class Replica:
    """Answers batches that come over one connection at a time.

    A front that is lost (the connection closes) is looked for again for `grace_s`: one that was killed is started again
    on the same socket. What was computed for a lost front is dropped; the next one asks again.
    """

    def __init__(self, pipeline: Pipeline, ready: Ready, config: ReplicaConfig) -> None:
        self._pipeline = pipeline
        self._ready = ready
        self._path = str(Path(config.folder) / REPLICAS)
        self._grace_s = config.grace_s
        self._decoder = msgspec.msgpack.Decoder(ToReplica)
        self._connection: socket.socket | None = None
        self._frames = Frames()

    def run(self) -> None:
        """Serve until told to leave, or until no front was there for the grace time."""
        while (connection := self._connect()) is not None:
            with connection:
                self._connection = connection
                try:
                    self._say(framed(self._ready))
                    if self._serve(connection):
                        return
                except OSError as error:
                    _log.info("the front is gone: %s", error)
                finally:
                    self._connection = None

    def _connect(self) -> socket.socket | None:
        until = time.monotonic() + self._grace_s
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(self._path)
            except OSError:
                connection.close()
                if time.monotonic() >= until:
                    _log.warning("no front listens on %s any more: ending", self._path)
                    return None
                time.sleep(_RETRY_S)
            else:
                return connection

    def _serve(self, connection: socket.socket) -> bool:
        """Answer batches; return whether the front has said to leave."""
        self._frames = Frames()
        while data := connection.recv(_READ_BYTES):
            for body in self._frames.feed(data):
                message = self._decoder.decode(body)
                if isinstance(message, Leave) or (isinstance(message, Predict) and self._handle(message)):
                    return True
        return False

    def _handle(self, batch: Predict) -> bool:
        """Answer a batch; return whether the front has meanwhile said to leave."""
        if batch.streams:
            return self._stream(batch)
        self._say(self._answered(batch))
        return False

    def _answered(self, batch: Predict) -> bytes:
        start = time.perf_counter()
        try:
            answers = self._pipeline.answer(batch.rows)
            return framed(Answers(batch.batch, answers, time.perf_counter() - start))
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            return framed(self._failed(batch, error))

    def _failed(self, batch: Predict, error: Exception) -> FromReplica:
        verdict = find_fault(self._sendable, batch.rows, error)
        reason = verdict.error or error
        if not verdict.at_fault:
            _log.warning("a batch of %d rows failed, and none of its rows alone: %s", len(batch.rows), error)
            return Answers(batch.batch, verdict.answers)
        _log.error("rows %s of %d failed", verdict.at_fault[:8], len(batch.rows), exc_info=reason)
        return Failed(
            batch=batch.batch,
            error=type(reason).__name__,
            message=str(reason),
            rows_at_fault=verdict.at_fault,
            answers=verdict.answers,
            is_input=isinstance(reason, InvalidInputError),
        )

    def _sendable(self, rows: list[Any]) -> list[Any]:
        """Return the answers to rows, or raise the error that sending them would raise."""
        answers = self._pipeline.answer(rows)
        framed(Answers(0, answers))
        return answers

    def _stream(self, batch: Predict) -> bool:
        """Send an answer piece by piece, until it is whole or not wanted any more."""
        pieces = self._pipeline.stream(batch.rows[0])
        leaves = False
        while True:
            try:
                piece = framed(Piece(batch.batch, next(pieces)))
            except StopIteration:
                break
            except Exception as error:  # noqa: BLE001 - user code may raise anything
                _log.error("a streamed answer failed", exc_info=error)
                is_input = isinstance(error, InvalidInputError)
                self._say(framed(Failed(batch.batch, type(error).__name__, str(error), [0], [None], is_input)))
                return leaves
            self._say(piece)
            heard = self._heard()
            leaves = leaves or any(isinstance(message, Leave) for message in heard)
            if any(isinstance(message, Stop) and message.batch == batch.batch for message in heard):
                break
        self._say(framed(Piece(batch.batch, is_last=True)))
        return leaves

    def _heard(self) -> list[Predict | Stop | Leave]:
        """Return what the front has said meanwhile, without waiting."""
        assert self._connection is not None
        readable, _, _ = select.select([self._connection], [], [], 0)
        if not readable:
            return []
        data = self._connection.recv(_READ_BYTES)
        if not data:
            raise ConnectionResetError("the front has closed the connection")
        return [self._decoder.decode(body) for body in self._frames.feed(data)]

    def _say(self, frame: bytes) -> None:
        assert self._connection is not None
        self._connection.sendall(frame)
