"""Decide how fast a transfer may send, so that it uses what is free and gives way as soon as another flow comes.

The parts are those of LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus), on a rate instead of a window: a fast start until a
queue shows, an increase slower than Reno's, cuts in proportion to the delay, and regular slow-downs that measure the
path without our own queue. Two parts are not in it. A queue that stays although we have cut belongs to another flow,
and so does one that grows faster than we ever rise: then we leave the link to it but for a trickle, which tells us when
it has gone. And we come back so slowly that we see its queue before it loses a packet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from cargobike.sharing.governor import thresholds as by
from cargobike.sharing.governor.delays import FILTER_S, Counts, Delays

START, STEADY, YIELD, RETURN, SLOW_DOWN = "start", "steady", "yield", "return", "slow-down"


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
        phase_s: Up to 2 s; moves slow-downs and returns, so that flows do not slow down, or return, together.
    """

    def __init__(self, phase_s: float = 0.0) -> None:
        self.phase = START
        self.rate = by.FIRST_RATE
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
        self._link_rate = 0.0
        self._troubled_at = -math.inf
        self._deaf_until = self._settled_at = -math.inf
        self._slow_queue_s = math.inf
        self._usual_loss = self._learnt_s = 0.0
        self._claims = False
        self._is_sure = True
        self._left_at = -math.inf
        self._wariness = 1.0

    @property
    def floor(self) -> float:
        """The trickle that is sent while the link is left to others."""
        return min(by.MOST_FLOOR, max(by.LEAST_FLOOR, by.FLOOR_SHARE * self._good_rate))

    @property
    def _target_s(self) -> float:
        """The delay that is a queue."""
        return self.delays.target_s + self._slack_s

    @property
    def _gentle_s(self) -> float:
        """The delay from which on a rate is lowered a little."""
        return by.GENTLE * self.delays.target_s + self._slack_s

    @property
    def _slack_s(self) -> float:
        """How long a confirmation may wait for our next packets, by what is sent: a window may still open."""
        sent = min(self.rate, max(self.floor, self._counts.delivered_rate))
        return min(by.MOST_SLACK_S, by.AT_ONCE * self._mss / sent)

    @property
    def _span_s(self) -> float:
        """How long what is delivered is counted: a round trip, or as long as a queue is looked for."""
        return max(FILTER_S, self.delays.rtt_s)

    @property
    def _hold_s(self) -> float:
        """How long no queue must show until the link counts as free: as long as TCP needs to fill it after a loss."""
        base = self.delays.base_s or 0.0
        window = self._link_rate * base / self._mss
        filled_s = min(window * base / 2, math.cbrt(0.75 * window))  # by Reno, by CUBIC
        if not self._is_sure:
            filled_s = min(filled_s, by.BEGIN_ROUNDS * base)
        return min(by.MOST_HOLD_S, self._patience * max(by.LEAST_HOLD_S, filled_s))

    def observe(self, look: Look) -> float:
        """Return the rate from now on, in bytes a second."""
        elapsed = 0.0 if math.isinf(self._now) else max(0.0, look.now - self._now)
        self._now, self._mss = look.now, max(1, look.mss)
        if look.rtt_s is not None and look.rtt_s > 0:
            self.delays.add(look.now, look.rtt_s)
        self._counts.add(look.now, look.delivered, look.segments, look.repeated, self._span_s)
        self._peak_rate = max(self._counts.delivered_rate, self._peak_rate * math.exp(-elapsed / by.PEAK_S))
        self._link_rate = max(self._counts.delivered_rate, self._link_rate * math.exp(-elapsed / by.LINK_S))
        self._learn_losses(elapsed)
        if self.delays.base_s is not None:
            self._steps[self.phase](look, elapsed)
        return self.rate

    def _start(self, look: Look, elapsed: float) -> None:
        delivered = self._counts.delivered_rate
        if self._is_congested(by.START_SHARE):
            self._good_rate = max(delivered, by.LEAST_FLOOR)
            self._strikes = 0
            self._slow_down_now()
        elif look.has_more and look.now >= self._wait_until:
            grows = delivered > by.STILL_GROWS * self._share
            self._strikes = 0 if grows else self._strikes + 1
            if self.rate <= by.HELD_BACK * max(delivered, by.FIRST_RATE):
                self.rate *= 2
            elif self._strikes >= by.NO_LONGER:  # something else than we holds it back
                self._strikes = 0
                self._good_rate = delivered
                self.rate = max(self.floor, 1.25 * delivered)
                self.phase = STEADY
                self._settled_at = look.now + 2 * self.delays.rtt_s + FILTER_S
            self._share = delivered
            self._wait(max(self.delays.rtt_s, by.STEP_S))

    def _steady(self, look: Look, elapsed: float) -> None:
        if self._is_overrun():
            self._troubled_at = look.now
            self._leave(look.now, is_sure=False)
            return
        if look.now < self._wait_until:
            return
        if self._is_congested():
            self._cut(look.now)
            return
        if self._cut_at_s is not None:  # the queue went away when we cut: this is our share
            self._best_rate = self._share
            self._strikes, self._cut_at_s = 0, None
        if look.now - self._returned_at > by.TRIED_S and self.rate > 0.85 * self._best_rate:
            self._patience = 1.0
        delivered = self._counts.delivered_rate
        self._best_rate = max(self._best_rate, delivered)
        if self.delays.queueing_s > self._gentle_s:
            self._share = max(self._share, delivered)
            self.rate = max(self.floor, self._gentle_factor * self._used(delivered))
            self._wait(2 * self.delays.rtt_s + FILTER_S)
        elif look.has_more:
            self._good_rate += min(1.0, elapsed / 0.3) * (delivered - self._good_rate)
            self.rate += elapsed * self._increase(look.mss)
            self.rate = min(self.rate, max(self.floor, 1.25 * self._peak_rate))
            if look.now >= self._slow_down_at:
                self._slow_down_now()
            elif (
                look.now - self._troubled_at > max(by.QUIET_S, 2 * self._hold_s) and self.rate < 0.85 * self._link_rate
            ):
                rate, self._good_rate = self.rate, self._link_rate
                self._begin_return(look.now, claims=True)
                self._returned_at = self._troubled_at = look.now
                self.rate = rate

    def _learn_losses(self, elapsed: float) -> None:
        """Learn what a path loses by chance: while no queue shows, and no other flow is known."""
        lost, sent = self._counts.lost
        if sent >= by.ENOUGH_SENT and self.phase != YIELD and self.delays.queueing_s < self._gentle_s:
            self._learnt_s += elapsed
            weight = min(1.0, elapsed / min(by.USUAL_S, self._learnt_s)) if elapsed else 0.0
            self._usual_loss += weight * (min(by.LOSS, lost / sent) - self._usual_loss)

    @property
    def _gentle_factor(self) -> float:
        share = self.rate / max(1.0, self._link_rate)
        return 1 - (by.ALONE_CUT if share > by.ALONE else by.LEAST_CUT + by.CUT_OF_SHARE * share)

    def _increase(self, mss: int) -> float:
        """Return by how much the rate may rise in a second: the same for all, so that they become equal."""
        base = self.delays.base_s or 0.0
        reno = mss / max(base, by.RENO_RTT_S) ** 2
        if base > by.LONG_RTT_S:
            reno = max(reno, min(mss / by.LONG_RTT_S**2, by.LONG_RISE * self._link_rate))
        of_link = by.MOST_OF_LINK * self._link_rate if self._link_rate else math.inf
        return min(by.GAIN * reno, of_link, by.MOST_INCREASE * max(self.rate, by.FIRST_RATE))

    def _is_congested(self, share: float = 1.0) -> bool:
        return self._has_lost() or self.delays.queueing_s > share * self._target_s

    def _has_lost(self, least: int = by.LEAST_LOST, share: float = by.LOSS) -> bool:
        lost, sent = self._counts.lost
        return lost >= least and lost > share * sent and self._now >= self._deaf_until

    def _loses_more_than_usual(self) -> bool:
        """Tell whether more is lost than chance explains.

        A line that loses some packets by itself is judged over a longer time: what is lost is sent again in bursts.
        """
        if self._usual_loss < by.LOSSY:
            return self._has_lost(by.FEW_LOST, by.FEW)
        lost, sent = self._counts.lost_lately
        usual = self._usual_loss * sent
        return lost >= by.LEAST_LOST and lost > 2 * usual + 3 * math.sqrt(usual) and self._now >= self._deaf_until

    def _is_overrun(self) -> bool:
        """Tell whether a queue grows that we cannot have made: on a long path we rise slower than that."""
        soon, base = self.delays.soon_s, self.delays.base_s or 0.0
        if base < by.LONG_S or self._link_rate < by.FAST_LINK or soon < self.delays.target_s:
            return False
        if self._now < self._settled_at:  # what our own start has sent too much is still under way
            return False
        own = self._increase(self._mss) / self._link_rate * (base + FILTER_S) * FILTER_S / 2
        least = max(by.OVERRUN * self.delays.target_s, by.OVERRUN_OF_OWN * own)
        return soon - self.delays.queueing_s > self._wariness * least

    def _cut(self, now: float, most: float = 1.0) -> None:
        """Cut the rate by the delay; leave the link if the queue is not ours."""
        queueing, target, delivered = self.delays.queueing_s, self._target_s, self._counts.delivered_rate
        self._troubled_at = now
        if self._cut_at_s is not None and (queueing > 0.75 * self._cut_at_s or queueing > by.SEVERE * target):
            self._strikes += 1 if queueing < by.SEVERE * target else 2
            if self._strikes >= 2:
                self._leave(now)
                return
        factor = min(most, 0.5 if queueing > by.SEVERE * target else 1 - 0.05 * max(1.0, queueing / target))
        if self._cut_at_s is None:
            if (
                delivered < by.FALL * min(self._share, self.rate) and queueing > 2 * target
            ):  # another flow grows at our cost
                factor = min(factor, 0.5)
                self._hold_longer()
            elif now - self._returned_at < by.TRIED_S:
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

    def _leave(self, now: float, *, is_sure: bool = True) -> None:
        """Leave the link to others; if one was only seen to begin, look again once it must have filled the link."""
        self._is_sure, self._left_at = is_sure, now
        if now - self._returned_at < by.TRIED_S:
            self._hold_longer()
        self.phase, self.rate = YIELD, self.floor
        self._strikes, self._cut_at_s, self._calm_s = 0, None, 0.0

    def _yield(self, look: Look, elapsed: float) -> None:
        self.rate = self.floor
        if (
            look.now - self._left_at > 4 * self.delays.rtt_s
            and self.delays.queueing_s > by.SEVERE * self.delays.target_s
        ):
            self._is_sure, self._wariness = True, 1.0
        is_calm = self.delays.queueing_s < by.GENTLE * self.delays.target_s
        self._calm_s = max(0.0, self._calm_s + (elapsed if is_calm else -2 * elapsed))
        if self._calm_s >= self._hold_s * (1 + self._phase_s / 4):
            if not self._is_sure:  # there was no other flow: a process has paused, or a transfer of ours has begun
                self._wariness = min(by.MOST_WARINESS, by.MORE_WARINESS * self._wariness)
            self._good_rate = self._link_rate
            self._begin_return(look.now, claims=True)
            self._returned_at = look.now

    def _begin_return(self, now: float, *, claims: bool) -> None:
        """Go back to a good rate: after a slow-down to most of it at once, else so slowly that a queue is seen."""
        self.phase, self._claims = RETURN, claims
        self.rate = max(self.floor, self._good_rate * (by.CLAIM_FIRST if claims else 2 / 3))
        self._slow_down_at = now + max(by.LEAST_BETWEEN_S, by.SLOW_EVERY * self._slow_s) + self._phase_s
        self._wait(max(self.delays.rtt_s, FILTER_S / 2))
        self._deaf_until = now + 2 * self.delays.rtt_s + FILTER_S

    def _return(self, look: Look, elapsed: float) -> None:
        goal = max(self.floor, 0.95 * self._good_rate)
        if self._claims:
            self._claim(look, elapsed, goal)
        elif self._is_congested():
            self.phase = STEADY
            self._cut(look.now)
        elif look.now >= self._wait_until:
            self.rate = min(goal, max(self.rate, 1.5 * self.rate if self.rate > goal / 4 else 2 * self.rate))
            self._wait(max(self.delays.rtt_s, FILTER_S / 2))
        if self.phase == RETURN and self.rate >= goal:
            self.phase = STEADY
            self._wait(2 * self.delays.rtt_s + 2 * FILTER_S)

    def _claim(self, look: Look, elapsed: float, goal: float) -> None:
        """Rise so slowly that a queue is seen before it is long; where one shows, this is our share for now."""
        if self._loses_more_than_usual():
            self._hold_longer()
            self._leave(look.now)
        elif self.delays.queueing_s > self._gentle_s or self.delays.soon_s > self._target_s:
            self.phase = STEADY
            self._cut(look.now, by.CLAIM_CUT)
        else:
            path_s = (self.delays.base_s or 0.0) + FILTER_S / 2
            pace = min(by.MOST_PACE, 1 + (look.now - self._returned_at) / by.PACE_S)
            self.rate = min(goal, self.rate + elapsed * pace * self._good_rate * by.CLAIM_S / path_s**2)

    def _slow_down_now(self) -> None:
        self.phase = SLOW_DOWN
        self.rate = max(self.floor, by.SLOW_SHARE * self._good_rate)
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
            self._begin_return(look.now, claims=False)

    def _wait(self, seconds: float) -> None:
        self._wait_until = self._now + seconds
