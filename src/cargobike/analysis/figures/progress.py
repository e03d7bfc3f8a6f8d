"""Figures of progress: the best score so far, learning curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cargobike.analysis.figures.look import (
    AMBER,
    BEYOND,
    STATES,
    Spec,
    better_word,
    comfortable_range,
    empty,
    escaped,
    figure,
    hover_of,
    seconds_as,
)
from cargobike.analysis.progress import LearningCurve, Order, best_so_far, learning_curves, place_of
from cargobike.analysis.scores import goodness_of, latest_of, objective_name, thinned
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial
from cargobike.core.values.words import count

_MOST_MARKS = 2000
_STATES_SHOWN = ("completed", "stopped", "paused", "running", "failed")
_BREAKS = "breaks a limit"


def draw_best_so_far(record: ExperimentRecord, by: Order = "trial") -> Spec:
    """Draw every trial's score and the best so far; stopped trials hollow at their last report, failed ones crossed."""
    title, objective = "Best so far", objective_name(record)
    trials = [trial for trial in record.trials.values() if trial.state.value in _STATES_SHOWN]
    if not trials:
        return empty(title, "No trial has begun yet.")
    shown = thinned(trials, _MOST_MARKS, goodness_of(record))
    size, unit = seconds_as(record.duration_s) if by == "time" else (1.0, "")
    series = best_so_far(record, by)
    kinds = {kind: [trial for trial in shown if _kind(trial) == kind] for kind in (*_STATES_SHOWN, _BREAKS)}
    data = [marks for kind, its in kinds.items() if (marks := _marks(its, record, by, size, kind))]
    data.append(
        {
            "type": "scatter",
            "name": "best so far",
            "mode": "lines",
            "x": series.at / size,
            "y": series.best,
            "line": {"color": AMBER, "width": 3, "shape": "hv"},
            "hoverinfo": "skip",
        }
    )
    latest = np.array([value for trial in shown if (value := latest_of(trial)) is not None])
    view = comfortable_range(latest, record.header.direction)
    note = "" if len(shown) == len(trials) else f" · {len(shown):,} of {count(len(trials), 'trial')} shown"
    beyond = "" if view is None else BEYOND
    x_title = "trial" if by == "trial" else f"time since start ({unit})"
    return figure(
        data,
        title,
        f"{better_word(record.header.direction)}{note}{beyond}",
        xaxis={"title": {"text": x_title}, **({"dtick": 1} if by == "trial" and len(record.trials) <= 16 else {})},
        yaxis={"title": {"text": escaped(objective)}, **({} if view is None else {"range": list(view)})},
        # Failed trials have no score: they stand on the floor of the figure, on an axis of their own.
        yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
    )


def _kind(trial: Trial) -> str:
    return _BREAKS if trial.violation > 0 else trial.state.value


def _marks(trials: Sequence[Trial], record: ExperimentRecord, by: Order, size: float, state: str) -> Spec | None:
    colour, symbol, _ = STATES[state]
    on_floor = state == "failed"
    known = [(trial, 0.015 if on_floor else latest_of(trial)) for trial in trials]
    known = [(trial, value) for trial, value in known if value is not None]
    if not known:
        return None
    objective = objective_name(record)
    many = len(record.trials) > 500
    return {
        "type": "scatter",
        "name": state,
        "mode": "markers",
        "x": [place_of(record, trial, by) / size for trial, _ in known],
        "y": [value for _, value in known],
        "yaxis": "y2" if on_floor else "y",
        "marker": {"color": colour, "symbol": symbol, "size": 5 if many else 8, "opacity": 0.55 if many else 0.85},
        "hovertext": [hover_of(trial, objective) for trial, _ in known],
        "hoverinfo": "text",
        "cliponaxis": not on_floor,
    }


def draw_learning_curves(record: ExperimentRecord, most: int = 200) -> Spec:
    """Draw the objective of every trial against its steps; many trials are thinned out, the best always stay."""
    title, objective = "Learning curves", objective_name(record)
    curves = learning_curves(record, most=most)
    if not curves:
        return empty(
            title, f"No trial has reported {objective}: call trial.report in the train function to see curves."
        )
    best = record.best.number if record.best is not None else None
    groups: dict[str, list[LearningCurve]] = {}
    for curve in curves:
        groups.setdefault("best" if curve.trial.number == best else curve.trial.state.value, []).append(curve)
    data: list[dict[str, Any]] = []
    for state in (*_STATES_SHOWN, "pending", "best"):
        if state in groups:
            data += _lines(groups[state], state, objective, len(curves))
    total = sum(bool(len(trial.curve)) for trial in record.trials.values())
    values = np.concatenate([curve.values for curve in curves])
    view = comfortable_range(values, record.header.direction)
    note = "" if len(curves) == total else f" · {len(curves):,} of {count(total, 'trial')} shown"
    beyond = "" if view is None else BEYOND
    return figure(
        data,
        title,
        f"{better_word(record.header.direction)}{note}{beyond}",
        xaxis={"title": {"text": "step"}},
        yaxis={"title": {"text": escaped(objective)}, **({} if view is None else {"range": list(view)})},
    )


def _lines(curves: Sequence[LearningCurve], state: str, objective: str, number: int) -> list[dict[str, Any]]:
    """Return all curves of a state as one trace, with gaps between them, and one of their last points."""
    is_best = state == "best"
    colour, symbol, dash = (AMBER, "star", "solid") if is_best else STATES[state]
    name = f"best (trial {curves[0].trial.number})" if is_best else state
    steps: list[float | None] = []
    values: list[float | None] = []
    numbers: list[int] = []
    for curve in curves:
        for step, value in zip(curve.steps, curve.values, strict=True):
            steps.append(float(step))
            values.append(None if math.isnan(value) else float(value))
        steps.append(None)
        values.append(None)
        numbers += [curve.trial.number] * (len(curve.steps) + 1)
    many = number > 40
    ends = [(curve, _last(curve)) for curve in curves]
    common = {"type": "scatter", "legendgroup": state, "name": name}
    return [
        {
            **common,
            "mode": "lines",
            "x": steps,
            "y": values,
            "customdata": np.array(numbers),
            "hovertemplate": "trial %{customdata}<br>step %{x}: %{y:.6g}<extra></extra>",
            "line": {"color": colour, "width": 3.5 if is_best else 1.2 if many else 1.8, "dash": dash},
            "opacity": 1.0 if is_best else 0.6 if many else 0.8,
        },
        {
            **common,
            "mode": "markers",
            "hoverinfo": "text",
            "showlegend": False,
            "x": [float(curve.steps[last]) for curve, last in ends if last is not None],
            "y": [float(curve.values[last]) for curve, last in ends if last is not None],
            "hovertext": [hover_of(curve.trial, objective) for curve, last in ends if last is not None],
            "marker": {"color": colour, "symbol": symbol, "size": 13 if is_best else 5 if many else 8},
        },
    ]


def _last(curve: LearningCurve) -> int | None:
    finite = np.flatnonzero(np.isfinite(curve.values))
    return int(finite[-1]) if len(finite) else None
