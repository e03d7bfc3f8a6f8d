"""A parameter server: listens, lets workers in that know the secret, and answers each in a thread of its own."""

from __future__ import annotations

import functools
import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import msgspec

from cargobike.core.errors import AuthenticationError, CargobikeError
from cargobike.core.running.member import current
from cargobike.training.parameter_server.codecs import make_memory, memory_of
from cargobike.training.parameter_server.connection import (
    Inbox,
    listen,
    prove_as_server,
    receive_header,
    send_frame,
    tune,
    wait_in_kernel,
)
from cargobike.training.parameter_server.messages import (
    Ask,
    Bye,
    Counts,
    Declare,
    Hello,
    Parameters,
    Pull,
    Push,
    Refused,
    Reply,
    decode_request,
    encode,
)
from cargobike.training.parameter_server.shard import RefusedError, Shard
from cargobike.training.parameter_server.shard_file import load_shard, save_shard
from cargobike.training.server_options import DEFAULTS, check_options

_log = logging.getLogger(__name__)

POLL_S = 0.1
_MOST_BODY_BYTES = 1 << 40
_MOST_STRANGERS = 64


class Server:
    """One shard behind one listening socket. Use as a context manager, or call `start` and `stop`.

    Args:
        secret: What workers must know.
        host: The address to listen on; the loopback address unless others are to reach it.
        port: The port; 0 takes a free one.
        checkpoint: A file to restore the shard from, and to save it in.
        checkpoint_every_s: How often; also when the server stops.
    """

    def __init__(
        self,
        secret: bytes,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        checkpoint: Path | None = None,
        checkpoint_every_s: float = DEFAULTS["checkpoint_every_s"],
    ) -> None:
        self._secret = secret
        self._checkpoint, self._every_s = checkpoint, checkpoint_every_s
        self._saved_version = -1
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._strangers = 0
        self.shard: Shard | None = load_shard(checkpoint) if checkpoint else None
        if self.shard is not None:
            _log.info("restored a shard at version %d from %s", self.shard.version, checkpoint)
        self.address, self._listeners = listen(host, port)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to accept workers, in threads."""
        works: list[Callable[[], None]] = [functools.partial(self._accept, each) for each in self._listeners]
        for work in (*works, self._save_regularly):
            thread = threading.Thread(target=work, name="parameter server", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Close every connection and save the shard a last time."""
        self._stopping.set()
        for listener in self._listeners:
            listener.close()
        for connection in list(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join(timeout=10)
        self._save()

    def _accept(self, listener: socket.socket) -> None:
        listener.settimeout(POLL_S)
        while not self._stopping.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            if self._strangers >= _MOST_STRANGERS:
                connection.close()  # they come back; those who belong here prove it in milliseconds
                continue
            self._connections.add(connection)
            with self._lock:
                self._strangers += 1
            thread = threading.Thread(target=self._serve, args=[connection], name="parameter server", daemon=True)
            thread.start()

    def _save_regularly(self) -> None:
        while not self._stopping.wait(self._every_s):
            self._save()

    def _save(self) -> None:
        shard = self.shard
        if self._checkpoint is None or shard is None or shard.version == self._saved_version:
            return
        try:
            self._saved_version = save_shard(shard, self._checkpoint)
        except OSError as error:
            _log.warning("the shard could not be saved in %s: %s", self._checkpoint, error)

    def _serve(self, connection: socket.socket) -> None:
        session = _Session(self, connection)
        try:
            try:
                tune(connection)
                prove_as_server(connection, self._secret)
            finally:
                with self._lock:
                    self._strangers -= 1
            wait_in_kernel(connection, None)
            while session.answer_one():
                pass
        except AuthenticationError as error:
            _log.warning("refused: %s", error)
        except (OSError, msgspec.DecodeError, CargobikeError) as error:
            _log.debug("a connection ended: %s", error)
        except Exception:  # noqa: BLE001 - what is wrong with one conversation must not end the others
            _log.exception("a connection failed")
        finally:
            session.close()
            self._connections.discard(connection)
            connection.close()

    def declare(self, message: Declare, body: object) -> Counts:
        """Make the shard, or check that another worker means the same one."""
        with self._lock:
            if self.shard is None:
                self.shard = Shard(message, body)  # type: ignore[arg-type,unused-ignore]
            elif not self.shard.same_as(message):
                raise RefusedError(Refused("different", _difference(self.shard.declared, message)))
            return self.shard.counts()


def _difference(known: Declare, given: Declare) -> str:
    ours, theirs = ({spec.name: spec.shape for spec in declared.tensors} for declared in (known, given))
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    shown = ", ".join(f"{name}: {ours.get(name)} here, {theirs.get(name)} in the worker" for name in names[:5])
    return f"this server holds other parameters than the worker's model has ({shown or 'in another order'})"


class _Session:
    """One worker's conversation with the server."""

    def __init__(self, server: Server, connection: socket.socket) -> None:
        self._server, self._connection = server, connection
        self._inbox = Inbox(make_memory)
        self._worker = ""
        self._rank = 0
        self._entered: Shard | None = None

    def close(self) -> None:
        if self._entered is not None:
            self._entered.leave(self._worker)

    def answer_one(self) -> bool:
        """Answer one request; False after the last."""
        header, length = receive_header(self._connection)
        request = decode_request(header)
        if length > _MOST_BODY_BYTES:
            raise ConnectionError(f"a body of {length} bytes is not one of ours")
        body = self._inbox.receive(self._connection, length)
        if isinstance(request, Bye):
            return False
        try:
            if isinstance(request, Pull):
                shard = self._shard()
                self._send_parameters(shard, request, body, None)
            elif isinstance(request, Push):
                shard = self._shard()
                pushed, rest = shard.push(self._worker, request, body)
                if request.pull is None:
                    self._reply(pushed)
                else:
                    self._send_parameters(shard, request.pull, rest, pushed)
            else:
                self._reply(self._administer(request, body))
        except RefusedError as error:
            self._reply(error.refusal)
        except (RuntimeError, ValueError, IndexError) as error:  # numbers that do not fit together
            self._reply(Refused("malformed", str(error).splitlines()[0]))
        return True

    def _administer(self, request: Hello | Declare | Ask, body: object) -> Reply:
        if isinstance(request, Hello):
            self._worker, self._rank = request.worker, request.rank
        if isinstance(request, Declare):
            return self._server.declare(request, body)
        shard = self._server.shard
        return shard.counts() if shard is not None else Counts(False, 0)

    def _shard(self) -> Shard:
        shard = self._server.shard
        if shard is None:
            raise RefusedError(Refused("undeclared", "no parameters have been declared to this server yet"))
        if self._entered is not shard:
            shard.enter(self._worker, self._rank)
            self._entered = shard
        return shard

    def _send_parameters(self, shard: Shard, request: Pull, body: object, pushed: object) -> None:
        shard.await_turn(self._worker, request.timeout_s)
        with shard.reading(request, body) as (version, pieces):  # type: ignore[arg-type,unused-ignore]
            header = Parameters(version) if pushed is None else msgspec.structs.replace(pushed, version=version)  # type: ignore[type-var]
            send_frame(self._connection, encode(header), [memory_of(piece) for piece in pieces])

    def _reply(self, reply: Reply) -> None:
        send_frame(self._connection, encode(reply))


def serve() -> None:
    """Be a server of this gang until its workers are done: what the gang calls in each server's process.

    The shard is saved in the trial's folder, every `checkpoint_every_s` seconds; the next attempt goes on from it.
    """
    here = current()
    assert here.gang is not None, "a server is a member of a gang that can talk"
    path = here.checkpoints_root / "shard.bin"
    every_s = float(check_options(here.options)["checkpoint_every_s"])
    with Server(here.secret, host=here.gang.address, checkpoint=path, checkpoint_every_s=every_s) as server:
        here.gang.publish("ps-address", server.address.encode())
        stop = threading.Event()
        while not here.should_stop:
            stop.wait(POLL_S)
