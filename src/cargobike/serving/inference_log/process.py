"""The process of an inference log: `python -m cargobike.serving.inference_log`, started by a front.

It has an interpreter of its own: turning requests into columns beside the event loop would make requests wait. It ends
when the front closes its socket or is gone, after it has kept what it was given.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import time
from typing import Final

import msgspec

from cargobike.core.errors import CargobikeError
from cargobike.core.signatures import Signature
from cargobike.serving.inference_log.log import InferenceLog
from cargobike.serving.inference_log.messages import Counted, LogConfig, Signed, to_log
from cargobike.serving.specification import Specification
from cargobike.serving.wire import Frames, framed

TELL_EVERY_S: Final = 0.25
_AT_ONCE: Final = 1 << 18
_NICE: Final = 10
_log: Final = logging.getLogger(__name__)


def main() -> None:
    """Keep requests until the front is gone."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for ignored in (signal.SIGINT, signal.SIGTERM):  # the front ends first, and closes the socket
        signal.signal(ignored, signal.SIG_IGN)
    os.nice(_NICE)  # on a busy machine requests are answered first
    config = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=LogConfig)
    specification = msgspec.json.decode(config.specification, type=Specification)
    signatures: dict[int, Signature | None] = {}
    try:
        log = InferenceLog(specification, config.project, config.model, signatures)
    except CargobikeError as error:
        _log.error("requests are not logged: %s", error)
        raise SystemExit(1) from error
    gc.set_threshold(100_000, 20, 100)  # requests are many small objects without cycles
    gc.freeze()
    with socket.socket(fileno=config.connection) as connection:
        connection.settimeout(TELL_EVERY_S)
        try:
            _keep_all(connection, log, signatures)
        finally:
            log.close()
            _tell(connection, log)


def _keep_all(connection: socket.socket, log: InferenceLog, signatures: dict[int, Signature | None]) -> None:
    frames, tell_at = Frames(), 0.0
    while True:
        if time.monotonic() >= tell_at:
            _tell(connection, log)
            tell_at = time.monotonic() + TELL_EVERY_S
        try:
            data = connection.recv(_AT_ONCE)
        except TimeoutError:
            continue
        except ConnectionError:
            return
        if not data:
            return
        for body in frames.feed(data):
            message = to_log.decode(body)
            if isinstance(message, Signed):
                signatures[message.version] = msgspec.json.decode(message.signature, type=Signature | None)
                continue
            log.take_packed(message)


def _tell(connection: socket.socket, log: InferenceLog) -> None:
    """Say what became of requests; a front that does not listen is no reason to wait."""
    counts = log.counts
    with contextlib.suppress(OSError):
        connection.send(framed(Counted(counts.written, counts.dropped, counts.failures)))
