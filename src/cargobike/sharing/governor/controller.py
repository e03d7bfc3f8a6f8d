"""Decide how fast a transfer may send, so that it uses what is free and gives way as soon as another flow comes.

The parts are those of LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus), on a rate instead of a window: a fast start until a
queue shows, an increase slower than Reno's, cuts in proportion to the delay, and regular slow-downs that measure the
path without our own queue. One part is not in it: a queue that stays although we have cut belongs to another flow, and
then we leave the link to it but for a trickle, which tells us when it has gone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from cargobike.sharing.governor.delays import FILTER_S, Counts, Delays

START, STEADY, YIELD, RETURN, SLOW_DOWN = "start", "steady", "yield", "return", "slow-down"

FIRST_RATE = 500_000.0
START_SHARE = 2.0
"""A start ends at so many targets: less would end it at the small queue that another transfer of ours keeps."""

FLOOR_SHARE = 0.02
LEAST_FLOOR = 4_000.0
MOST_FLOOR = 48_000.0
"""The trickle, in bytes a second: enough for some sixteen round trips in a second, too little to be felt."""

STEP_S = 0.1
"""The shortest time between two steps of a fast start, however short the round trip."""

RENO_RTT_S = 0.04
"""Shorter round trips count as long as this: Reno's increase on them would be a multiple of the link in each second."""

GAIN = 0.5
MOST_INCREASE = 0.5
"""The rate rises by half of Reno's increase, and at most by half of itself in a second."""

SEVERE = 3.0
"""A delay of so many targets is no slip of our own rate: it is halved at once."""

LOSS = 0.015
LEAST_LOST = 8
"""Packets lost in a span: above what a long line loses by chance, a queue too short to show a delay is full."""

LEAST_HOLD_S = 1.0
MOST_HOLD_S = 16.0
TRIED_S = 4.0
"""A return that is undone within this time was too early: the next one waits twice as long."""

SLOW_SHARE = 0.2
SLOW_EVERY = 30.0
LEAST_BETWEEN_S = 10.0
"""A slow-down to a fifth of the rate, at most a thirtieth of the time: it costs less than a twentieth of the link."""

GENTLE = 0.5
"""From this share of the target on a rate is lowered a little: so that another transfer of ours sees a free link."""

FALL = 0.93
"""If less than this share of what we had arrives when a queue shows, another flow grows at our cost."""

PEAK_S = 4.0
QUIET_S = 3.0
"""After at least so long without a queue, a rate that was given up is tried again."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of the path since the last look.

    Attributes:
        now: Seconds of a clock that never goes back.
        rtt_s: The round trip now, or None if nothing was confirmed since.
        delivered: Bytes that were confirmed.
        segments: Packets that were sent.
        repeated: Packets that had to be sent again.
        has_more: Whether the program had more to send than it was allowed to.
        mss: Bytes in a packet.
    """

    now: float
    rtt_s: float | None
    delivered: int
    segments: int = 0
    repeated: int = 0
    has_more: bool = True
    mss: int = 1448


class Controller:
    """One path. Looks in, a rate out: no clock, no socket.

    Args:
        phase_s: Moves the slow-downs, so that flows which start together do not slow down together.
    """

    def __init__(self, phase_s: float = 0.0) -> None:
        self.phase = START
        self.rate = FIRST_RATE
        self._steps: dict[str, Callable[[Look, float], None]] = {
            START: self._start,
            STEADY: self._steady,
            YIELD: self._yield,
            RETURN: self._return,
            SLOW_DOWN: self._slow_down,
        }
        self.delays = Delays()
        self._counts = Counts()
        self._phase_s = phase_s
        self._now = -math.inf
        self._good_rate = 0.0
        self._wait_until = -math.inf
        self._cut_at_s: float | None = None
        self._mss = 1448
        self._strikes = 0
        self._calm_s = 0.0
        self._patience = 1.0
        self._returned_at = -math.inf
        self._slow_down_at = math.inf
        self._slow_s = 0.0
        self._share = 0.0
        self._peak_rate = 0.0
        self._best_rate = 0.0
        self._troubled_at = -math.inf
        self._deaf_until = -math.inf
        self._slow_queue_s = math.inf

    @property
    def floor(self) -> float:
        """The trickle that is sent while the link is left to others."""
        return min(MOST_FLOOR, max(LEAST_FLOOR, FLOOR_SHARE * self._good_rate))

    @property
    def _span_s(self) -> float:
        """How long what is delivered is counted: a round trip, or as long as a queue is looked for."""
        return max(FILTER_S, self.delays.rtt_s)

    @property
    def _hold_s(self) -> float:
        """How long no queue must show until the link counts as free: as long as TCP needs to fill it after a loss."""
        base = self.delays.base_s or 0.0
        window = self._best_rate * base / self._mss
        filled_s = min(window * base / 2, math.cbrt(0.75 * window))  # by Reno, by CUBIC
        return min(MOST_HOLD_S, self._patience * max(LEAST_HOLD_S, filled_s))

    def observe(self, look: Look) -> float:
        """Return the rate from now on, in bytes a second."""
        elapsed = 0.0 if math.isinf(self._now) else max(0.0, look.now - self._now)
        self._now, self._mss = look.now, max(1, look.mss)
        if look.rtt_s is not None and look.rtt_s > 0:
            self.delays.add(look.now, look.rtt_s)
        self._counts.add(look.now, look.delivered, look.segments, look.repeated, self._span_s)
        self._peak_rate = max(self._counts.delivered_rate, self._peak_rate * math.exp(-elapsed / PEAK_S))
        if self.delays.base_s is not None:
            self._steps[self.phase](look, elapsed)
        return self.rate

    def _start(self, look: Look, elapsed: float) -> None:
        delivered = self._counts.delivered_rate
        if self._is_congested(START_SHARE):
            self._good_rate = max(delivered, LEAST_FLOOR)
            self._slow_down_now()
        elif look.has_more and look.now >= self._wait_until:
            if self.rate > 4 * max(delivered, FIRST_RATE):  # something else than we holds it back
                self._good_rate = delivered
                self.rate = max(self.floor, 1.25 * delivered)
                self.phase = STEADY
            else:
                self.rate *= 2
                self._wait(max(self.delays.rtt_s, STEP_S))

    def _steady(self, look: Look, elapsed: float) -> None:
        if look.now < self._wait_until:
            return
        if self._is_congested():
            self._cut(look.now)
            return
        if self._cut_at_s is not None:  # the queue went away when we cut: this is our share
            self._best_rate = self._share
            self._strikes, self._cut_at_s = 0, None
        if look.now - self._returned_at > TRIED_S and self.rate > 0.85 * self._best_rate:
            self._patience = 1.0
        delivered = self._counts.delivered_rate
        self._best_rate = max(self._best_rate, delivered)
        if self.delays.queueing_s > GENTLE * self.delays.target_s:
            self._share = max(self._share, delivered)
            self.rate = max(self.floor, 0.95 * self._used(delivered))
            self._wait(2 * self.delays.rtt_s + FILTER_S)
        elif look.has_more:
            self._good_rate += min(1.0, elapsed / 0.3) * (delivered - self._good_rate)
            self.rate += elapsed * self._increase(look.mss)
            self.rate = min(self.rate, max(self.floor, 1.25 * self._peak_rate))
            if look.now >= self._slow_down_at:
                self._slow_down_now()
            elif look.now - self._troubled_at > max(QUIET_S, 2 * self._hold_s) and self.rate < 0.85 * self._best_rate:
                self._good_rate = self._best_rate
                self._returned_at = self._troubled_at = look.now
                self.phase = RETURN

    def _increase(self, mss: int) -> float:
        """Return by how much the rate may rise in a second: half of Reno's, so that transfers become equal."""
        reno = mss / max(self.delays.base_s or 0.0, RENO_RTT_S) ** 2
        return min(GAIN * reno, MOST_INCREASE * max(self.rate, FIRST_RATE))

    def _is_congested(self, share: float = 1.0) -> bool:
        lost, sent = self._counts.lost
        has_lost = lost >= LEAST_LOST and lost > LOSS * sent and self._now >= self._deaf_until
        return has_lost or self.delays.queueing_s > share * self.delays.target_s

    def _cut(self, now: float) -> None:
        """Cut the rate by the delay; leave the link if the queue is not ours."""
        queueing, target, delivered = self.delays.queueing_s, self.delays.target_s, self._counts.delivered_rate
        self._troubled_at = now
        if self._cut_at_s is not None and (queueing > 0.75 * self._cut_at_s or queueing > SEVERE * target):
            self._strikes += 1 if queueing < SEVERE * target else 2
            if self._strikes >= 2:
                self._leave(now)
                return
        factor = 0.5 if queueing > SEVERE * target else 1 - 0.05 * max(1.0, queueing / target)
        if self._cut_at_s is None:
            if (
                delivered < FALL * min(self._share, self.rate) and queueing > 2 * target
            ):  # another flow grows at our cost
                factor = min(factor, 0.5)
                self._hold_longer()
            elif now - self._returned_at < TRIED_S:
                self._hold_longer()
            self._share = delivered
        self.rate = max(self.floor, factor * self._used(delivered))
        self._cut_at_s = queueing
        self._wait(2 * self.delays.rtt_s + FILTER_S)

    def _used(self, delivered: float) -> float:
        """Return the rate to cut from: what arrives, unless a process at either end has paused and nothing arrives."""
        return min(self.rate, max(delivered, 0.7 * min(self.rate, self._peak_rate)))

    def _hold_longer(self) -> None:
        self._patience = min(4.0, 2 * self._patience)
        self._returned_at = -math.inf

    def _leave(self, now: float) -> None:
        if now - self._returned_at < TRIED_S:
            self._hold_longer()
        self.phase, self.rate = YIELD, self.floor
        self._strikes, self._cut_at_s, self._calm_s = 0, None, 0.0

    def _yield(self, look: Look, elapsed: float) -> None:
        self.rate = self.floor
        is_calm = self.delays.queueing_s < self.delays.target_s
        self._calm_s = max(0.0, self._calm_s + (elapsed if is_calm else -elapsed))
        if self._calm_s >= self._hold_s:
            self._good_rate = max(self._good_rate, self._best_rate)
            self._begin_return(look.now, 1 / 8)
            self._returned_at = look.now

    def _begin_return(self, now: float, share: float) -> None:
        self.phase = RETURN
        self.rate = max(self.floor, share * self._good_rate)
        self._slow_down_at = now + max(LEAST_BETWEEN_S, SLOW_EVERY * self._slow_s) + self._phase_s
        self._wait(max(self.delays.rtt_s, FILTER_S / 2))
        self._deaf_until = now + 2 * self.delays.rtt_s + FILTER_S

    def _return(self, look: Look, elapsed: float) -> None:
        if self._is_congested():
            self.phase = STEADY
            self._cut(look.now)
        elif look.now >= self._wait_until:
            goal = max(self.floor, 0.95 * self._good_rate)
            self.rate = min(goal, max(self.rate, 1.5 * self.rate if self.rate > goal / 4 else 2 * self.rate))
            self._wait(max(self.delays.rtt_s, FILTER_S / 2))
            if self.rate >= goal:
                self.phase = STEADY
                self._wait(2 * self.delays.rtt_s + 2 * FILTER_S)

    def _slow_down_now(self) -> None:
        self.phase = SLOW_DOWN
        self.rate = max(self.floor, SLOW_SHARE * self._good_rate)
        self._slow_queue_s = math.inf
        self._slow_s = FILTER_S + self.delays.queueing_s + 2 * (self.delays.base_s or 0.0)
        self._wait(self._slow_s)

    def _slow_down(self, look: Look, elapsed: float) -> None:
        self._good_rate = max(
            self._good_rate, self._counts.delivered_rate
        )  # what is under way still comes at full rate
        if look.now < self._wait_until:
            return
        queueing = self.delays.queueing_s
        if queueing > self.delays.target_s:
            if queueing > 0.8 * self._slow_queue_s:  # not our queue: we hardly send
                self._leave(look.now)
            else:
                self._slow_queue_s = queueing
                self._wait(FILTER_S + self.delays.rtt_s)
        else:
            self._begin_return(look.now, 2 / 3)

    def _wait(self, seconds: float) -> None:
        self._wait_until = self._now + seconds
