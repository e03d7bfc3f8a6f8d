"""What figures are drawn from: an experiment by a metric or at a step, and the model that several figures share."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from cargobike.analysis.axes import axes_of
from cargobike.analysis.importance import Importance, importance_of
from cargobike.analysis.model import FEWEST_TRIALS, Model, fit
from cargobike.analysis.scores import common_step, goodness_of, scored, thinned
from cargobike.analysis.views import seen_at, seen_by
from cargobike.core.errors import InvalidInputError
from cargobike.core.record import ExperimentRecord
from cargobike.core.visible import visible

ENOUGH_COMPLETED: Final = 0.3
"""With fewer completed trials than this share, parameters are compared by an earlier step that most trials reached."""
MOST_LEARNED: Final = 2500
"""A model learns from so many trials at most, the best and an even selection: more would not change what it says."""
_MOST_KEPT: Final = 8


@dataclass(frozen=True, slots=True)
class Learned:
    """A model of the score, and how much each parameter matters by it."""

    model: Model
    importance: Importance

    @property
    def order(self) -> list[str]:
        """The parameters, the most important first."""
        return list(self.importance.main)


class FigureSource:
    """One experiment to draw figures of; it must not change meanwhile, because what was learned is kept.

    Attributes:
        whole: The experiment with all of its trials.
        record: The experiment without those that people have hidden.
        hidden_trials: The numbers of those, in order.
    """

    def __init__(self, record: ExperimentRecord, hidden: Collection[int] = ()) -> None:
        self.whole = record
        self.record = visible(record, hidden)
        self.hidden_trials = tuple(sorted(number for number in hidden if number in record.trials))
        self._learned: dict[tuple[str | None, int | None], Learned | None] = {}

    @property
    def hidden(self) -> int:
        """How many trials are left out."""
        return len(self.hidden_trials)

    @cached_property
    def varying(self) -> Sequence[str]:
        """The parameters that have more than one value."""
        return [axis.name for axis in axes_of(self.record)] if len(self.record.trials) > 1 else []

    @cached_property
    def early_step(self) -> int | None:
        """The step by which parameters are compared because too few trials completed; `None` if enough did."""
        seen = seen_by(self.record)
        if len(scored(seen)) >= ENOUGH_COMPLETED * len(seen.trials):
            return None
        return common_step(seen, FEWEST_TRIALS)

    def compared(self, metric: str | None = None, step: int | None = None) -> ExperimentRecord:
        """Return the experiment by the metric and the step asked for; without either, by `early_step` if there is one.

        Raises:
            InvalidInputError: If there is no such metric.
        """
        if metric is None and step is None:
            step = self.early_step
        seen = seen_by(self.record, metric)
        return seen if step is None else seen_at(seen, step)

    def learned(self, metric: str | None = None, step: int | None = None) -> Learned | None:
        """Return what a model says of `compared`, made once; `None` if there is too little to learn from.

        Raises:
            InvalidInputError: If there is no such metric.
        """
        key = metric, step
        if key not in self._learned:
            if len(self._learned) >= _MOST_KEPT:
                self._learned.clear()
            self._learned[key] = _learn(self.compared(metric, step))
        return self._learned[key]


def _learn(record: ExperimentRecord) -> Learned | None:
    try:
        model = fit(_fewer(record))
    except InvalidInputError:
        return None
    return Learned(model, importance_of(model))


def _fewer(record: ExperimentRecord) -> ExperimentRecord:
    """Return the experiment with as many trials as a model needs."""
    trials = thinned(scored(record), MOST_LEARNED, goodness_of(record))
    if len(trials) < MOST_LEARNED:
        return record
    fewer = dataclasses.replace(record, trials={trial.number: trial for trial in trials})
    fewer.best = record.best
    return fewer
