"""Steps of optimizers: who is told of them, and an optimizer that makes them when its pace says so."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.optim import Optimizer

from cargobike.training.pace import Pace


class StepWatch:
    """Tells others of each step that an optimizer makes."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []
        self._is_ignored = False

    def call(self, listener: Callable[[], None]) -> None:
        """Call a function after each step."""
        self._listeners.append(listener)

    def stepped(self) -> None:
        """Tell of a step."""
        if not self._is_ignored:
            for listener in self._listeners:
                listener()

    @contextlib.contextmanager
    def ignored(self) -> Iterator[None]:
        """Tell of no steps: those that are made here train nothing."""
        self._is_ignored = True
        try:
            yield
        finally:
            self._is_ignored = False


class PacedOptimizer(Optimizer):
    """Lets `step()` and `zero_grad()` of a plain loop pass only where a step is due; all else is the inner optimizer's.

    A subclass of `torch.optim.Optimizer`, so that learning-rate schedulers accept it; parameter groups and state are
    the inner optimizer's own.
    """

    def __init__(self, inner: Optimizer, pace: Pace, after_step: Callable[[], None] | None = None) -> None:
        self.inner = inner
        self.stepped = False
        """Whether the last call of `step` did step: where a scheduler that counts steps is to be advanced."""
        self._pace = pace
        self._after_step = after_step

    def step(self, closure: Any = None) -> Any:
        """Step if a window of micro-batches is complete."""
        correction = self._pace.correction
        self.stepped = self._pace.advance()
        if not self.stepped:
            return None
        if correction != 1.0:
            gradients = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
            torch._foreach_mul_(gradients, correction)
        loss = self.inner.step(closure) if closure is not None else self.inner.step()
        if self._after_step is not None:
            self._after_step()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear gradients, unless they are being summed up."""
        if self._pace.is_empty:
            self.inner.zero_grad(set_to_none=set_to_none)

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override,unused-ignore]
        """The inner optimizer's parameter groups."""
        groups: list[dict[str, Any]] = self.inner.param_groups
        return groups

    @property
    def state(self) -> Any:
        """The inner optimizer's state."""
        return self.inner.state

    @property
    def defaults(self) -> Any:
        """The inner optimizer's defaults."""
        return self.inner.defaults

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group to the inner optimizer."""
        self.inner.add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        """Return the inner optimizer's state."""
        state: dict[str, Any] = self.inner.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Give the inner optimizer a state."""
        self.inner.load_state_dict(state_dict)

    def __getattr__(self, name: str) -> Any:
        if name in ("inner", "_pace", "_after_step"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __repr__(self) -> str:
        return f"PacedOptimizer({self.inner!r}, accumulate={self._pace.accumulate})"
