"""Counts micro-batches: when gradients are summed up, when they are exchanged, and when the optimizer steps."""

from __future__ import annotations

from collections.abc import Callable


class Pace:
    """The rhythm of gradient accumulation, shared by model, optimizer and loader.

    A window is a run of micro-batches whose gradients become one step. `is_boundary` tells, before a micro-batch is
    computed, whether it is the last of its window; the end of an epoch closes a window that is not full.
    """

    def __init__(self, accumulate: int) -> None:
        self.accumulate = accumulate
        self._on_change: Callable[[bool], None] = lambda _: None
        self._position = 0
        self._size = accumulate
        self._remaining: int | None = None

    @property
    def is_boundary(self) -> bool:
        """Whether the next backward pass completes a step."""
        return self._position + 1 >= self._size or self._remaining == 1

    @property
    def is_empty(self) -> bool:
        """Whether no micro-batch of the present window has been computed."""
        return self._position == 0

    @property
    def share(self) -> float:
        """What one micro-batch contributes to the step."""
        return 1.0 / self._size

    @property
    def correction(self) -> float:
        """What the sum is to be multiplied with where a stream ended inside a window."""
        return self._size / (self._position + 1)

    def call_on_change(self, listener: Callable[[bool], None]) -> None:
        """Tell a listener, now and whenever it may have changed, whether the next backward pass completes a step."""
        self._on_change = listener
        listener(self.is_boundary)

    def begin_batch(self, remaining: int | None) -> None:
        """Note that a loader gives out a batch, and how many it has left with this one, if it knows."""
        self._remaining = remaining
        if self._position == 0:
            self._size = self.accumulate if remaining is None else min(self.accumulate, remaining)
        self._on_change(self.is_boundary)

    def advance(self) -> bool:
        """Count one micro-batch; tell whether the optimizer is to step now."""
        steps = self.is_boundary
        if steps:
            self._position, self._size, self._remaining = 0, self.accumulate, None
        else:
            self._position += 1
            if self._remaining is not None:
                self._remaining -= 1
        self._on_change(self.is_boundary)
        return steps
