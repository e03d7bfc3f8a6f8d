"""Figures of parameters: parallel coordinates, slices, contours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cargobike.analysis.axes import Axis, Floats, axes_of, positions_of
from cargobike.analysis.figures.look import (
    BEYOND,
    GOOD_TO_BEST,
    STATES,
    Spec,
    better_word,
    comfortable_range,
    empty,
    escaped,
    figure,
    hover_of,
)
from cargobike.analysis.figures.ticks import ticks_of
from cargobike.analysis.model import Model
from cargobike.analysis.scores import goodness_of, objective_name, scored, thinned
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial
from cargobike.core.values.words import count

_ABSENT = "absent"
_MOST_LINES = 10_000
_MOST_MARKS = 6000
_MOST_PANELS = 24
_COLUMNS = 3


def draw_parallel_coordinates(record: ExperimentRecord, params: Sequence[str] | None = None) -> Spec:
    """Draw every completed trial as a line through its parameters to its score; drag along an axis to select."""
    title, objective = "Parallel coordinates", objective_name(record)
    trials = thinned(scored(record), _MOST_LINES, goodness_of(record))
    axes = chosen_axes(axes_of(record, trials), params)[:_MOST_PANELS] if len(trials) > 1 else []
    if not axes:
        return empty(title, "Needs at least two completed trials with different parameters.")
    positions = positions_of(axes, trials)
    scores = np.array([trial.value for trial in trials], dtype=float)
    view = comfortable_range(scores, record.header.direction)
    seen = scores if view is None else np.clip(scores, *view)
    dimensions = [_dimension(axis, positions[:, index]) for index, axis in enumerate(axes)]
    dimensions.append({"label": f"<b>{escaped(objective, 24)}</b>", "values": seen})
    left_out = len(record.trials) - len(trials)
    note = "" if not left_out else f" · {count(left_out, 'trial')} without a final score left out"
    trace = {
        "type": "parcoords",
        "dimensions": dimensions,
        "line": {"color": seen, **score_scale(record), "showscale": False},
        "meta": {
            "trials": [trial.number for trial in trials],
            "axes": [_meaning(axis, positions[:, index]) for index, axis in enumerate(axes)],
        },
        "labelangle": 0 if len(dimensions) <= 8 else -20,
        "unselected": {"line": {"color": "#808790", "opacity": 0.08}},
    }
    beyond = "" if view is None else BEYOND
    subtitle = f"drag along an axis to select trials · {better_word(record.header.direction)}{note}{beyond}"
    return figure([trace], title, subtitle, height=460, margin={"l": 72, "r": 56, "t": 136, "b": 32})


def _meaning(axis: Axis, positions: Floats) -> Spec:
    """Return what a page needs to turn positions back into values."""
    low, high = axis.ends
    return {
        "name": escaped(axis.name),
        "kind": axis.kind,
        "scale": axis.scale,
        "labels": [escaped(label) for label in axis.labels],
        "ceiling": axis.unstretched(low) + 10.0**-low if axis.scale == "reverse-log" else None,
        "floor": _floor(low, high) if np.isnan(positions).any() else None,
    }


def _floor(low: float, high: float) -> float:
    """Return where an absent value stands: below all others, where the eye takes it for what it is."""
    return low - 0.18 * ((high - low) or 1.0)


def _dimension(axis: Axis, positions: Floats) -> Spec:
    low, high = axis.ends
    ticks, labels = ticks_of(axis)
    missing = np.isnan(positions)
    if missing.any():
        floor = _floor(low, high)
        positions = np.where(missing, floor, positions)
        ticks, labels = [floor, *ticks], [_ABSENT, *labels]
        low = floor
    pad = 0.3 if axis.kind == "choice" else 0.0
    return {
        "label": escaped(axis.name, 24),
        "values": positions,
        "range": [low - pad, high + pad],
        "tickvals": ticks,
        # Unlike other texts of Plotly these are shown as they are, and must not be escaped.
        "ticktext": [label if len(label) <= 16 else f"{label[:15]}…" for label in labels],
    }


def draw_slices(record: ExperimentRecord, params: Sequence[str] | None = None, model: Model | None = None) -> Spec:
    """Draw the score against each parameter, one panel each; with a model, the mean over all others as a line."""
    title = "Slices"
    panels = slice_panels(record, params, model)
    if not panels:
        return empty(title, "Needs at least two completed trials with different parameters.")
    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    data: list[Spec] = []
    layout: dict[str, Any] = {"grid": {"rows": rows, "columns": columns, "pattern": "independent", "ygap": 0.3}}
    for index, panel in enumerate(panels):
        number = "" if index == 0 else str(index + 1)
        for trace in panel["data"]:
            data.append({**trace, "xaxis": f"x{number}", "yaxis": f"y{number}", "showlegend": False})
        layout[f"xaxis{number}"] = panel["layout"]["xaxis"]
        y_axis = {**panel["layout"]["yaxis"]}
        if index % columns:
            y_axis.pop("title")
        layout[f"yaxis{number}"] = {**y_axis, **({"matches": "y"} if index else {})}
    subtitle = f"line: mean over all other parameters · {better_word(record.header.direction)}"
    return figure(data, title, subtitle, height=120 + 260 * rows, **layout)


def slice_panels(
    record: ExperimentRecord, params: Sequence[str] | None = None, model: Model | None = None
) -> list[Spec]:
    """Return one small figure for each parameter, for pages that arrange them by themselves."""
    trials = scored(record)
    axes = chosen_axes(axes_of(record), params)[:_MOST_PANELS]
    if len(trials) < 2 or not axes:
        return []
    shown = thinned(trials, max(300, _MOST_MARKS // len(axes)), goodness_of(record))
    scores = np.array([trial.value for trial in trials], dtype=float)
    view = comfortable_range(scores, record.header.direction)
    if view is None:
        pad = 0.08 * float(np.ptp(scores)) or 1.0
        view = float(scores.min()) - pad, float(scores.max()) + pad
    return [_panel(record, axis, shown, model, view) for axis in axes]


def _panel(
    record: ExperimentRecord,
    axis: Axis,
    trials: Sequence[Trial],
    model: Model | None,
    view: tuple[float, float],
) -> Spec:
    objective = objective_name(record)
    here = [trial for trial in trials if axis.name in trial.params]
    places = spread(axis, positions_of([axis], here)[:, 0], here)
    best = record.best.number if record.best is not None else None
    looks = [("best" if trial.number == best else trial.state.value) for trial in here]
    data: list[Spec] = [
        {
            "type": "scatter",
            "name": "trials",
            "mode": "markers",
            "x": places,
            "y": [trial.value for trial in here],
            "marker": {
                "color": [STATES[look][0] for look in looks],
                "symbol": [STATES[look][1] for look in looks],
                "size": [14 if look == "best" else 6 for look in looks],
                "opacity": [1.0 if look == "best" else 0.55 for look in looks],
                "line": {"width": [0.0 if look in ("best", "completed") else 1.0 for look in looks]},
            },
            "hovertext": [hover_of(trial, objective) for trial in here],
            "hoverinfo": "text",
        }
    ]
    if model is not None and any(known.name == axis.name for known in model.axes):
        data.append(_trend(axis, model))
    ticks, labels = ticks_of(axis)
    low, high = axis.ends
    pad = 0.5 if axis.kind == "choice" else 0.03 * (high - low)
    x_axis = {
        "title": {"text": escaped(axis.name, 40)},
        "range": [low - pad, high + pad],
        "tickvals": ticks,
        "ticktext": [escaped(label, 14) for label in labels],
        "ticklabeloverflow": "allow",
    }
    y_axis = {"title": {"text": escaped(objective)}, "range": list(view)}
    return figure(data, axis.name, height=260, xaxis=x_axis, yaxis=y_axis, showlegend=False)


def spread(axis: Axis, places: Floats, trials: Sequence[Trial]) -> Floats:
    """Move trials of one choice apart, by number and not by chance: the same figure looks the same again."""
    if axis.kind == "number":
        return places
    moved: Floats = places + np.array([0.5 * ((trial.number * 0.618034) % 1.0 - 0.5) for trial in trials])
    return moved


def _trend(axis: Axis, model: Model) -> Spec:
    grid = np.arange(len(axis.labels), dtype=float) if axis.kind == "choice" else np.linspace(*axis.ends, 60)
    return {
        "type": "scatter",
        "name": "mean over all other parameters",
        "mode": "lines+markers" if axis.kind == "choice" else "lines",
        "x": grid,
        "y": model.mean_over_others([axis.name], [grid]),
        "line": {"color": "#808790", "width": 2.5, "dash": "dot" if not axis.has_order else "solid"},
        "marker": {"symbol": "line-ew", "size": 18, "line": {"width": 2.5, "color": "#808790"}},
        "hoverinfo": "skip",
    }


def score_scale(record: ExperimentRecord) -> Spec:
    """Return the colours of scores, the best ones lightest, in both directions."""
    return {"colorscale": [list(stop) for stop in GOOD_TO_BEST], "reversescale": record.header.direction == "min"}


def chosen_axes(axes: list[Axis], names: Sequence[str] | None) -> list[Axis]:
    """Return the axes of these names in this order; all if none are given."""
    if names is None:
        return axes
    known = {axis.name: axis for axis in axes}
    mistakes = [
        f"{name!r} is not a parameter that varies.{nearest(name, known)}" for name in names if name not in known
    ]
    if mistakes:
        raise InvalidInputError(f"these parameters cannot be drawn; those that vary are {', '.join(known)}:", mistakes)
    return [known[name] for name in names]
