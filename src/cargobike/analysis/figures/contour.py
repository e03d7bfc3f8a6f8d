"""The figure of two parameters: a map of the score."""

from __future__ import annotations

import numpy as np

from cargobike.analysis.axes import axes_of, positions_of
from cargobike.analysis.figures.look import Spec, better_word, empty, escaped, figure, hover_of
from cargobike.analysis.figures.parameters import chosen_axes, score_scale, spread
from cargobike.analysis.figures.ticks import ticks_of
from cargobike.analysis.model import FEWEST_TRIALS, Model, fit
from cargobike.analysis.scores import goodness_of, objective_name, score_of, scored, thinned
from cargobike.core.errors import InvalidInputError
from cargobike.core.record import ExperimentRecord


def draw_contour(record: ExperimentRecord, x: str, y: str, model: Model | None = None) -> Spec:
    """Draw the mean score over all other parameters as a map of two parameters, with the trials on it."""
    title, objective = f"{x} and {y}", objective_name(record)
    axes = chosen_axes(axes_of(record), [x, y])
    if x == y:
        raise InvalidInputError(f"a contour needs two different parameters, {x!r} was given twice")
    trials = scored(record)
    if len(trials) < FEWEST_TRIALS:
        return empty(title, f"A map needs at least {FEWEST_TRIALS} completed trials; there are {len(trials)}.")
    model = model or fit(record)
    across, along = axes
    grids = [
        np.arange(len(axis.labels), dtype=float) if axis.kind == "choice" else np.linspace(*axis.ends, 50)
        for axis in axes
    ]
    surface = model.mean_over_others([x, y], grids).T
    here = [trial for trial in thinned(trials, 800, goodness_of(record)) if x in trial.params and y in trial.params]
    places = positions_of(axes, here)
    across_places, along_places = (spread(axis, places[:, index], here) for index, axis in enumerate(axes))
    values = np.array([score_of(trial) for trial in here], dtype=float)
    low, high = float(surface.min()), float(surface.max())
    is_map = "choice" in (across.kind, along.kind)
    best = record.best.number if record.best is not None else None
    ground: Spec = {
        "type": "heatmap" if is_map else "contour",
        "x": grids[0],
        "y": grids[1],
        "z": surface,
        **score_scale(record),
        "zmin": low,
        "zmax": high,
        "colorbar": {
            "title": {"text": escaped(objective, 24), "font": {"size": 13}},
            "thickness": 14,
            "outlinewidth": 0,
        },
        "hoverinfo": "skip",
    }
    if not is_map:
        ground |= {
            "contours": {"coloring": "heatmap", "showlines": True},
            "line": {"width": 0.5, "smoothing": 1.0, "color": "rgba(0,0,0,0.4)"},
        }
    marks: Spec = {
        "type": "scatter",
        "mode": "markers",
        "x": across_places,
        "y": along_places,
        "marker": {
            "color": np.clip(values, low, high),
            "cmin": low,
            "cmax": high,
            **score_scale(record),
            "showscale": False,
            "symbol": ["star" if trial.number == best else "circle" for trial in here],
            "size": [16 if trial.number == best else 7 for trial in here],
            "line": {"width": [2.5 if trial.number == best else 1.2 for trial in here], "color": "white"},
        },
        "hovertext": [hover_of(trial, objective) for trial in here],
        "hoverinfo": "text",
    }
    layout = {}
    for key, axis in (("xaxis", across), ("yaxis", along)):
        ticks, labels = ticks_of(axis)
        layout[key] = {
            "title": {"text": escaped(axis.name, 40)},
            "tickvals": ticks,
            "ticktext": [escaped(label, 14) for label in labels],
            "ticklabeloverflow": "allow",
            "showgrid": False,
        }
    subtitle = f"mean over all other parameters · star: best trial · {better_word(record.header.direction)}"
    return figure([ground, marks], title, subtitle, height=460, showlegend=False, **layout)
