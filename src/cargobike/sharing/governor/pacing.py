"""The pacer: looks at the sockets of all transfers many times a second, and tells the kernel how fast each may send."""

from __future__ import annotations

import logging
import math
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType

from cargobike.sharing.governor.buckets import TokenBucket
from cargobike.sharing.governor.division import allot
from cargobike.sharing.governor.limits import Limits, Rates
from cargobike.sharing.governor.paths import Connection, Path

logger = logging.getLogger(__name__)

TICK_S = 0.02
"""Between two looks at all sockets. A shorter one costs CPU time, a longer one sees a short queue too late."""

PATIENCE_S = 0.5
"""How long a wait sleeps before it looks again at a limit that an hour of the day may have changed."""


@dataclass(frozen=True, slots=True)
class PathStatus:
    """How a path to one peer does.

    Attributes:
        peer: The name that its connections were attached with.
        connections: How many there are.
        phase: What the governor does: `start`, `steady`, `yield`, `return`, `slow-down`; `limits` if nothing.
        rate: Bytes a second that it allows; None for no limit.
        delivered_rate: Bytes a second that arrived lately.
        base_delay_s: The round trip without a queue, as far as it is known.
        queueing_delay_s: How much longer a round trip takes now.
    """

    peer: str
    connections: int
    phase: str
    rate: float | None
    delivered_rate: float
    base_delay_s: float | None
    queueing_delay_s: float


class Handle:
    """One attached socket. Methods may be called from any thread; after `close` the socket is left alone."""

    def __init__(self, pacer: Pacer, connection: Connection) -> None:
        self._pacer = pacer
        self._connection = connection

    def sent(self, count: int) -> None:
        """Count bytes that were handed to the socket."""
        self._connection.count(count)

    def wait(self, count: int, timeout_s: float | None = None) -> bool:
        """Wait until bytes may be sent, and count them against the limits that the kernel does not keep.

        At once for a TCP socket unless transfers are paused, since the kernel delays what is sent too early.

        Returns:
            Whether they may be sent now; false if the time was over before, or the pacer was closed.
        """
        if self._connection.may_send_at_once:
            return True
        return self._pacer.wait_for(self._connection.bucket, count, timeout_s)

    def wait_to_receive(self, count: int, timeout_s: float | None = None) -> bool:
        """Wait until bytes may be received, and count them; like `wait`, for the limit of what comes in."""
        return self._pacer.wait_for(self._pacer.incoming, count, timeout_s)

    def close(self) -> None:
        """Forget the socket. May be called twice, and after the socket was closed."""
        self._pacer.detach(self._connection)

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Pacer:
    """Keeps all transfers of one process within limits, and out of the way of other traffic.

    Its thread runs while sockets are attached. It reads and sets options of them and no more: data flows without it.

    Args:
        limits: What the user allows; `pacer.limits = …` changes it at any time, for transfers under way, too.
        local_time: Returns the time of day by which limits of hours are judged.
    """

    def __init__(self, limits: Limits | None = None, *, local_time: Callable[[], datetime] = datetime.now) -> None:
        self._limits = limits or Limits()
        self._local_time = local_time
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._paths: dict[str, Path] = {}
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self.incoming = TokenBucket(self._now_allowed().receive, time.monotonic())

    @property
    def limits(self) -> Limits:
        """What the user allows."""
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        with self._lock:
            self._limits = limits
            self._apply(time.monotonic())

    def attach(self, sock: socket.socket, peer: str) -> Handle:
        """Govern what a connected socket sends.

        Args:
            sock: A connected socket; its owner keeps it, and closes it.
            peer: The other side. Connections with the same name share one path and one rate.
        """
        connection = Connection(sock)
        with self._lock:
            path = self._paths.setdefault(peer, Path(peer))
            path.add(connection)
            self._apply(time.monotonic())
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, name="sharing-pacer", daemon=True)
                self._thread.start()
        return Handle(self, connection)

    def detach(self, connection: Connection) -> None:
        """Forget a connection, and its path with the last one."""
        with self._lock:
            for peer, path in list(self._paths.items()):
                path.remove(connection)
                if path.is_unused(time.monotonic()):
                    del self._paths[peer]

    def status(self) -> list[PathStatus]:
        """Return how each path does, by peer."""
        with self._lock:
            paths = sorted((path for path in self._paths.values() if path.connections), key=lambda path: path.peer)
            return [
                PathStatus(
                    peer=path.peer,
                    connections=len(path.connections),
                    phase=path.phase(self._limits.gives_way),
                    rate=path.rate,
                    delivered_rate=path.delivered_rate,
                    base_delay_s=path.base_delay_s,
                    queueing_delay_s=path.queueing_delay_s,
                )
                for path in paths
            ]

    def close(self) -> None:
        """End the thread and every wait; sockets keep the rate that they had last."""
        with self._lock:
            self._is_closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout=5)

    def __enter__(self) -> Pacer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait_for(self, bucket: TokenBucket, count: int, timeout_s: float | None) -> bool:
        """Wait until a bucket lets bytes through; false if the time was over before, or the pacer was closed."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._lock:
            while not self._is_closed:
                now = time.monotonic()
                delay = bucket.delay(now)
                if delay == 0:
                    bucket.take(count, now)
                    return True
                left = PATIENCE_S if deadline is None else deadline - now
                if left <= 0:
                    return False
                self._changed.wait(min(PATIENCE_S if delay is None else delay, left))
                self.incoming.set_rate(self._now_allowed().receive, time.monotonic())
        return False

    def _run(self) -> None:
        with self._lock:
            while not self._is_closed:
                try:
                    self._tick(time.monotonic())
                except Exception:  # data flows on at the rate it has, whatever is wrong here
                    logger.exception("The pacer cannot look at its sockets; they keep the rate that they have")
                    self._changed.wait(1)
                if not self._paths:
                    self._thread = None
                    return
                self._changed.wait(TICK_S)

    def _tick(self, now: float) -> None:
        for peer, path in list(self._paths.items()):
            path.look(now)
            if path.is_unused(now):
                del self._paths[peer]
        self._apply(now)

    def _apply(self, now: float) -> None:
        """Divide what is allowed among paths, and what a path gets among its connections."""
        allowed = self._now_allowed()
        bounds, wishes = {}, {}
        for peer, path in self._paths.items():
            bounds[peer] = min(self._limits.peers.get(peer, math.inf), path.bound(gives_way=self._limits.gives_way))
            wishes[peer] = min(bounds[peer], path.wish)
        for peer, share in allot(allowed.send, wishes).items():
            self._paths[peer].apply(min(share, bounds[peer]), now)
        if self.incoming.rate != allowed.receive:
            self.incoming.set_rate(allowed.receive, now)
        self._changed.notify_all()

    def _now_allowed(self) -> Rates:
        return self._limits.at(self._local_time())
