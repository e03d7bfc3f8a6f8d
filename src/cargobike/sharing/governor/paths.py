"""What the pacer knows of each connection, and of the path that connections to one peer share."""

from __future__ import annotations

import contextlib
import ipaddress
import math
import socket
import time
import zlib

from cargobike.sharing.governor import tcp_info
from cargobike.sharing.governor.buckets import TokenBucket
from cargobike.sharing.governor.controller import Controller, Look
from cargobike.sharing.governor.division import allot
from cargobike.sharing.governor.tcp_info import TcpInfo

LONG_PATHS: tuple[str, ...] = ("bbr", "cubic")
SHORT_PATHS: tuple[str, ...] = ("cubic", "bbr")
SHORT_S = 0.01
"""Which congestion control works below the rate that we set: the first that the kernel has. On long paths one that does
not take a lost packet for a full link. On short ones not `bbr`: its window is twice what is under way without a queue,
a few packets there, so that it starves in the small queue of another transfer, and less arrives than we allow. Nor in a
trickle: it sends single packets then, whose confirmation waits for the next one, which looks like a queue."""

TRICKLE = 200_000.0
"""Bytes a second below which `bbr` sends single packets: 150,000 in Linux, and some more to be sure."""

MOST_UNSENT = 128 * 1024
SPARE_RATE = 64 * 1024
"""Bytes a second of a limit that are kept for a connection with nothing to send, so that it can begin."""

KEPT_S = 60.0
"""How long a path is remembered after its last connection: the next one begins with what was learnt."""

WORTH_TELLING = 0.01
LATELY_S = 0.5
FEW_PACKETS = 6
"""What is sent in one go when the rate is a trickle, and confirmed in one go."""


class Connection:
    """One attached socket: what it sent, and what it was told last."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._told: float | None = -1.0
        self._acked = 0
        self._looked_at: float | None = None
        self._smooth_rtt_s = 0.0
        self.handed_over = 0
        self.is_gone = False
        self.is_busy = True
        self.delivered_rate = 0.0
        self.bucket = TokenBucket(None, time.monotonic())
        self.is_paced_by_kernel = tcp_info.is_paced_by_kernel(sock)
        self.may_send_at_once = True
        self.is_to_itself = not self.is_paced_by_kernel or _is_to_itself(sock)
        self._controls: tuple[str, ...] = ()
        if self.is_paced_by_kernel and not self.is_to_itself:
            tcp_info.keep_little_unsent(sock, MOST_UNSENT)

    def suit(self, base_s: float | None, *, trickles: bool) -> None:
        """Take the congestion control that suits the path, as far as its round trip is known, and the rate."""
        is_short = base_s is not None and base_s < SHORT_S
        controls = SHORT_PATHS if is_short or trickles else LONG_PATHS
        if controls != self._controls:
            self._controls = controls
            with contextlib.suppress(OSError):
                tcp_info.choose_congestion_control(self._sock, controls)

    def count(self, count: int) -> None:
        """Count bytes that were handed to the socket."""
        self.handed_over += count

    def look(self, now: float) -> tuple[TcpInfo | None, int]:
        """Return what the kernel says, if it can be asked, and the bytes that were delivered since the last look."""
        info = None
        if self.is_paced_by_kernel:
            try:
                info = tcp_info.read(self._sock)
            except OSError:
                self.is_gone = True
                return None, 0
        acked = self.handed_over if info is None or info.acked is None else info.acked
        delivered, self._acked = max(0, acked - self._acked), acked
        if self._looked_at is not None and now > self._looked_at:
            weight = 1 - math.exp((self._looked_at - now) / LATELY_S)
            self.delivered_rate += weight * (delivered / (now - self._looked_at) - self.delivered_rate)
        self._looked_at = now
        self.is_busy = info is None or info.unsent > 0
        return info, delivered

    def rtt_s(self, info: TcpInfo, delivered: int) -> float | None:
        """Return the round trip now; None if nothing was confirmed since the last look.

        The kernel adds an eighth of each round trip to its mean. In a trickle that takes seconds to follow a queue that
        has gone; but then each look sees one confirmation at most, and what it added can be taken out again.
        """
        before, self._smooth_rtt_s = self._smooth_rtt_s, info.rtt_s
        if not info.rtt_s or not delivered:
            return None
        if before > info.rtt_s and delivered <= FEW_PACKETS * info.mss:
            return max(info.min_rtt_s, before + 8 * (info.rtt_s - before))
        return info.rtt_s

    @property
    def wish(self) -> float:
        """The most that it can use now."""
        return math.inf if self.is_busy else 2 * self.delivered_rate + SPARE_RATE

    def tell(self, rate: float, now: float) -> None:
        """Set the rate: in the kernel, or in the bucket. 0 is a pause, which only `wait` can keep."""
        limit = None if math.isinf(rate) else rate
        self.may_send_at_once = limit is None or (self.is_paced_by_kernel and limit > 0)
        told = self._told
        if limit == told or (limit and told and told > 0 and abs(limit / told - 1) < WORTH_TELLING):
            return
        self._told = limit
        self.bucket.set_rate(None if self.is_paced_by_kernel and limit != 0 else limit, now)
        if self.is_paced_by_kernel:
            try:
                tcp_info.set_rate(self._sock, limit)
            except OSError:
                self.is_gone = True


class Path:
    """The connections to one peer, which share a rate."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.connections: list[Connection] = []
        self.rate: float | None = None
        self._controller = Controller(phase_s=zlib.crc32(peer.encode()) % 2000 / 1000)
        self._counted: dict[Connection, tuple[int, int]] = {}
        self._left_at = -math.inf

    def add(self, connection: Connection) -> None:
        """Let a connection share the path."""
        self.connections.append(connection)

    def remove(self, connection: Connection) -> None:
        """Forget a connection, if it is one of these."""
        if connection in self.connections:
            self.connections.remove(connection)
            self._counted.pop(connection, None)
            self._left_at = time.monotonic()

    def is_unused(self, now: float) -> bool:
        """Tell whether what is known of the path may be forgotten."""
        return not self.connections and now - self._left_at > KEPT_S

    @property
    def delivered_rate(self) -> float:
        """Bytes a second that arrived lately."""
        return sum(connection.delivered_rate for connection in self.connections)

    @property
    def is_governed(self) -> bool:
        """Whether there is a link between the two ends that others may want."""
        return any(not connection.is_to_itself for connection in self.connections)

    @property
    def base_delay_s(self) -> float | None:
        """The round trip without a queue, as far as it is known."""
        return self._controller.delays.base_s

    @property
    def queueing_delay_s(self) -> float:
        """How much longer a round trip takes now."""
        return self._controller.delays.queueing_s

    def phase(self, gives_way: bool) -> str:
        """Return what the governor does."""
        return self._controller.phase if gives_way and self.is_governed else "limits"

    def look(self, now: float) -> None:
        """Look at all connections, forget those whose socket is closed, and let the controller decide."""
        rtts, delivered, segments, repeated, has_more, mss = [], 0, 0, 0, False, 1448
        for connection in list(self.connections):
            info, count = connection.look(now)
            if connection.is_gone:
                self.remove(connection)
            if info is None or connection.is_to_itself:
                continue
            before = self._counted.get(connection, (info.segments, info.repeated))
            self._counted[connection] = (info.segments, info.repeated)
            delivered += count
            segments += max(0, info.segments - before[0])
            repeated += max(0, info.repeated - before[1])
            has_more = has_more or info.unsent > 0
            mss = info.mss or mss
            rtts.append(connection.rtt_s(info, count))
            connection.suit(self.base_delay_s or info.min_rtt_s or None, trickles=self._controller.rate < TRICKLE)
        if self.is_governed:
            rtt_s = min((rtt for rtt in rtts if rtt is not None), default=None)
            self._controller.observe(Look(now, rtt_s, delivered, segments, repeated, has_more, mss))

    @property
    def wish(self) -> float:
        """The most that the path can use now."""
        return sum(connection.wish for connection in self.connections)

    def bound(self, *, gives_way: bool) -> float:
        """Return the most that the path may have, for the sake of others."""
        return self._controller.rate if gives_way and self.is_governed else math.inf

    def apply(self, share: float, now: float) -> None:
        """Divide what the path gets among its connections."""
        self.rate = None if math.isinf(share) else share
        wishes = dict(enumerate(connection.wish for connection in self.connections))
        for number, rate in allot(self.rate, wishes).items():
            self.connections[number].tell(rate, now)


def _is_to_itself(sock: socket.socket) -> bool:
    """Tell whether a connection stays on this machine, where there is no link to give way on."""
    try:
        here, there = sock.getsockname()[0], sock.getpeername()[0]
    except OSError:
        return False
    return bool(here == there or ipaddress.ip_address(there.partition("%")[0]).is_loopback)
