"""An agent's connection to its driver: encrypted, authenticated both ways, reconnecting, nothing lost or repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
import zmq

from cargobike.workers.wire.link import Link
from cargobike.workers.wire.ways import AgentConfig

__all__ = ["AgentConfig", "Connection", "identity_of", "secured"]


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
        self.poller = zmq.Poller()
        for source in (self.socket, self.monitor):
            self.poller.register(source, zmq.POLLIN)
        self.is_closed = False
        self._hello = b""
        self.socket.connect(config.address)

    def begin(self, hello: bytes) -> None:
        """Introduce ourselves after each handshake."""
        self._hello = hello

    def has_come(self, ready: Mapping[Any, int]) -> bool:
        """Tell from what the poller has found whether the driver has said something."""
        if self.monitor in ready and self.reconnected():
            self.repeat(self._hello)
        return self.socket in ready

    @property
    def in_flight(self) -> int:
        """How many envelopes the driver has not acknowledged yet."""
        return self.link.in_flight

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
