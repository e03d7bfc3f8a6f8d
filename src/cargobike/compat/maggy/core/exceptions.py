"""Maggy's errors, under their names."""

from __future__ import annotations

from cargobike.core.errors import InvalidInputError, TrialStopped

__all__ = [
    "BadArgumentsError",
    "BroadcastMetricTypeError",
    "BroadcastStepTypeError",
    "BroadcastStepValueError",
    "EarlyStopException",
    "MetricTypeError",
    "NotSupportedError",
    "ReturnTypeError",
]


class EarlyStopException(TrialStopped):
    """Raised by `reporter.broadcast` where a trial is to stop; like our own, no `except Exception` swallows it.

    Args:
        metric: What was broadcast last.
    """

    def __init__(self, metric: float) -> None:
        super().__init__(f"the trial is to stop here; it had broadcast {metric!r}")
        self.metric = metric


class NotSupportedError(InvalidInputError):
    """Something that Maggy knew, or might have known, and that is not there.

    Args:
        category: What kind of thing it is.
        value: What was given.
        suggestion: What to do instead.
    """

    def __init__(self, category: str, value: object, suggestion: str = "") -> None:
        super().__init__(f"({category}: {value}) is not supported. {suggestion}")


class BadArgumentsError(InvalidInputError):
    """Arguments that do not go together.

    Args:
        callable: What was called.
        suggestion: What to do instead.
    """

    def __init__(self, callable: str, suggestion: str = "") -> None:
        super().__init__(f"{callable} was called using incompatible arguments. {suggestion}")


class ReturnTypeError(InvalidInputError, TypeError):
    """A train function returned neither a number nor a dict with one."""


class MetricTypeError(InvalidInputError, TypeError):
    """What a train function returned as its metric is no number."""


class BroadcastMetricTypeError(InvalidInputError, TypeError):
    """What was broadcast is no number."""


class BroadcastStepTypeError(InvalidInputError, TypeError):
    """The step of a broadcast is no whole number."""


class BroadcastStepValueError(InvalidInputError):
    """The step of a broadcast is lower than the one before."""
