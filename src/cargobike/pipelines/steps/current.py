"""Which run makes the calls of this thread, and what a step asks of it."""

from __future__ import annotations

import contextlib
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.steps import Stepper, stepping
from cargobike.pipelines.driving.events import Options
from cargobike.pipelines.steps.result import StepResult
from cargobike.pipelines.values.pickling import homes


class Askable(Protocol):
    """A step, as the driver of a run sees it."""

    name: str
    function: Callable[..., Any]
    options: Options
    signature: inspect.Signature | None

    @property
    def place(self) -> str:
        """Where its function can be found again; empty if it is not at the top of a file."""
        ...


class Drives(Stepper, Protocol):
    """The driver of a run."""

    def ask(self, step: Askable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> StepResult:
        """Ask for a step; returns at once."""
        ...

    @property
    def cause(self) -> dict[str, Any]:
        """What set the run off."""
        ...

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...


_driver: ContextVar[Drives | None] = ContextVar("cargobike_run", default=None)
_driving: dict[int, int] = {}
"""The process and the thread that a pipeline runs in."""


@contextlib.contextmanager
def driving(driver: Drives, home: str) -> Iterator[None]:
    """Let a run make the calls of steps, and of our own, inside; `home` is the module of the pipeline."""
    before = _driver.set(driver)
    _driving[os.getpid()] = threading.get_ident()
    homes.append(home)
    try:
        with stepping(driver):
            yield
    finally:
        _driver.reset(before)
        _driving.pop(os.getpid(), None)
        homes.remove(home)


def current_driver() -> Drives | None:
    """Return the run that makes the calls of this thread.

    Raises:
        InvalidInputError: If a pipeline runs in another thread of this process: the order of its steps would change
            from one time to the next.
    """
    driver = _driver.get()
    thread = _driving.get(os.getpid())
    if driver is None and thread is not None and thread != threading.get_ident():
        raise InvalidInputError(
            "A step was called in a thread that a pipeline started. Its steps have numbers in the order in which they "
            "are called, which threads change from one time to the next. Call it in the pipeline's own thread: it "
            "returns at once, and steps run beside each other by themselves."
        )
    return driver
