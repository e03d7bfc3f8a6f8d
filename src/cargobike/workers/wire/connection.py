"""An agent's connection to its driver: encrypted, authenticated both ways, reconnecting, nothing lost or repeated."""

from __future__ import annotations

import hashlib

import msgspec
import zmq

from cargobike.workers.wire.link import Link


class AgentConfig(msgspec.Struct, frozen=True):
    """What an agent must know; handed over by the engine, in memory only.

    `driver_silence_s` is for machines where only silence shows that the driver has ended. On the driver's own machine
    a pipe shows it, and a driver that was stopped with Ctrl-Z may go on after an hour.

    `folder` is where the program works, inside `project`. `marker` names a file in it: where that is missing, the
    folder is a different one, and files are transferred to and from `files_address`.
    """

    worker: str
    address: str
    server_key: bytes
    public_key: bytes
    secret_key: bytes
    folder: str
    project: str
    reuse: bool
    driver_silence_s: float | None = None
    files_address: str = ""
    marker: str = ""

    def encode(self) -> bytes:
        """Turn into bytes."""
        return msgspec.msgpack.encode(self)

    @staticmethod
    def decode(data: bytes) -> AgentConfig:
        """Undo `encode`."""
        return msgspec.msgpack.decode(data, type=AgentConfig)


def identity_of(secret_key: bytes) -> bytes:
    """Return under what a worker's connections are known to the driver's sockets.

    A connection that comes under the same identity takes the place of the one before, as after a reconnect. So nobody
    else may guess it: with a worker's name, any other worker could get the messages that are meant for it.
    """
    return hashlib.blake2b(secret_key, digest_size=16, person=b"cargobike-wire").hexdigest().encode()


def secured(context: zmq.Context[zmq.Socket[bytes]], config: AgentConfig) -> zmq.Socket[bytes]:
    """Make a socket that talks only to our driver and identifies us to it."""
    made: zmq.Socket[bytes] = context.socket(zmq.DEALER)
    made.identity = identity_of(config.secret_key)
    made.linger = 0
    made.sndhwm = 0
    made.rcvhwm = 0
    made.curve_serverkey = config.server_key
    made.curve_publickey = config.public_key
    made.curve_secretkey = config.secret_key
    made.reconnect_ivl = 50
    made.reconnect_ivl_max = 2000
    return made


class Connection:
    """A DEALER socket with a `Link` on top.

    While the network is down, what is sent waits in the socket. A driver that refuses us has given us up: then sending
    raises `zmq.Again`, and all that is left is to end.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._context = zmq.Context()
        self.socket = secured(self._context, config)
        self.monitor = self.socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self.link = Link()
        self.socket.connect(config.address)

    def reconnected(self) -> bool:
        """Tell whether a handshake has been completed since the last call."""
        seen = False
        while self.monitor.poll(0):
            self.monitor.recv_multipart()
            seen = True
        return seen

    def repeat(self, hello: bytes) -> None:
        """After a reconnect: introduce ourselves and repeat what may not have arrived."""
        for envelope in [self.link.pack([]), *self.link.unacknowledged()]:
            self.socket.send_multipart([hello, envelope], zmq.NOBLOCK)

    def send(self, items: list[bytes]) -> None:
        """Send some messages."""
        self.socket.send_multipart([b"", self.link.pack(items)], zmq.NOBLOCK)

    def receive(self) -> list[msgspec.Raw]:
        """Return the messages that have arrived."""
        messages: list[msgspec.Raw] = []
        while int(self.socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            messages += self.link.unpack(self.socket.recv(zmq.NOBLOCK))
        return messages

    def close(self, linger_ms: int) -> None:
        """Close, giving what was sent some time to leave."""
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.socket.close(linger_ms)
        self._context.term()
