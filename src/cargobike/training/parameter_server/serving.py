"""A parameter server: lets workers in that know the secret, and answers each in a thread of its own."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from types import TracebackType

import msgspec

from cargobike.core.errors import AuthenticationError, CargobikeError
from cargobike.core.running.member import current
from cargobike.core.values.times import Seconds, read_seconds
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.training.parameter_server.codecs import make_memory, memory_of
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
from cargobike.training.wire.channel import Channel, Inbox
from cargobike.training.wire.connection import listen
from cargobike.training.wire.handshake import check_secret
from cargobike.training.wire.lobby import POLL_S, Lobby

_log = logging.getLogger(__name__)

_MOST_BODY_BYTES = 1 << 40


class Server:
    """One shard behind one listening socket. Use as a context manager, or call `start` and `stop`.

    Args:
        secret: What workers must know: at least 16 random bytes.
        host: The address to listen on; the loopback address unless others are to reach it. Anywhere else connections
            are encrypted, which needs the package cryptography.
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
        checkpoint_every_s: Seconds = DEFAULTS["checkpoint_every_s"],
    ) -> None:
        self._secret = check_secret(secret)
        self._checkpoint = checkpoint
        self._every_s = read_seconds("checkpoint_every_s", checkpoint_every_s) or DEFAULTS["checkpoint_every_s"]
        self._saved_version = -1
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._channels: set[Channel] = set()
        self._threads: list[threading.Thread] = []
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
        lobby = Lobby(self._listeners, self._secret, self._admit)
        for work in (lambda: lobby.run(self._stopping), self._save_regularly):
            thread = threading.Thread(target=work, name="parameter server", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Close every connection and save the shard a last time."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=10)
        for listener in self._listeners:
            listener.close()
        for channel in list(self._channels):
            channel.shut()
        self._save()

    def _admit(self, channel: Channel) -> None:
        self._channels.add(channel)
        threading.Thread(target=self._serve, args=[channel], name="parameter server", daemon=True).start()

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

    def _serve(self, channel: Channel) -> None:
        session = _Session(self, channel)
        try:
            channel.wait_in_kernel(None)
            while session.answer_one():
                pass
        except AuthenticationError as error:
            _log.warning("the connection with %s is closed: %s", channel.peer, error)
        except (OSError, CargobikeError, *UNDECODABLE) as error:
            _log.debug("the connection with %s ended: %s", channel.peer, error)
        except Exception:  # noqa: BLE001 - what is wrong with one conversation must not end the others
            _log.exception("the connection with %s failed", channel.peer)
        finally:
            session.close()
            self._channels.discard(channel)
            channel.close()

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

    def __init__(self, server: Server, channel: Channel) -> None:
        self._server, self._channel = server, channel
        self._inbox = Inbox(make_memory)
        self._worker = ""
        self._rank = 0
        self._entered: Shard | None = None

    def close(self) -> None:
        if self._entered is not None:
            self._entered.leave(self._worker)

    def answer_one(self) -> bool:
        """Answer one request; False after the last."""
        header, length = self._channel.receive_header()
        request = decode_request(header)
        if length > _MOST_BODY_BYTES:
            raise ConnectionError(f"a body of {length} bytes is not one of ours")
        body = self._inbox.receive(self._channel, length)
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
            self._channel.send(encode(header), [memory_of(piece) for piece in pieces])

    def _reply(self, reply: Reply) -> None:
        self._channel.send(encode(reply))


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
