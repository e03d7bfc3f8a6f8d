"""How fast trials end, and when the last one will have ended."""

from __future__ import annotations

from collections import deque

_SPACING_S = 0.25
_SAMPLES = 240
_SPAN_S = 10.0
_TRIALS = 16


class Pace:
    """Estimates a rate from a sliding window of recent endings.

    The window holds at least ten seconds, sixteen endings and two for each trial in flight (or all there
    are), so that the figure is steady both for thousands of trials a second and for one trial an hour. Memory
    and the cost of an ending are constant.
    """

    def __init__(self) -> None:
        self._ended = 0
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES)
        self._last_at = 0.0

    def begin(self, at: float) -> None:
        """Start the clock: the first trial has been handed out."""
        self._samples.append((at, 0))
        self._last_at = at

    def count(self, at: float) -> None:
        """Count one ending."""
        if not self._samples:
            self.begin(at)
        self._ended += 1
        self._last_at = max(at, self._last_at)
        if len(self._samples) > 1 and at - self._samples[-2][0] < _SPACING_S:
            self._samples.pop()
        self._samples.append((at, self._ended))

    def rate_per_s(self, now_s: float, *, in_flight: int) -> float | None:
        """Return recent endings per second, `None` before the first one.

        Between two endings the figure stays as it is until it could not be reached any more even if all trials in
        flight ended now: a search in batches does not seem to slow down before each batch ends, a stuck one does.
        """
        since_s, before = self._window(now_s, max(_TRIALS, 2 * in_flight))
        recent = self._ended - before
        if recent <= 0:
            return None
        measured_s = max(self._last_at - since_s, 1e-3)
        waited_s = max(now_s - since_s, 1e-3)
        return min(recent / measured_s, (recent + max(1, in_flight)) / waited_s)

    def eta_s(self, now_s: float, *, remaining: int, in_flight: int) -> float | None:
        """Return the estimated seconds until `remaining` more trials have ended."""
        rate_per_s = self.rate_per_s(now_s, in_flight=in_flight)
        if rate_per_s is None:
            return None
        # Trials in flight have made progress since the last ending: most of it is subtracted, but never all.
        credit_s = min(now_s - self._last_at, 0.9 * min(remaining, max(1, in_flight)) / rate_per_s)
        return max(0.0, remaining / rate_per_s - max(0.0, credit_s))

    def _window(self, now_s: float, trials: int) -> tuple[float, int]:
        """Return when the window begins, and how many trials had ended then."""
        start = (now_s, self._ended)
        for at, ended in reversed(self._samples):
            start = (at, ended)
            if now_s - at >= _SPAN_S and self._ended - ended >= trials:
                break
        return start
