"""Stop rules: end running trials that fall behind, next to any optimizer, or a whole search that has what it wants.

A stopped trial has no final value: what it reported last never competes with those that ran to their end.
"""

from __future__ import annotations

import bisect
import itertools
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cargobike.core.asked import Named
from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Curve, Decision, Direction, Trial, TrialState
from cargobike.core.registering.registry import Registry
from cargobike.core.values.kinds import is_number, unfit
from cargobike.search.described import describe, is_whole, restore, settings_of
from cargobike.search.rules.stop_rule import StopRule


class PercentileRule:
    """Stops a trial whose best value so far is worse than that of most others at the same step.

    It is compared with every trial that got as far, running, paused and stopped ones included, by the best that each
    had reported up to that step. Values that are no finite numbers count as the worst.

    Args:
        percentile: How many of the trials, in percent, may go on: `25` stops all but the best quarter.
        warmup_steps: No trial is stopped before this step.
        min_trials: How many others must have got as far.
        interval: Decide once in so many steps.

    Raises:
        InvalidInputError: If arguments cannot be used; lists all mistakes.
    """

    def __init__(
        self, percentile: float = 25.0, *, warmup_steps: int = 1, min_trials: int = 5, interval: int = 1
    ) -> None:
        mistakes = unfit(
            ("percentile", percentile, lambda number: 0 < number < 100, "give a number between 0 and 100"),
            ("warmup_steps", warmup_steps, lambda number: number >= 0, "give 0 or more"),
            ("min_trials", min_trials, lambda number: number >= 1, "give 1 or more"),
            ("interval", interval, lambda number: number >= 1, "give 1 or more"),
        )
        if mistakes:
            raise InvalidInputError(f"This {type(self).__name__} cannot be used:", mistakes)
        self.percentile = percentile
        self.warmup_steps = warmup_steps
        self.min_trials = min_trials
        self.interval = interval
        self._progresses: dict[int, _Progress] = {}

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        """Stop the trial if it has fallen behind."""
        if not self._is_due(trial, step):
            return Decision.CONTINUE
        own = _Progress(trial.curve, direction).best_at(step)
        known = sorted(self._bests(trials, step, direction, but=trial.number))
        if own is None or len(known) < self.min_trials:
            return Decision.CONTINUE
        return Decision.STOP if own > _quantile(known, self.percentile / 100) else Decision.CONTINUE

    def _is_due(self, trial: Trial, step: int) -> bool:
        if step < self.warmup_steps:
            return False
        before = max((other for other in trial.curve.steps if other < step), default=-1)
        past = (before - self.warmup_steps) // self.interval
        return before < self.warmup_steps or (step - self.warmup_steps) // self.interval > past

    def _bests(self, trials: Iterable[Trial], step: int, direction: Direction, *, but: int) -> Iterator[float]:
        """Yield the best loss up to a step of each other trial that got there."""
        progresses = self._progresses
        for trial in trials:
            curve = trial.curve
            if not curve.steps or curve.steps[-1] < step or trial.number == but:
                continue
            progress = progresses.get(trial.number)
            if progress is None or not progress.is_of(curve, direction):
                progress = progresses[trial.number] = _Progress(curve, direction)
            best = progress.best_at(step)
            if best is not None:
                yield best


class MedianRule(PercentileRule):
    """Stops a trial whose best value so far is worse than the median of the others at the same step.

    Args:
        warmup_steps: No trial is stopped before this step.
        min_trials: How many others must have got as far.
        interval: Decide once in so many steps.
    """

    def __init__(self, *, warmup_steps: int = 1, min_trials: int = 5, interval: int = 1) -> None:
        super().__init__(50.0, warmup_steps=warmup_steps, min_trials=min_trials, interval=interval)


class PatienceRule:
    """Stops a trial that has not improved for some steps, unless it leads.

    The trial with the best value of all is left alone, however long it stands still: stopped, it could not win any
    more.

    Args:
        patience: How many steps without improvement are too many.
        min_delta: By how much a value must be better than all before it to be an improvement.
    """

    def __init__(self, patience: int = 5, *, min_delta: float = 0.0) -> None:
        mistakes = unfit(
            ("patience", patience, lambda number: number >= 1, "give 1 or more"),
            ("min_delta", min_delta, lambda number: number >= 0, "give 0 or more"),
        )
        if mistakes:
            raise InvalidInputError("This PatienceRule cannot be used:", mistakes)
        self.patience = patience
        self.min_delta = min_delta

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        """Stop the trial if it has stood still for too long."""
        best, best_step = math.inf, None
        for at, loss in _losses(trial.curve, direction):
            if best_step is None or loss < best - self.min_delta:
                best, best_step = loss, at
        if best_step is None or step - best_step < self.patience:
            return Decision.CONTINUE
        own = min(loss for _, loss in _losses(trial.curve, direction))
        others = (other for other in trials if other.number != trial.number)
        leads = all(own <= loss for other in others for _, loss in _losses(other.curve, direction))
        return Decision.CONTINUE if leads else Decision.STOP


class TargetReached:
    """Ends the whole search as soon as a trial has completed with a value this good or better.

    Running trials are then stopped. What a trial reports on its way does not count, only what it returns.

    Args:
        value: The target.
    """

    judges_steps = False

    def __init__(self, value: float) -> None:
        if not is_number(value, math.isfinite):
            raise InvalidInputError(f"TargetReached({value!r}): give a finite number to reach.")
        self.value = value

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        """Decide that every trial goes on."""
        return Decision.CONTINUE

    def reason_to_end(self, trial: Trial, direction: Direction) -> str | None:
        """Say why the search may end after this trial, `None` if it may not."""
        if trial.state is not TrialState.COMPLETED or trial.value is None or not math.isfinite(trial.value):
            return None
        reached = trial.value >= self.value if direction == "max" else trial.value <= self.value
        return f"trial {trial.number} reached the target of {self.value:g}" if reached else None


RULES: Final = Registry(
    "stop rule",
    "cargobike.stop_rules",
    {
        "median": "cargobike.search.rules.stop_rules:MedianRule",
        "percentile": "cargobike.search.rules.stop_rules:PercentileRule",
        "patience": "cargobike.search.rules.stop_rules:PatienceRule",
    },
    aliases={"medianrule": "median", "percentilerule": "percentile", "patiencerule": "patience"},
    otherwise="give an object such as TargetReached(0.95)",
)
"""What `early_stop="…"` understands: to add one, add a line."""


_TARGET: Final = "target"
"""What the rule is called that has no default, and therefore cannot be asked for by name."""


def describe_stop_rule(rule: StopRule) -> Named:
    """Return a stop rule as data."""
    name = _TARGET if type(rule) is TargetReached else RULES.own_name_of(type(rule))
    return describe(rule, settings_of(rule), registered_as=name)


def restore_stop_rule(told: Named) -> StopRule:
    """Make one of our rules from what `describe_stop_rule` told.

    Raises:
        InvalidInputError: If there is no such rule, or it has other settings now.
    """
    kind = TargetReached if told.name == _TARGET else RULES.find(told.name)
    try:
        rule: StopRule = restore(kind, told.settings)
    except TypeError as error:
        raise InvalidInputError(f"the stop rule {told} cannot be made: {error}") from error
    return rule


def is_told_whole(rule: StopRule, told: Named) -> bool:
    """Tell whether the description of a rule is all that is needed to make it again."""
    return is_whole(rule, told, restore_stop_rule, describe_stop_rule)


def resolve_stop_rule(given: object) -> StopRule:
    """Return the stop rule that is meant by a name or an object.

    Example:
        >>> resolve_stop_rule("median").percentile
        50.0

    Raises:
        InvalidInputError: If there is no such rule; says which there are.
    """
    rule = RULES.find(given) if isinstance(given, str) else given
    if isinstance(given, str) and callable(rule):
        rule = rule()
    if isinstance(rule, type) or not callable(getattr(rule, "judge", None)):
        raise InvalidInputError(
            f"early_stop={given!r} is not a stop rule; give one of {', '.join(RULES.names())}, or an object with a "
            "method judge(trial, step, trials, direction), such as TargetReached(0.95)."
        )
    return rule  # type: ignore[return-value]  # has the one method that counts


class _Progress:
    """The best loss of a trial after each of its reports; looking one up costs next to nothing."""

    __slots__ = ("_bests", "_curve", "_direction", "_length", "_rewinds", "_steps")

    def __init__(self, curve: Curve, direction: Direction) -> None:
        self._curve, self._direction, self._length, self._rewinds = curve, direction, len(curve), curve.rewinds
        points = list(_losses(curve, direction))
        steps = curve.steps
        if any(left >= right for left, right in itertools.pairwise(steps)):
            # A later attempt has reported a step again: its last word counts.
            points = sorted(dict(points).items())
            steps = array("q", (step for step, _ in points))
        self._steps = steps
        self._bests = array("d", itertools.accumulate((loss for _, loss in points), min))

    def is_of(self, curve: Curve, direction: Direction) -> bool:
        """Tell whether this is still what a curve says."""
        is_same = curve is self._curve and len(curve.steps) == self._length and curve.rewinds == self._rewinds
        return is_same and direction == self._direction

    def best_at(self, step: int) -> float | None:
        """Return the best loss up to a step, `None` if there was no report yet."""
        index = bisect.bisect_right(self._steps, step) - 1
        return self._bests[index] if index >= 0 else None


def _losses(curve: Curve, direction: Direction) -> Iterable[tuple[int, float]]:
    """Turn values into losses: the lower the better; NaN and infinities are the worst."""
    sign = -1.0 if direction == "max" else 1.0
    return ((step, sign * value if math.isfinite(value) else math.inf) for step, value in curve)


def _quantile(ordered: Sequence[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    low = int(position)
    if position == low or not math.isfinite(ordered[low + 1]):
        return ordered[low]
    return ordered[low] + (position - low) * (ordered[low + 1] - ordered[low])
