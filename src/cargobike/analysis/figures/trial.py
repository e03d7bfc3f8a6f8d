"""Figures of single trials: all curves of one, and the curves of several against each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cargobike.analysis.axes import Floats
from cargobike.analysis.down_sampling import down_sampled
from cargobike.analysis.figures.look import (
    AMBER,
    BLUE,
    STATES,
    Spec,
    comfortable_range,
    empty,
    escaped,
    figure,
    seconds_as,
)
from cargobike.analysis.progress import Order, settled
from cargobike.analysis.scores import objective_name
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Curve, Trial
from cargobike.core.values.words import count

_MOST_PANELS = 24
_MOST_POINTS = 1500
_DASHES = ("solid", "dash", "dot", "dashdot")


def draw_trial_curves(record: ExperimentRecord, trial: Trial, curves: Mapping[str, Curve]) -> Spec:
    """Draw every metric that a trial reported against its steps, one panel each, the objective first."""
    title = f"Curves of trial {trial.number}"
    shown = {name: curve for name, curve in curves.items() if len(curve)}
    if not shown:
        return empty(title, "This trial has reported nothing: call trial.report in the train function to see curves.")
    objective = record.objective or objective_name(record)
    panels = sorted(shown.items(), key=lambda item: item[0] != objective)[:_MOST_PANELS]
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    colour = AMBER if record.best is trial else STATES[trial.state.value][0]
    data: list[Spec] = []
    layout: dict[str, Any] = {"grid": {"rows": rows, "columns": columns, "pattern": "independent", "ygap": 0.3}}
    for index, (name, curve) in enumerate(panels):
        number = "" if index == 0 else str(index + 1)
        steps, values = settled(curve)
        kept = down_sampled(steps, values, _MOST_POINTS)
        view = comfortable_range(values)
        data.append(
            {
                "type": "scatter",
                "name": escaped(name, 40),
                "mode": "lines" if len(steps) > 60 else "lines+markers",
                "x": steps[kept],
                "y": values[kept],
                "xaxis": f"x{number}",
                "yaxis": f"y{number}",
                "line": {"color": colour if name == objective else BLUE, "width": 2},
                "marker": {"size": 5},
                "connectgaps": False,
                "hovertemplate": "step %{x}: %{y:.6g}<extra></extra>",
            }
        )
        layout[f"xaxis{number}"] = {"title": {"text": "step"}}
        layout[f"yaxis{number}"] = {
            "title": {"text": escaped(name, 40)},
            **({} if view is None else {"range": list(view)}),
        }
    total = sum(len(curve) for curve in shown.values())
    hidden = len(shown) - len(panels)
    note = f" · {hidden} more metrics not shown" if hidden > 0 else ""
    return figure(data, title, f"{count(total, 'point')}{note}", height=120 + 260 * rows, showlegend=False, **layout)


def draw_compared_curves(metric: str, curves: Sequence[tuple[str, Floats, Floats]]) -> Spec:
    """Draw one metric of several trials against its steps, each in a colour and a line style of its own."""
    title = f"{metric} of the chosen trials"
    known = [each for each in curves if len(each[1])]
    if not known:
        return empty(title, f"None of the chosen trials has reported {metric}.")
    data = []
    for index, (label, steps, values) in enumerate(known):
        kept = down_sampled(steps, values, _MOST_POINTS)
        data.append(
            {
                "type": "scatter",
                "name": escaped(label, 60),
                "mode": "lines" if len(steps) > 60 else "lines+markers",
                "x": steps[kept],
                "y": values[kept],
                # The colours repeat after six lines, the styles do not until the twenty-fourth.
                "line": {"width": 2.2, "dash": _DASHES[index // 6 % len(_DASHES)]},
                "marker": {"size": 5},
                "hovertemplate": f"{escaped(label, 60)}<br>step %{{x}}: %{{y:.6g}}<extra></extra>",
            }
        )
    view = comfortable_range(np.concatenate([values for _, _, values in known]))
    return figure(
        data,
        title,
        count(len(known), "trial"),
        xaxis={"title": {"text": "step"}},
        yaxis={"title": {"text": escaped(metric, 40)}, **({} if view is None else {"range": list(view)})},
    )


def draw_compared_progress(series: Sequence[tuple[str, Floats, Floats]], by: Order, objective: str) -> Spec:
    """Draw the best score so far of several experiments in one figure, by trial number or by time."""
    title = "Best so far by trial" if by == "trial" else "Best so far by time"
    known = [each for each in series if len(each[1])]
    if not known:
        return empty(title, "None of the chosen experiments has a trial with a score.")
    longest = max(float(at.max()) for _, at, _ in known)
    size, unit = seconds_as(longest) if by == "time" else (1.0, "")
    data = [
        {
            "type": "scatter",
            "name": escaped(label, 60),
            "mode": "lines",
            "x": at / size,
            "y": best,
            "line": {"width": 2.5, "shape": "hv", "dash": _DASHES[index // 6 % len(_DASHES)]},
            "hovertemplate": f"{escaped(label, 60)}<br>%{{x}}: %{{y:.6g}}<extra></extra>",
        }
        for index, (label, at, best) in enumerate(known)
    ]
    return figure(
        data,
        title,
        count(len(known), "experiment"),
        xaxis={"title": {"text": "trial" if by == "trial" else f"time since start ({unit})"}},
        yaxis={"title": {"text": escaped(objective, 40)}},
    )
