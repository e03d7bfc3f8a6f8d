"""Both ends of the wire for workers that descend from the driver: a pair of sockets for each, inherited.

What the kernel carries from one process to another on the same machine is neither lost nor repeated nor read by others.
So there are no keys, no numbers, no acknowledgements and no threads: a message is one system call at each end.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from cargobike.core.running.descriptors import from_reserve
from cargobike.core.running.forks import abandon_in_copies
from cargobike.core.running.member import LOOPBACK
from cargobike.workers.wire.messages import Message, NoMessage, encode_message
from cargobike.workers.wire.ways import Ticket

log = logging.getLogger(__name__)

ADDRESS = f"inherited://{LOOPBACK}:0"
"""Where the driver is, for those who want to know its machine."""

_PIECE = 1 << 16
_MOST_PIECES = 16
_LENGTH = 4
_LONGEST = 64 << 20
_MOST_READY = 256

Heard = TypeVar("Heard")


class Packets:
    """One end of a pair: whole packets over a stream, without ever waiting for the other end.

    Attributes:
        is_closed: Whether the other end is gone, or has sent what is no packet.
    """

    __slots__ = ("_rest", "_socket", "_waiting", "_wanted", "is_closed")

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._rest = bytearray()
        self._wanted = _LENGTH
        self._waiting: deque[memoryview] = deque()
        self.is_closed = False

    def fileno(self) -> int:
        """The descriptor."""
        return self._socket.fileno()

    @property
    def in_flight(self) -> int:
        """How many batches are waiting for the other end to read."""
        return len(self._waiting)

    def send(self, items: list[bytes]) -> None:
        """Send packets, or keep them until `flush` if the other end does not read."""
        parts: list[bytes] = []
        for item in items:
            parts.append(len(item).to_bytes(_LENGTH, "big"))
            parts.append(item)
        data = b"".join(parts)
        if self._waiting:
            self._waiting.append(memoryview(data))
            return
        sent = self._try(data)
        if sent < len(data):
            self._waiting.append(memoryview(data)[sent:])

    def _try(self, data: bytes | memoryview) -> int:
        """Send what the kernel takes; if the other end is gone, all of it is taken: nobody will ever read it."""
        try:
            return self._socket.send(data, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)

    def flush(self) -> None:
        """Go on with what is waiting."""
        while self._waiting:
            data = self._waiting[0]
            sent = self._try(data)
            if sent < len(data):
                self._waiting[0] = data[sent:]
                return
            self._waiting.popleft()

    def receive(self) -> list[bytes]:
        """Return the whole packets that have arrived."""
        items: list[bytes] = []
        for _ in range(_MOST_PIECES):
            try:
                data = self._socket.recv(_PIECE)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.is_closed = True
                break
            if self._rest:
                self._rest += data
                if len(self._rest) >= self._wanted:
                    rest, self._rest = bytes(self._rest), bytearray()
                    self._split(rest, items)
            else:
                self._split(data, items)
            if self.is_closed or len(data) < _PIECE:
                break
        return items

    def _split(self, data: bytes, items: list[bytes]) -> None:
        position, size = 0, len(data)
        self._wanted = _LENGTH
        while size - position >= _LENGTH:
            begin = position + _LENGTH
            length = int.from_bytes(data[position:begin], "big")
            if length > _LONGEST:
                self.is_closed = True
                return
            if begin + length > size:
                self._wanted = _LENGTH + length
                break
            position = begin + length
            items.append(data[begin:position])
        if position < size:
            self._rest += data[position:]

    def close(self, linger_s: float = 0.0) -> None:
        """Close it, giving what is waiting some time to leave."""
        with contextlib.suppress(OSError):
            self._socket.settimeout(linger_s)
            while self._waiting and linger_s > 0:
                self._socket.sendall(self._waiting.popleft())
        self._socket.close()


class _Peer(msgspec.Struct):
    name: str
    packets: Packets
    theirs: socket.socket | None
    descriptor: int
    outbox: list[bytes] = msgspec.field(default_factory=list)
    is_full: bool = False


class PairServer(Generic[Heard]):
    """Receives from and sends to the workers of one driver that inherit their connections.

    Args:
        decode: Turns bytes into a message from a worker, its body decoded into the program's types.
    """

    def __init__(self, decode: Callable[[bytes | msgspec.Raw], Heard]) -> None:
        self._decode = decode
        self._peers: dict[str, _Peer] = {}
        self._by_descriptor: dict[int, _Peer] = {}
        self._dirty: dict[str, _Peer] = {}
        self._ready: list[tuple[int, int]] = []
        self._epoll = select.epoll()
        abandon_in_copies(self)

    def abandon(self) -> None:
        """Close our ends in a copy of this process, without a word to the workers."""
        self._epoll.close()
        for peer in self._peers.values():
            peer.packets.close()
            if peer.theirs is not None:
                peer.theirs.close()

    def issue(self, worker: str) -> Ticket:
        """Admit a worker; returns the descriptor that it must inherit. Ours is closed when it has come."""
        ours, theirs = from_reserve(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM))
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        peer = _Peer(worker, Packets(ours), theirs, ours.fileno())
        self.forget(worker)
        self._peers[worker] = peer
        self._by_descriptor[peer.descriptor] = peer
        self._epoll.register(peer.descriptor, select.EPOLLIN)
        return Ticket(ADDRESS, descriptor=theirs.fileno())

    def forget(self, worker: str) -> None:
        """Close the connection to a worker."""
        peer = self._peers.pop(worker, None)
        if peer is not None:
            self._dirty.pop(worker, None)
            self._unplug(peer)
            peer.packets.close()
            _give_away(peer)

    def _unplug(self, peer: _Peer) -> None:
        if self._by_descriptor.pop(peer.descriptor, None) is not None:
            self._epoll.unregister(peer.descriptor)  # else it would be reported while a copy of us holds it

    def watch(self, descriptor: int) -> None:
        """Make `poll` also return when this descriptor becomes readable."""
        self._epoll.register(descriptor, select.EPOLLIN)

    def poll(self, timeout_ms: int) -> bool:
        """Wait until something happens on our sockets or on a descriptor that is watched."""
        self._ready = self._epoll.poll(timeout_ms / 1000, _MOST_READY)
        return bool(self._ready)

    def receive(self) -> tuple[list[tuple[str, Heard]], list[str]]:
        """Return the messages that have arrived, in order, and the workers whose connection has closed."""
        messages: list[tuple[str, Heard]] = []
        lost: list[str] = []
        ready, self._ready = self._ready, []
        for descriptor, what in ready:
            peer = self._by_descriptor.get(descriptor)
            if peer is None:
                continue
            if what & select.EPOLLOUT:
                peer.packets.flush()
                self._watch_for_room(peer)
            if what != select.EPOLLOUT:
                packets = peer.packets.receive()
                if peer.theirs is not None and packets:
                    packets = self._has_come(peer, packets)
                for packet in packets:
                    self._take(peer, packet, messages)
                if peer.packets.is_closed:
                    self._unplug(peer)
                    lost.append(peer.name)
        return messages, lost

    @staticmethod
    def _has_come(peer: _Peer, packets: list[bytes]) -> list[bytes]:
        """Close the worker's end, which is its own by now: else we would not see that it is gone.

        Returns what it has said, unless it is gone already: it must not get anything to do.
        """
        _give_away(peer)
        packets += peer.packets.receive()
        return [] if peer.packets.is_closed else packets

    def _take(self, peer: _Peer, packet: bytes, messages: list[tuple[str, Heard]]) -> None:
        try:
            message = self._decode(packet)
        except NoMessage:
            log.warning("worker %s sent something that is not a message; it is ignored", peer.name)
            return
        messages.append((peer.name, message))

    def _watch_for_room(self, peer: _Peer) -> None:
        is_full = peer.packets.in_flight > 0
        if is_full != peer.is_full and peer.descriptor in self._by_descriptor:
            peer.is_full = is_full
            self._epoll.modify(peer.descriptor, select.EPOLLIN | (select.EPOLLOUT if is_full else 0))

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
        """Do nothing: the kernel tells workers that the driver has ended."""

    def flush(self) -> None:
        """Send everything that is on its way."""
        for peer in self._dirty.values():
            peer.packets.send(peer.outbox)
            peer.outbox = []
            if peer.packets.in_flight:
                self._watch_for_room(peer)
        self._dirty.clear()

    def close(self) -> None:
        """Close all connections, which ends the workers that are left."""
        for worker in list(self._peers):
            self.forget(worker)
        self._epoll.close()


def _give_away(peer: _Peer) -> None:
    if peer.theirs is not None:
        peer.theirs.close()
        peer.theirs = None


class PairConnection:
    """An agent's end.

    Args:
        descriptor: What the worker has inherited.
    """

    def __init__(self, descriptor: int) -> None:
        self._packets = Packets(socket.socket(fileno=descriptor))
        self._descriptor = descriptor
        self._is_full = False
        self.poller = select.poll()
        self.poller.register(descriptor, select.POLLIN)
        self.is_closed = False

    def begin(self, hello: bytes) -> None:
        """Introduce ourselves."""
        self.send([hello])

    def has_come(self, ready: Mapping[Any, int]) -> bool:
        """Tell from what the poller has found whether the driver has said something."""
        what = ready.get(self._descriptor, 0)
        if what & select.POLLOUT:
            self._packets.flush()
            self._watch_for_room()
        return bool(what & ~select.POLLOUT)

    def receive(self) -> list[bytes]:
        """Return the messages that have arrived."""
        packets = self._packets.receive()
        self.is_closed = self._packets.is_closed
        return packets

    def send(self, items: list[bytes]) -> None:
        """Send some messages; never waits for the driver."""
        self._packets.send(items)
        if self._packets.in_flight or self._is_full:
            self._watch_for_room()

    def _watch_for_room(self) -> None:
        is_full = self._packets.in_flight > 0
        if is_full != self._is_full:
            self._is_full = is_full
            self.poller.register(self._descriptor, select.POLLIN | (select.POLLOUT if is_full else 0))

    @property
    def in_flight(self) -> int:
        """How many batches the driver has not had time to read."""
        return self._packets.in_flight

    def close(self, linger_ms: int) -> None:
        """Close, giving what was sent some time to leave."""
        self._packets.close(linger_ms / 1000)
