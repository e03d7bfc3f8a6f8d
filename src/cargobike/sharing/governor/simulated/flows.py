"""Flows that send through a simulated link: Reno and CUBIC, and ours under the governor."""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass

from cargobike.sharing.governor.controller import Controller, Look

MSS = 1448


class Flow(ABC):
    """A sender. It is asked at each step how much it sends, and is told what was confirmed and what was lost."""

    def __init__(self, begins_s: float = 0.0, ends_s: float = math.inf) -> None:
        self.begins_s = begins_s
        self.ends_s = ends_s
        self.delivered = 0.0

    def is_on(self, now: float) -> bool:
        """Tell whether the flow has something to send."""
        return self.begins_s <= now < self.ends_s

    @abstractmethod
    def send(self, now: float, step_s: float) -> float:
        """Return the bytes that leave in this step."""

    @abstractmethod
    def confirm(self, now: float, count: float, rtt_s: float) -> None:
        """Take the news that bytes have arrived."""

    @abstractmethod
    def lose(self, now: float, count: float, rtt_s: float) -> None:
        """Take the news that bytes were lost."""


class Round:
    """One round trip of a flow: from a packet to the confirmation of it."""

    SAMPLES = 8
    """Confirmations that are looked at before a judgement; one comes for two packets."""

    def __init__(self) -> None:
        self._ends = self._count = 0.0
        self._least_s = math.inf

    def least_rtt(self, count: float, rtt_s: float, sent: float, in_flight: float) -> float | None:
        """Take a confirmation; return the shortest round trip of this round, once there were enough."""
        if sent - in_flight > self._ends:
            self._ends, self._count, self._least_s = sent, 0.0, math.inf
        self._count += count
        self._least_s = min(self._least_s, rtt_s)
        return self._least_s if self._count >= 2 * self.SAMPLES * MSS else None


class Tcp(Flow):
    """A flow with a window: slow start, then what its kind does; one cut in each round trip, whatever was lost."""

    def __init__(self, begins_s: float = 0.0, ends_s: float = math.inf) -> None:
        super().__init__(begins_s, ends_s)
        self.window = 10.0 * MSS
        self.is_starting = True
        self._in_flight = 0.0
        self._cut_at = -math.inf
        self._least_rtt = math.inf
        self._sent = 0.0
        self._round = Round()

    def send(self, now: float, step_s: float) -> float:
        """Send what the window allows."""
        count = max(0.0, self.window - self._in_flight)
        self._in_flight += count
        self._sent += count
        return count

    def confirm(self, now: float, count: float, rtt_s: float) -> None:
        """Open the window."""
        self._in_flight -= count
        self.delivered += count
        self._least_rtt = min(self._least_rtt, rtt_s)
        if self.is_starting:
            self.window += count
            if self.ends_start(count, rtt_s):
                self.is_starting = False
                self.avoid(now, 0.0, rtt_s, begins=True)
        else:
            self.avoid(now, count, rtt_s)

    def ends_start(self, count: float, rtt_s: float) -> bool:
        """Tell whether a slow start ends before a packet is lost."""
        return False

    def lose(self, now: float, count: float, rtt_s: float) -> None:
        """Cut the window, once in a round trip."""
        self._in_flight -= count
        if now - self._cut_at > rtt_s:
            self._cut_at = now
            self.is_starting = False
            self.cut(now)

    @abstractmethod
    def avoid(self, now: float, count: float, rtt_s: float, *, begins: bool = False) -> None:
        """Open the window after the slow start."""

    @abstractmethod
    def cut(self, now: float) -> None:
        """Close the window after a loss."""


class Reno(Tcp):
    """One packet more in each round trip, half the window after a loss."""

    def avoid(self, now: float, count: float, rtt_s: float, *, begins: bool = False) -> None:
        """Add a packet for each window that was confirmed."""
        self.window += MSS * count / self.window

    def cut(self, now: float) -> None:
        """Halve the window."""
        self.window = max(2 * MSS, self.window / 2)


class Cubic(Tcp):
    """RFC 9438: a cubic curve through the last window that was too large, and never slower than Reno would be.

    Its start ends as in Linux (HyStart), long before a deep queue is full: when the shortest round trip of a round is
    longer than the shortest of all.
    """

    def __init__(self, begins_s: float = 0.0, ends_s: float = math.inf) -> None:
        super().__init__(begins_s, ends_s)
        self._peak = 0.0
        self._epoch = 0.0
        self._like_reno = 0.0

    def ends_start(self, count: float, rtt_s: float) -> bool:
        """Look at the first confirmations of each round, as HyStart does by delay."""
        least = self._round.least_rtt(count, rtt_s, self._sent, self._in_flight)
        slack = min(0.016, max(0.004, self._least_rtt / 8))
        return self.window > 16 * MSS and least is not None and least > self._least_rtt + slack

    def avoid(self, now: float, count: float, rtt_s: float, *, begins: bool = False) -> None:
        """Follow the curve."""
        if begins:
            self._peak, self._epoch, self._like_reno = self.window, now, self.window
            return
        self._like_reno += 0.53 * MSS * count / self.window
        reach = (self._peak * 0.3 / MSS / 0.4) ** (1 / 3) if self.window < self._peak else 0.0
        goal = MSS * 0.4 * (now - self._epoch + rtt_s - reach) ** 3 + self._peak
        if goal > self.window:
            self.window += min(0.5 * count, (goal - self.window) * count / self.window)
        self.window = max(self.window, self._like_reno)

    def cut(self, now: float) -> None:
        """Remember the window, and keep 0.7 of it."""
        self._peak = self.window if self.window >= self._peak else 0.85 * self.window
        self.window = max(2 * MSS, 0.7 * self.window)
        self._epoch, self._like_reno = now, self.window


@dataclass(frozen=True, slots=True)
class Noise:
    """What busy processes do to measured round trips: some more for each sample, and now and then a pause."""

    usual_s: float = 0.0
    pause_s: float = 0.0
    pauses_in_s: float = 0.0


class Ours(Flow):
    """A transfer under the governor: it sends at the rate that the controller allows, and repeats what was lost."""

    def __init__(
        self,
        begins_s: float = 0.0,
        ends_s: float = math.inf,
        *,
        noise: Noise | None = None,
        seed: int = 0,
        tick_s: float = 0.02,
    ) -> None:
        super().__init__(begins_s, ends_s)
        self.random = random.Random(seed)
        self.controller = Controller(phase_s=self.random.uniform(0, 2))
        self.phases: list[tuple[float, str]] = []
        self._noise = noise or Noise()
        self._tick_s = tick_s
        self._rate = self.controller.rate
        self._looked_at = -math.inf
        self._rtt_s: float | None = None
        self._is_fresh = False
        self._paused_until = -math.inf
        self._delivered = self._sent = self._lost = 0.0

    def send(self, now: float, step_s: float) -> float:
        """Send at the rate of now; look at what has come back in each tick."""
        if now - self._looked_at >= self._tick_s - 1e-9:
            self._looked_at = now
            self._look(now)
        self._sent += self._rate * step_s
        return self._rate * step_s

    def _look(self, now: float) -> None:
        look = Look(
            now=now,
            rtt_s=self._rtt_s if self._is_fresh else None,
            delivered=round(self._delivered),
            segments=round(self._sent / MSS),
            repeated=round(self._lost / MSS),
        )
        self._rate = self.controller.observe(look)
        self._delivered = self._sent = 0.0
        self._lost -= look.repeated * MSS
        self._is_fresh = False
        if not self.phases or self.phases[-1][1] != self.controller.phase:
            self.phases.append((now, self.controller.phase))

    def confirm(self, now: float, count: float, rtt_s: float) -> None:
        """Smooth round trips as the kernel does: an eighth of each, two packets to a confirmation."""
        self.delivered += count
        self._delivered += count
        sample = rtt_s + self._noise_now(now)
        weight = 1 - (7 / 8) ** max(0.2, count / MSS / 2)
        self._rtt_s = sample if self._rtt_s is None else self._rtt_s + weight * (sample - self._rtt_s)
        self._is_fresh = True

    def _noise_now(self, now: float) -> float:
        if self._noise.pauses_in_s and self.random.random() < 0.001 * self._noise.pauses_in_s:
            self._paused_until = now + self._noise.pause_s
        pause = max(0.0, self._paused_until - now)
        return pause + self.random.expovariate(1 / self._noise.usual_s) if self._noise.usual_s else pause

    def lose(self, now: float, count: float, rtt_s: float) -> None:
        """Count what has to be sent again; it goes with the rate."""
        self._lost += count
