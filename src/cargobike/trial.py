"""What a train function may call: report, checkpoint, parameters, rank.

Everything here also works outside an experiment (rank 0 of 1, a temporary directory), so that a train function can be
called and debugged directly.

Example:
    >>> from cargobike import trial
    >>> def train(lr):
    ...     for epoch in range(3):
    ...         trial.report(accuracy=0.5 + lr * epoch, step=epoch)
    ...     return 0.5 + lr * epoch
    >>> train(lr=0.1)
    0.7
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from cargobike.core.errors import InvalidInputError, TrialPaused, TrialStopped, nearest
from cargobike.core.running import member
from cargobike.core.values.numbers import read_reported

if TYPE_CHECKING:
    from cargobike.experiments.trial.checkpoints.checkpoint import Checkpoints
    from cargobike.experiments.trial.context import Context
    from cargobike.experiments.trial.models import TrialModels
    from cargobike.training.collectives import Operation

__all__ = ["TrialPaused", "TrialStopped", "all_reduce", "artifact", "barrier", "current", "report"]

id: str
"""The trial's name, such as `0003`."""
number: int
"""The trial's position in the experiment."""
attempt: int
"""How often the trial has been started, this time included."""
params: Mapping[str, Any]
"""The hyperparameters, read-only."""
seed: int
"""The trial's own seed; `random`, NumPy and PyTorch have been seeded with it."""
rank: int
"""The number of this worker among those that run the trial together, from 0."""
local_rank: int
"""The number of this worker among those on this machine, from 0."""
world_size: int
"""How many workers run the trial together."""
is_distributed: bool
"""Whether several workers run the trial together."""
role: str
"""What this process does in its gang: `worker`, or what TensorFlow calls it."""
logdir: Path
"""Where to write TensorBoard files; made when first asked for."""
checkpoint: Checkpoints
"""The trial's checkpoints: `save(state)` and `load()`."""
model: TrialModels
"""Keeps models: `save(name, model, …)`; each is registered when the trial has completed."""
should_stop: bool
"""Whether the trial was asked to stop: for loops that want to end by themselves."""

_OF_THE_MEMBER = ("rank", "local_rank", "world_size", "role")
_ATTRIBUTES = (
    *_OF_THE_MEMBER,
    "id",
    "number",
    "attempt",
    "params",
    "seed",
    "logdir",
    "checkpoint",
    "model",
    "should_stop",
)

_find: Callable[[], Context] | None = None


def current() -> Context:
    """Return what surrounds the train function that runs here; outside an experiment it stands for one."""
    global _find
    if _find is None:
        # Not at the top: a program that launches an experiment imports this module for its train function, calls
        # nothing in it, and would wait.
        from cargobike.experiments.trial.context import current as find  # noqa: PLC0415

        _find = find
    return _find()


def report(*given: Mapping[str, Any], step: int | None = None, **metrics: Any) -> None:
    """Report metrics at a step; returns at once, except where the optimizer wants to decide.

    Args:
        *given: A dict of metrics, instead of or besides those given by name.
        step: Epoch or step number, of 64 bits; counts up by itself when left out.
        **metrics: Named numbers; NumPy and PyTorch scalars are fine.

    Raises:
        TrialStopped: If the trial should end here. Do not catch it; `finally` blocks run.
        InvalidInputError: If nothing is given, something is no number or has no name, or all of it takes more than
            1 MiB.
    """
    reported = read_reported(given, metrics) if given else metrics
    if not reported:
        raise InvalidInputError(
            "report was given no metric. Name at least one, and the step: report(loss=0.3, step=2)."
        )
    current().report(reported, step)


def artifact(path: Any = None, name: str | None = None, *, text: str | None = None) -> Path:
    """Keep something to look at with the trial, and return where its file lies; the trial's page shows it.

    What the function writes into its working directory is kept anyway.

    Args:
        path: A file or folder, by its path; or an image (PIL, an array or tensor of pixels) or a figure of Matplotlib,
            which become PNG; or a table (a list of dicts, a DataFrame, an Arrow table), which becomes CSV; or a dict of
            plain values, which becomes JSON.
        name: A name for the file, such as `"plots/loss.png"`; by default its own, or one that says what it is.
        text: A text to keep, instead.

    Raises:
        InvalidInputError: If there is no such file, it is nothing that can be kept, or the name leads elsewhere.

    Example:
        >>> artifact([{"word": "bike", "count": 3}], "words").name
        'words.csv'
    """
    return current().artifact(path, name, text=text)


@overload
def all_reduce(value: Mapping[str, Any], op: Operation = "mean", *, weight: float = 1.0) -> dict[str, float]: ...
@overload
def all_reduce(value: Any, op: Operation = "mean", *, weight: float = 1.0) -> float: ...
def all_reduce(value: Any, op: Operation = "mean", *, weight: float = 1.0) -> float | dict[str, float]:
    """Combine a number of every rank into one that all of them get; every rank must call it.

    Args:
        value: A number, or a dict of named numbers; NumPy and PyTorch scalars are fine.
        op: `"mean"`, `"sum"`, `"min"` or `"max"`.
        weight: How much this rank's number counts in the mean: the number of examples it was measured on, if ranks
            have different numbers of them.

    Example:
        >>> all_reduce(0.5)
        0.5
    """
    from cargobike.training import collectives  # noqa: PLC0415 - only ranks that train together need it

    combined: float | dict[str, float] = collectives.all_reduce(value, op, weight=weight)
    return combined


def barrier() -> None:
    """Wait until every rank of the trial is here; if one never comes, the error names it."""
    from cargobike.training import collectives  # noqa: PLC0415 - only ranks that train together need it

    collectives.barrier("trial.barrier")


def __getattr__(name: str) -> Any:
    if name in _OF_THE_MEMBER:
        return getattr(member.current(), name)
    if name in _ATTRIBUTES:
        return getattr(current(), name)
    if name == "is_distributed":
        return member.current().world_size > 1
    raise AttributeError(f"cargobike.trial has no {name!r}.{nearest(name, [*_ATTRIBUTES, *__all__])}")


def __dir__() -> list[str]:
    return [*_ATTRIBUTES, *__all__, "is_distributed"]
