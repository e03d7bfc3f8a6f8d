"""Small drawings that stand in a page before any script has run: sparklines, and all trials as crates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from cargobike.core.record import ExperimentRecord
from cargobike.core.records import TrialState

MOST_CRATES = 600


def sparkline(values: Sequence[float] | None, width: int = 120, height: int = 28) -> Markup:
    """Return the best value so far as a step line that ends in a dot; an empty text if there is nothing to draw."""
    if not values:
        return Markup("")
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    pad = 4.0

    def down(value: float) -> float:
        share = (value - low) / span if high > low else 0.5
        return pad + (1 - share) * (height - 2 * pad)

    step = (width - 2 * pad) / max(1, len(values) - 1)
    path = f"M{pad:.1f} {down(values[0]):.1f}"
    for position, value in enumerate(values[1:], 1):
        path += f"H{pad + position * step:.1f}V{down(value):.1f}"
    end_x, end_y = pad + (len(values) - 1) * step, down(values[-1])
    area = f"{path}V{height}H{pad:.1f}Z"
    # Only numbers that we have formatted ourselves are in this markup.
    return Markup(  # noqa: S704
        f'<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-hidden="true" '
        f'preserveAspectRatio="none"><path class="area" d="{area}"/><path class="line" d="{path}"/>'
        f'<circle cx="{end_x:.1f}" cy="{end_y:.1f}" r="2.6"/></svg>'
    )


def crates(record: ExperimentRecord, best: int | None) -> list[dict[str, Any]]:
    """Return all trials as crates in their order: one each, or where there are very many one for several.

    A crate for several trials shows the state that most of them are in; `best` is the trial to mark.
    """
    numbers = list(record.trials)
    size = -(-len(numbers) // MOST_CRATES) or 1
    parts: list[dict[str, Any]] = []
    for start in range(0, len(numbers), size):
        group = [record.trials[number] for number in numbers[start : start + size]]
        counts: dict[TrialState, int] = {}
        for trial in group:
            counts[trial.state] = counts.get(trial.state, 0) + 1
        state = max(counts, key=lambda each: counts[each])
        last = group[-1].number
        parts.append(
            {
                "first": group[0].number,
                "last": last,
                "state": state.value,
                "best": best is not None and group[0].number <= best <= last,
            }
        )
    missing = (record.header.num_trials or 0) - len(numbers)
    parts += [{"first": None, "last": None, "state": "coming", "best": False}] * min(
        max(0, missing // size), MOST_CRATES - len(parts)
    )
    return parts
