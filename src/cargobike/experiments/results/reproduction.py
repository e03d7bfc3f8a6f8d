"""What came out when an experiment was run once more: metric by metric, the same or not."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import msgspec

from cargobike.core.facts import Number, pack_number
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Curve, Trial
from cargobike.experiments.reading import curves_of

if TYPE_CHECKING:
    from cargobike.experiments.results.result import Result

Kind = Literal["returned", "reported", "state"]


class MetricComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one trial, then and now.

    Attributes:
        trial: Number of the trial in the original experiment.
        kind: `"returned"` by the train function, or `"reported"` along the way.
        was: The value then; of a reported metric the last one.
        now: The value now, `None` if there is none.
        is_same: Whether it is the same, within the tolerance; of a reported metric at every step.
        largest_difference: How far apart they are, at most.
    """

    trial: int
    metric: str
    kind: Kind
    was: Number | str | None
    now: Number | str | None
    is_same: bool
    largest_difference: Number | None = None


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment that was run again, and what came out.

    Attributes:
        original: Id of the experiment that was repeated.
        id: Id of the repetition, an experiment like any other.
        comparisons: Every metric of every trial that was repeated.
        warnings: What has changed since: packages, hardware, files.
    """

    original: str
    id: str
    comparisons: tuple[MetricComparison, ...]
    warnings: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether every metric is the same as before."""
        return bool(self.comparisons) and all(one.is_same for one in self.comparisons)

    @property
    def differences(self) -> list[MetricComparison]:
        """The metrics that are not the same as before."""
        return [one for one in self.comparisons if not one.is_same]

    @property
    def result(self) -> Result:
        """The result of the repetition."""
        from cargobike.experiments.results.result import find_result  # noqa: PLC0415 - often only `is_same` is asked for

        return find_result(self.id)

    def __str__(self) -> str:
        same = len(self.comparisons) - len(self.differences)
        lines = [f"{self.original} repeated as {self.id}: {same} of {len(self.comparisons)} metrics are the same"]
        lines += [
            f"  trial {one.trial} {one.metric} ({one.kind}): {one.was} then, {one.now} now" for one in self.differences
        ]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


def compare_trials(
    then: tuple[ExperimentRecord, ExperimentFolder],
    now: tuple[ExperimentRecord, ExperimentFolder],
    tolerance: float,
) -> list[MetricComparison]:
    """Compare each trial of a repetition with the one that it repeats."""
    comparisons: list[MetricComparison] = []
    for repeated in now[0].trials.values():
        past = then[0].runs[repeated.info["repeats"]]
        comparisons += _compare_returned(past, repeated, tolerance)
        before, after = _curves(then, past.number), _curves(now, repeated.number)
        for metric in dict.fromkeys([*before, *after]):
            comparisons.append(_compare_curves(past.number, metric, before.get(metric), after.get(metric), tolerance))
    return comparisons


def _curves(experiment: tuple[ExperimentRecord, ExperimentFolder], number: int) -> dict[str, Curve]:
    record, folder = experiment
    return curves_of(folder.journal, record.runs[number], record.attempts.get(number, ()))


def _compare_returned(past: Trial, repeated: Trial, tolerance: float) -> Iterable[MetricComparison]:
    if repeated.state is not past.state:
        yield MetricComparison(
            trial=past.number,
            metric="state",
            kind="state",
            was=past.state.value,
            now=repeated.state.value,
            is_same=False,
        )
        return
    before, after = _returned(past), _returned(repeated)
    for metric in dict.fromkeys([*before, *after]):
        was, now = before.get(metric), after.get(metric)
        difference = None if was is None or now is None else _difference(was, now)
        yield MetricComparison(
            trial=past.number,
            metric=metric,
            kind="returned",
            was=None if was is None else pack_number(was),
            now=None if now is None else pack_number(now),
            is_same=was is not None and now is not None and is_same(was, now, tolerance),
            largest_difference=None if difference is None else pack_number(difference),
        )


def _returned(trial: Trial) -> dict[str, float]:
    if trial.metrics:
        return trial.metrics
    return {} if trial.value is None else {"value": trial.value}


def _compare_curves(
    trial: int, metric: str, before: Curve | None, after: Curve | None, tolerance: float
) -> MetricComparison:
    # The last report counts where an attempt was lost and a step reported again.
    was, now = dict(before or ()), dict(after or ())
    both = [(was[step], now[step]) for step in was if step in now]
    furthest = max((_difference(left, right) for left, right in both), default=None)
    return MetricComparison(
        trial=trial,
        metric=metric,
        kind="reported",
        was=pack_number(before.values[-1]) if before else None,
        now=pack_number(after.values[-1]) if after else None,
        is_same=was.keys() == now.keys() and all(is_same(left, right, tolerance) for left, right in both),
        largest_difference=None if furthest is None else pack_number(furthest),
    )


def is_same(was: float, now: float, tolerance: float) -> bool:
    """Tell whether two numbers are the same, NaN included, or differ by at most this part of them."""
    if was == now or (math.isnan(was) and math.isnan(now)):
        return True
    return math.isfinite(was) and math.isfinite(now) and math.isclose(was, now, rel_tol=tolerance, abs_tol=0.0)


def _difference(was: float, now: float) -> float:
    if was == now or (math.isnan(was) and math.isnan(now)):
        return 0.0
    return abs(was - now) if math.isfinite(was) and math.isfinite(now) else math.inf
