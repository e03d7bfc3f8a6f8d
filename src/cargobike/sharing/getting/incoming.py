"""What may be received in a second, as the user has limited it: shared by all connections of a getter."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime

from cargobike.sharing.governor.buckets import TokenBucket
from cargobike.sharing.governor.limits import Limits

_PATIENCE_S = 0.5


class Incoming:
    """Waits while limits let nothing in; the sender is slowed down by what is not read.

    Args:
        limits: What the user allows.
        is_over: Tells that nothing is received any more, which ends every wait.
        local_time: Returns the time of day by which limits of hours are judged.
    """

    def __init__(
        self, limits: Limits, is_over: Callable[[], bool], local_time: Callable[[], datetime] = datetime.now
    ) -> None:
        self._limits, self._is_over, self._local_time = limits, is_over, local_time
        self._lock = threading.Lock()
        self._bucket = TokenBucket(limits.at(local_time()).receive, time.monotonic())

    def wait(self, count: int) -> None:
        """Wait until so many bytes may be received, and count them."""
        while not self._is_over():
            with self._lock:
                now = time.monotonic()
                rate = self._limits.at(self._local_time()).receive
                if rate != self._bucket.rate:
                    self._bucket.set_rate(rate, now)
                delay = self._bucket.delay(now)
                if delay == 0:
                    self._bucket.take(count, now)
                    return
            time.sleep(_PATIENCE_S if delay is None else min(delay, _PATIENCE_S))
