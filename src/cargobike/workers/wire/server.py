"""The driver's end of the wire: one encrypted ROUTER socket, known workers only, a numbered link to each.

Strangers are turned away before any of their bytes are parsed: the handshake needs the driver's server key, and the
authenticator admits only the keys that were made for this driver's workers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec
import zmq
from zmq.utils import z85

from cargobike.core.errors import EngineError
from cargobike.core.running.hosting import Listening
from cargobike.workers.wire.connection import identity_of
from cargobike.workers.wire.link import Link
from cargobike.workers.wire.messages import Hello, Message, NoMessage, encode_message
from cargobike.workers.wire.strangers import Doorkeeper, closed_connection
from cargobike.workers.wire.ways import Ticket

log = logging.getLogger(__name__)

_ACK_AFTER = 64
_MOST_PER_ROUND = 1000
_MOST_QUESTIONS = 16


Heard = TypeVar("Heard")


@dataclass(slots=True)
class _Peer:
    name: str
    public_key: bytes
    identity: bytes
    link: Link = field(default_factory=Link)
    outbox: list[bytes] = field(default_factory=list)
    descriptor: int | None = None
    unacknowledged: int = 0


class WireServer(Generic[Heard]):
    """Receives from and sends to the workers of one driver.

    Args:
        decode: Turns bytes into a message from a worker, its body decoded into the program's types.
        listening: Address and port to listen on, and how workers reach them; loopback unless told otherwise.

    Raises:
        EngineError: If that is not an address of this machine, or the port is taken.
    """

    def __init__(self, decode: Callable[[bytes | msgspec.Raw], Heard], listening: Listening | None = None) -> None:
        listening = listening or Listening()
        self._decode = decode
        self._context = zmq.Context()
        self._server_key, self._secret_key = zmq.curve_keypair()
        self._zap = self._context.socket(zmq.REP)
        self._zap.linger = 0
        self._zap.bind("inproc://zeromq.zap.01")
        self._peers: dict[str, _Peer] = {}
        self._by_identity: dict[bytes, _Peer] = {}
        self._by_key: dict[bytes, _Peer] = {}
        self._by_descriptor: dict[int, _Peer] = {}
        self._dirty: dict[str, _Peer] = {}
        self.router = self._secured()
        self._doorkeeper = Doorkeeper(self.router, known=lambda: self._by_descriptor, expected=self._expected)
        self._closings = self._doorkeeper.closings()
        try:
            port = _bind(self.router, listening)
        except EngineError:
            self.close()
            raise
        self._doorkeeper.open(port)
        self.address = f"tcp://{listening.reach or listening.bind}:{port}"
        self._poller = zmq.Poller()
        self._ready: set[object] = set()
        for socket in (self.router, self._zap, self._closings):
            self._poller.register(socket, zmq.POLLIN)

    def _secured(self) -> zmq.Socket[bytes]:
        router: zmq.Socket[bytes] = self._context.socket(zmq.ROUTER)
        router.linger = 500
        router.curve_server = True
        router.curve_publickey = self._server_key
        router.curve_secretkey = self._secret_key
        router.zap_domain = b"cargobike"
        router.setsockopt(zmq.ROUTER_HANDOVER, 1)
        router.sndhwm = 0
        router.rcvhwm = 0
        router.setsockopt(zmq.MAXMSGSIZE, 64 << 20)
        return router

    def _expected(self) -> int:
        """Return how many workers may be about to connect."""
        return max(0, len(self._peers) - len(self._by_descriptor))

    @property
    def server_key(self) -> bytes:
        """The public key by which workers recognize the driver."""
        return self._server_key

    def open_router(self, listening: Listening, *, most_bytes: int) -> tuple[zmq.Socket[bytes], str]:
        """Return another socket for the same workers, to be used by one other thread, and its address.

        It is for questions and answers: a worker that asks without reading what it is told gets no further. It must be
        closed before this server is.

        Args:
            listening: Where to listen.
            most_bytes: How long a message may be.

        Raises:
            EngineError: If that is not an address of this machine, or the port is taken.
        """
        router = self._secured()
        router.setsockopt(zmq.MAXMSGSIZE, most_bytes)
        router.sndhwm = router.rcvhwm = _MOST_QUESTIONS
        doorkeeper = Doorkeeper(router, known=lambda: (), expected=lambda: len(self._peers))
        try:
            port = _bind(router, listening)
        except EngineError:
            router.disable_monitor()
            doorkeeper.close()
            router.close(0)
            raise
        doorkeeper.open(port)
        return router, f"tcp://{listening.reach or listening.bind}:{port}"

    def issue(self, worker: str) -> Ticket:
        """Admit a worker; returns what it needs to connect."""
        public, secret = self.admit(worker)
        return Ticket(self.address, self._server_key, public, secret)

    def admit(self, worker: str) -> tuple[bytes, bytes]:
        """Make keys for a worker and admit it; returns its public and secret key."""
        public, secret = zmq.curve_keypair()
        peer = _Peer(worker, public, identity_of(secret))
        self._peers[worker] = peer
        self._by_identity[peer.identity] = peer
        self._by_key[z85.decode(public)] = peer
        return public, secret

    def forget(self, worker: str) -> None:
        """Stop admitting a worker."""
        peer = self._peers.pop(worker, None)
        if peer is not None:
            self._by_identity.pop(peer.identity, None)
            self._by_key.pop(z85.decode(peer.public_key), None)
            self._dirty.pop(worker, None)
            if peer.descriptor is not None:
                self._by_descriptor.pop(peer.descriptor, None)

    def watch(self, descriptor: int) -> None:
        """Make `poll` also return when this descriptor becomes readable."""
        self._poller.register(descriptor, zmq.POLLIN)

    def poll(self, timeout_ms: int) -> bool:
        """Wait until something happens on our sockets or on a descriptor that is watched."""
        self._ready = {source for source, _ in self._poller.poll(timeout_ms)}
        return bool(self._ready)

    def receive(self) -> tuple[list[tuple[str, Heard]], list[str]]:
        """Return the messages that have arrived, in order, and the workers whose connection has closed."""
        ready = self._ready
        if self._zap in ready:
            self._authenticate()
        lost = self._disconnected() if self._closings in ready else []
        if self.router not in ready:
            return [], lost
        messages: list[tuple[str, Heard]] = []
        for _ in range(_MOST_PER_ROUND):
            if not int(self.router.getsockopt(zmq.EVENTS)) & zmq.POLLIN:  # a third of the cost of an error that says so
                break
            identity = self.router.recv(zmq.NOBLOCK)
            peer = self._by_identity.get(identity)
            is_connected = peer is not None and peer.descriptor is not None
            greeting = self.router.recv(zmq.NOBLOCK, copy=is_connected)
            body = self.router.recv(zmq.NOBLOCK) if self.router.getsockopt(zmq.RCVMORE) else b""
            while self.router.getsockopt(zmq.RCVMORE):
                body = self.router.recv(zmq.NOBLOCK)[:0]  # more parts than a message has: treat it as empty
            if peer is not None:
                self._take(peer, greeting, body, messages)
        return messages, lost

    def _take(self, peer: _Peer, greeting: bytes | zmq.Frame, body: bytes, messages: list[tuple[str, Heard]]) -> None:
        try:
            if isinstance(greeting, zmq.Frame):
                if greeting.get("User-Id") != peer.name:
                    return  # a worker that uses another's name
                self._connected(peer, greeting.get(zmq.SRCFD))
                greeting = greeting.bytes
            if greeting:
                hello = self._decode(greeting)
                if isinstance(hello, Hello):
                    messages.append((peer.name, hello))
                    for envelope in peer.link.unacknowledged():
                        self.router.send_multipart([peer.identity, envelope])
            for raw in peer.link.unpack(body):
                messages.append((peer.name, self._decode(raw)))
            peer.unacknowledged += 1
            if peer.unacknowledged >= _ACK_AFTER:
                self._dirty[peer.name] = peer
        except NoMessage:
            log.warning("worker %s sent something that is not a message; it is ignored", peer.name)

    def _connected(self, peer: _Peer, descriptor: int) -> None:
        if peer.descriptor is not None:
            self._by_descriptor.pop(peer.descriptor, None)
        peer.descriptor = descriptor
        self._by_descriptor[descriptor] = peer

    def _disconnected(self) -> list[str]:
        lost: list[str] = []
        while self._closings.poll(0):
            peer = self._by_descriptor.pop(closed_connection(self._closings.recv()), None)
            if peer is not None:
                peer.descriptor = None
                lost.append(peer.name)
        return lost

    def _authenticate(self) -> None:
        while self._zap.poll(0):
            version, request, _domain, _address, _identity, mechanism, *credentials = self._zap.recv_multipart()
            peer = self._by_key.get(credentials[0]) if mechanism == b"CURVE" and credentials else None
            status, text = (b"200", b"OK") if peer is not None else (b"400", b"unknown key")
            user = peer.name.encode() if peer is not None else b""
            self._zap.send_multipart([version, request, status, text, user, b""])

    def send(self, worker: str, message: Message) -> None:
        """Put a message on its way; `flush` sends it."""
        peer = self._peers.get(worker)
        if peer is not None:
            peer.outbox.append(encode_message(message))
            self._dirty[worker] = peer

    @property
    def has_mail(self) -> bool:
        """Whether something is on its way."""
        return bool(self._dirty)

    def acknowledge_all(self) -> None:
        """Tell every worker that the driver is alive and what has arrived."""
        for peer in self._peers.values():
            self._dirty[peer.name] = peer

    def flush(self) -> None:
        """Send everything that is on its way."""
        for peer in self._dirty.values():
            self.router.send_multipart([peer.identity, peer.link.pack(peer.outbox)])
            peer.outbox = []
            peer.unacknowledged = 0
        self._dirty.clear()

    def close(self) -> None:
        """Close all sockets."""
        self.router.disable_monitor()
        self._doorkeeper.close()
        self._closings.close(0)
        self._zap.close(0)
        self.router.close()
        self._context.term()


def _bind(router: zmq.Socket[bytes], listening: Listening) -> int:
    """Listen where it was asked for; returns the port."""
    try:
        if not listening.port:
            return router.bind_to_random_port(f"tcp://{listening.bind}")
        router.bind(f"tcp://{listening.bind}:{listening.port}")
    except zmq.ZMQError as error:
        where = f"{listening.bind}:{listening.port or 'any port'}"
        raise EngineError(
            f"The driver cannot listen on {where} ({error.strerror}); its engine must be given an address of this "
            "machine and a port that is free."
        ) from error
    return listening.port
