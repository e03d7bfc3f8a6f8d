"""What an ablation says: how much worse the score gets without each component, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cargobike.analysis.scores import objective_name, score_of
from cargobike.analysis.student import t_quantile
from cargobike.core.errors import InvalidInputError
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Direction, Trial, TrialState
from cargobike.core.values.kinds import is_number

_BASELINE = "baseline"


@dataclass(frozen=True)
class Ablated:
    """What happens without one component.

    Attributes:
        component: What was left out; `"baseline"` if nothing.
        changed: The parameters that were changed for that.
        mean: Mean score.
        difference: Mean of score without it minus score of the baseline, over rounds that have both.
        low: Lower end of the difference's confidence interval; `None` with fewer than two rounds.
        high: Upper end.
        rounds: How many rounds the difference is based on.
        failed: How many of its trials failed.
    """

    component: str
    changed: dict[str, Any]
    mean: float | None
    difference: float | None
    low: float | None
    high: float | None
    rounds: int
    failed: int

    @property
    def is_clear(self) -> bool:
        """Whether the confidence interval leaves out zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True)
class AblationTable:
    """An ablation's result: the baseline, and the components by what leaving them out costs, the dearest first."""

    objective: str
    direction: Direction
    confidence: float
    baseline: Ablated
    rows: list[Ablated]

    def __iter__(self) -> Iterator[Ablated]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        better = "more" if self.direction == "max" else "less"
        head = ["without", self.objective, "difference", f"{self.confidence:.0%} interval", "rounds"]
        lines = [head, [f"({self.baseline.component})", _number(self.baseline.mean), "", "", str(self.baseline.rounds)]]
        for row in self.rows:
            interval = "" if row.low is None or row.high is None else f"[{row.low:+.4g}, {row.high:+.4g}]"
            signed = "" if row.difference is None else f"{row.difference:+.4g}"
            lines.append([row.component, _number(row.mean), signed, interval, str(row.rounds)])
        widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([*table, f"({better} is better)"])


def ablation_table(record: ExperimentRecord, *, confidence: float = 0.95) -> AblationTable:
    """Compare every component's trials with the baseline's, round by round.

    The interval is Student's, of the differences within rounds: trials of a round share a seed, and what the seed does
    to both is not counted as a difference. It is one interval for each component; among twenty components, one interval
    of 95 % is expected to miss.

    Args:
        record: An experiment with the optimizer `Ablation`.
        confidence: How sure the intervals are.

    Raises:
        InvalidInputError: If the experiment is not an ablation.
    """
    if not is_number(confidence, lambda share: 0 < share < 1):
        raise InvalidInputError(f"confidence must lie between 0 and 1, {confidence!r} was given; usual is 0.95.")
    trials: dict[str, dict[int, Trial]] = {}
    for trial in record.trials.values():
        if isinstance(component := trial.info.get("ablation"), str):
            trials.setdefault(component, {})[int(trial.info.get("repeat", 0))] = trial
    if _BASELINE not in trials:
        raise InvalidInputError(
            f"experiment {record.id} is not an ablation (its optimizer was {record.header.optimizer!r}); run one with "
            "optimizer=Ablation(baseline={…}, without={…})"
        )
    baseline = trials.pop(_BASELINE)
    rows = [_compared(component, its, baseline, confidence) for component, its in trials.items()]
    sign = 1.0 if record.header.direction == "max" else -1.0
    rows.sort(key=lambda row: math.inf if row.difference is None else sign * row.difference)
    return AblationTable(
        objective_name(record),
        record.header.direction,
        confidence,
        _compared(_BASELINE, baseline, baseline, confidence),
        rows,
    )


def _compared(component: str, its: dict[int, Trial], baseline: dict[int, Trial], confidence: float) -> Ablated:
    scores = {repeat: score for repeat, trial in its.items() if (score := score_of(trial)) is not None}
    pairs = [
        score - base
        for repeat, score in scores.items()
        if repeat in baseline and (base := score_of(baseline[repeat])) is not None
    ]
    difference = low = high = None
    if pairs and component != _BASELINE:
        difference = float(np.mean(pairs))
    if difference is not None and len(pairs) > 1:
        error = float(np.std(pairs, ddof=1)) / math.sqrt(len(pairs))
        reach = t_quantile(0.5 + confidence / 2, len(pairs) - 1) * error
        low, high = difference - reach, difference + reach
    return Ablated(
        component=component,
        changed=next((dict(trial.info.get("changed") or {}) for trial in its.values()), {}),
        mean=float(np.mean(list(scores.values()))) if scores else None,
        difference=difference,
        low=low,
        high=high,
        rounds=len(pairs),
        failed=sum(trial.state is TrialState.FAILED for trial in its.values()),
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
