"""Calls of our own inside a pipeline: made in the driver's process, once.

The intent is in the journal before the call is made, with a token that what it makes records. If the driver is killed
in between, the call's `recover` finds by that token what it made, or goes on with what it began.
"""

from __future__ import annotations

import inspect
import resource
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from cargobike.core.errors import CargobikeError, GateError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.lazy import load
from cargobike.core.registering.steps import OwnCall, stepping
from cargobike.experiments.trial.failure import describe_exception
from cargobike.pipelines.driving import events
from cargobike.pipelines.driving.clock import Clock
from cargobike.pipelines.driving.endings import Failures
from cargobike.pipelines.driving.events import Options, Outcome
from cargobike.pipelines.driving.interrupts import Interrupts
from cargobike.pipelines.facts import StepAsked, StepKind
from cargobike.pipelines.record import RunRecord
from cargobike.pipelines.values import passing
from cargobike.pipelines.values.keeping import keep
from cargobike.pipelines.values.value import Value


class _Drives(Protocol):
    """What calls of our own need of the driver."""

    record: RunRecord
    clock: Clock
    project: ProjectFolder
    interrupts: Interrupts
    lock: threading.RLock
    failures: Failures

    def next_number(self) -> int: ...

    def happen(self, event: events.Event) -> None: ...


class OwnCalls:
    """The calls of our own that a run makes.

    Args:
        driver: The run's driver.
    """

    def __init__(self, driver: _Drives) -> None:
        self._driver = driver
        self.to_make: set[int] = set()
        self.to_recover: set[int] = set()

    def make(self, call: OwnCall, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> int:
        """Make a call unless it was made before; returns the number of its step, which is then at its end."""
        driver = self._driver
        args = passing.resolved(args, self._value_of)
        kwargs = passing.resolved(dict(kwargs), self._value_of)
        inputs = passing.describe(_signature(function), args, kwargs, call.name, stays_here=True)
        with driver.interrupts.whole(), driver.lock:
            number = driver.next_number()
            ask = StepAsked(
                at=driver.clock.now(),
                step=number,
                name=call.name,
                kind=StepKind.OWN,
                inputs=inputs.described,
                digest=inputs.digest,
            )
            driver.happen(events.Asked(ask, Options()))
        if number in self.to_recover:
            self.to_recover.discard(number)
            self._recover(number, call, args, kwargs)
        if number in self.to_make:
            self.to_make.discard(number)
            self._call(number, function, args, kwargs)
        return number

    def _value_of(self, promise: Any) -> Any:
        return promise.result()

    def _recover(self, number: int, call: OwnCall, args: Any, kwargs: Any) -> None:
        """Find what the call of a driver that died has made; if it made nothing, it is made again."""
        driver = self._driver
        found = None
        if call.recover:
            token = driver.record.steps[number].token
            with stepping(None, token):
                found = load(call.recover)(token, driver.project, *args, **kwargs)
        outcome = None if found is None else Outcome(ok=True, result=self._kept(number, found))
        with driver.interrupts.whole(), driver.lock:
            driver.happen(events.Recovered(driver.clock.now(), number, outcome))

    def _call(self, number: int, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        driver = self._driver
        step = driver.record.steps[number]
        began_at, cpu_before = time.monotonic(), _cpu_s()
        error: Exception | None = None
        try:
            with stepping(None, step.token):
                outcome = Outcome(ok=True, result=self._kept(number, function(*args, **kwargs)))
        except Exception as raised:  # noqa: BLE001 - it is recorded, and raised again by the one who waits
            error = raised
            outcome = Outcome(
                ok=False,
                error=describe_exception(raised, "")[0],
                failure=self._kept_failure(number, raised),
                refused=isinstance(raised, GateError),
            )
        outcome = Outcome(
            ok=outcome.ok,
            result=outcome.result,
            error=outcome.error,
            failure=outcome.failure,
            seconds=time.monotonic() - began_at,
            cpu_s=_cpu_s() - cpu_before,
            peak_memory_bytes=0,
            final=True,
            refused=outcome.refused,
        )
        with driver.interrupts.whole(), driver.lock:
            driver.happen(events.Ended(driver.clock.now(), number, step.attempt, outcome))
        if error is not None:
            driver.failures.add(error, number)
            raise error

    def _kept(self, number: int, value: Any) -> Value:
        folder = self._driver.record.folder
        attempt = self._driver.record.steps[number].attempt
        return keep(value, folder.root, f"{folder.step_place(number)}/result-{attempt}")

    def _kept_failure(self, number: int, error: Exception) -> Value | None:
        folder = self._driver.record.folder
        attempt = self._driver.record.steps[number].attempt
        try:
            return keep(error, folder.root, f"{folder.step_place(number)}/failure-{attempt}")
        except CargobikeError:
            return None


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
