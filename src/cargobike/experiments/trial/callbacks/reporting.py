"""What all callbacks share: choosing metrics, reporting them, and holding a stop until the framework has ended."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cargobike.core.errors import InvalidInputError, TrialPaused, TrialStopped, nearest
from cargobike.core.values.numbers import NotANumberError, to_float
from cargobike.experiments.trial import context

Metrics = str | Sequence[str] | Mapping[str, str] | None
"""Which metrics to report: one name, several, `{name to report: the framework's name}`, or all with `None`."""


class Reporting:
    """Reports what a framework measured, in the way in which the framework can be ended.

    `trial.report` raises `TrialStopped` where the trial is to end. A framework has a way of its own to end a training,
    in which it closes what it has opened. So the exception is held: `report` returns true, the callback asks its
    framework to end, and `end` raises the exception from the last hook that the framework calls.

    Args:
        owner: The name of the callback, for messages.
        metrics: Which metrics to report.
        noise: Names that are left out when all metrics are reported.
    """

    def __init__(self, owner: str, metrics: Metrics, noise: Iterable[str] = ()) -> None:
        self._owner = owner
        self._chosen = read_metric_names(owner, metrics)
        self._noise = frozenset(noise)
        self._held: TrialStopped | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether the trial is to end as soon as the framework has ended its training."""
        return self._held is not None

    def report(self, measured: Mapping[str, Any], step: int) -> bool:
        """Report the chosen ones of the metrics that a framework has measured; true if its training should end.

        Raises:
            InvalidInputError: If one that was asked for has not been measured; says which have.
        """
        chosen = self._choose(measured)
        if chosen and not self.is_stopping:
            with self._holding():
                context.current().report(chosen, step)
        return self.is_stopping

    def save(self, write: Callable[[Path], object], name: str, step: int) -> bool:
        """Make a checkpoint of the trial out of a file or folder that a framework writes; true if it should end.

        Outside a trial nothing is saved.

        Args:
            write: Writes it to a path, on every rank of a gang.
            name: What the file is called.
            step: Where the training is.
        """
        if not context.is_inside():  # a later call of the same function would go on with it
            return False
        with tempfile.TemporaryDirectory(prefix="cargobike-") as folder:
            path = Path(folder) / name
            write(path)
            return self.save_copy(path, step)

    def save_copy(self, path: Path, step: int) -> bool:
        """Make a checkpoint of the trial out of what a framework has written; true if its training should end."""
        if context.is_inside() and (self._held is None or isinstance(self._held, TrialPaused)):
            with self._holding():
                context.current().checkpoint.save(path, step=step)
        return self.is_stopping

    def follow(self, should_end: bool) -> None:
        """End with the other ranks of a gang, if one of them was asked to."""
        if should_end and self._held is None:
            self._held = TrialStopped(f"trial {context.current().id} was asked to stop in another rank")

    def end(self) -> None:
        """Raise what was held: the framework has ended its training.

        Raises:
            TrialStopped: If the trial is to end here.
        """
        held, self._held = self._held, None
        if held is not None:
            raise held

    @contextlib.contextmanager
    def _holding(self) -> Any:
        try:
            yield
        except TrialStopped as stopped:
            self._held = stopped

    def _choose(self, measured: Mapping[str, Any]) -> dict[str, Any]:
        if self._chosen is None:
            return {name: value for name, value in measured.items() if name not in self._noise and _is_number(value)}
        missing = [theirs for theirs in self._chosen.values() if theirs not in measured]
        if missing:
            there = ", ".join(map(repr, measured)) or "nothing"
            raise InvalidInputError(
                f"{self._owner} is to report {', '.join(map(repr, missing))}; measured here: {there}."
                f"{nearest(missing[0], measured)}"
            )
        return {ours: measured[theirs] for ours, theirs in self._chosen.items()}


def read_metric_names(owner: str, metrics: Metrics) -> dict[str, str] | None:
    """Return the names to report with the framework's names for them, `None` for all.

    Example:
        >>> read_metric_names("KerasReport", ["loss", "accuracy"])
        {'loss': 'loss', 'accuracy': 'accuracy'}
    """
    if metrics is None:
        return None
    if isinstance(metrics, str):
        return {metrics: metrics}
    given: Any = metrics
    names: list[Any] = list(given) if isinstance(given, Iterable) else []
    pairs = dict(given) if isinstance(given, Mapping) else dict(zip(names, names, strict=True))
    parts = [*names, *pairs.values()]
    if not parts or not all(isinstance(part, str) for part in parts):
        raise InvalidInputError(
            f"{owner}({metrics!r}): give the name of a metric, a list of names, or "
            "{'name to report': 'name in the framework'}; nothing at all reports every metric."
        )
    return pairs


def _is_number(value: object) -> bool:
    try:
        to_float(value)
    except NotANumberError:
        return False
    return True
