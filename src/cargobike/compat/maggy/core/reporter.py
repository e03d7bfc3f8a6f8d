"""Maggy's reporter, over our own reports."""

from __future__ import annotations

import datetime
import sys

from cargobike import trial
from cargobike.compat.maggy.core.exceptions import (
    BroadcastMetricTypeError,
    BroadcastStepTypeError,
    BroadcastStepValueError,
    EarlyStopException,
)
from cargobike.compat.noticing import notice
from cargobike.core.errors import TrialPaused, TrialStopped
from cargobike.core.values.numbers import NotANumberError, read_whole, to_float

__all__ = ["Reporter"]


class Reporter:
    """What a train function with a parameter `reporter` gets.

    Args:
        metric: What the search calls the number that it looks at.
        trial_id: The trial's id, as Maggy would have called it.
    """

    def __init__(self, metric: str = "metric", trial_id: str = "") -> None:
        self.metric: float | None = None
        self.step = -1
        self.trial_id = trial_id
        self._name = metric

    def broadcast(self, metric: float, step: int | None = None) -> None:
        """Report how good the model is by now.

        Args:
            metric: A number.
            step: The epoch or batch, which must not fall; counted on if left out.

        Raises:
            EarlyStopException: If the trial is to stop here.
        """
        notice("maggy.core.reporter.Reporter.broadcast")
        try:
            value = to_float(metric)
        except NotANumberError as error:
            raise BroadcastMetricTypeError(f"broadcast takes a number. {error}") from None
        number = self._next(metric, step)
        self.step, self.metric = number, value
        try:
            trial.current().report({self._name: value}, number)
        except TrialPaused:
            raise
        except TrialStopped as stopped:
            raise EarlyStopException(value) from stopped

    def _next(self, metric: float, step: object) -> int:
        if step is None:
            return self.step + 1
        try:
            number = read_whole(step)
        except (TypeError, ValueError) as error:
            raise BroadcastStepTypeError(f"{metric!r} was broadcast in step {step!r}: {error}") from None
        if number < self.step:
            raise BroadcastStepValueError(
                f"{metric!r} was broadcast in step {number}, after step {self.step}; steps must rise."
            )
        return number

    def log(self, log_msg: object, jupyter: bool = False) -> None:
        """Print a message, which is kept with the trial.

        Args:
            log_msg: What to say.
            jupyter: Said the notebook to show it; what a trial prints is shown anyway.
        """
        now = "" if jupyter else f"{datetime.datetime.now().isoformat(timespec='seconds')}: "
        sys.stdout.write(f"{now}{log_msg}\n")

    def get_trial_id(self) -> str:
        """Return the trial's id, the one that the result names."""
        return self.trial_id
