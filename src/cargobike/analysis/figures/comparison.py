"""Figures that compare: importance of parameters, two metrics against each other, components of an ablation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cargobike.analysis.ablation import Ablated, AblationTable, ablation_table
from cargobike.analysis.figures.look import (
    AMBER,
    BEYOND,
    BLUE,
    GREY,
    INK,
    STATES,
    VERMILION,
    Spec,
    better_word,
    comfortable_range,
    empty,
    escaped,
    figure,
    hover_of,
)
from cargobike.analysis.importance import Importance, importance
from cargobike.analysis.pareto import tradeoff
from cargobike.analysis.scores import goodness_of, objective_name, thinned
from cargobike.core.errors import InvalidInputError
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Direction
from cargobike.core.values.words import count

_BREAKS = "breaks a limit"
_MOST_BARS = 20
_MOST_MARKS = 2000


def draw_importance(record: ExperimentRecord, found: Importance | None = None) -> Spec:
    """Draw how much of the score's variance each parameter causes, by itself and with others."""
    title = "Importance of parameters"
    try:
        found = found or importance(record)
    except InvalidInputError as error:
        return empty(title, str(error))
    names = list(found.main)[:_MOST_BARS][::-1]
    main = np.array([found.main[name] for name in names])
    total = np.array([found.total[name] for name in names])
    labels = [escaped(name, 32) for name in names]
    common: Spec = {"type": "bar", "orientation": "h", "y": labels}
    data = [
        {
            **common,
            "name": "by itself",
            "x": main,
            "marker": {"color": BLUE},
            "hovertemplate": "%{y}<br>by itself %{x:.1%}<extra></extra>",
        },
        {
            **common,
            "name": "together with others",
            "x": total - main,
            "customdata": total,
            "marker": {"color": BLUE, "pattern": {"shape": "/", "size": 6}},
            "hovertemplate": "%{y}<br>together with others %{x:.1%}<br>in all %{customdata:.1%}<extra></extra>",
        },
    ]
    trust = "" if found.explained >= 0.3 else " · too little to trust the order"
    subtitle = (
        f"share of the variance of {objective_name(record)} · from {count(found.trials, 'trial')}, of whose "
        f"variance {found.explained:.0%} can be predicted{trust}"
    )
    return figure(
        data,
        title,
        subtitle,
        height=150 + 32 * len(names),
        barmode="stack",
        legend={"traceorder": "normal"},
        xaxis={"tickformat": ".0%", "rangemode": "tozero", "title": {"text": "share of variance"}},
        yaxis={"type": "category", "showgrid": False},
    )


def draw_pareto(
    record: ExperimentRecord, first: str, second: str, direction: Mapping[str, Direction] | None = None
) -> Spec:
    """Draw two metrics against each other, with the trials that no other beats joined by a line."""
    title = f"{first} against {second}"
    found = tradeoff(record, first, second, direction)
    if not found.trials:
        return empty(title, f"No completed trial has both {first} and {second}.")
    front = [index for index in np.argsort(found.points[:, 0], kind="stable") if found.is_on_front[index]]
    goodness = goodness_of(record)
    rest = [index for index in range(len(found.trials)) if not found.is_on_front[index]]
    others = thinned(rest, _MOST_MARKS, lambda index: goodness(found.trials[index]))
    breaking = [index for index in others if found.trials[index].violation > 0]
    others = [index for index in others if not found.trials[index].violation > 0]
    objective = objective_name(record)
    data: list[Spec] = []
    for name, chosen in ((_BREAKS, breaking), ("other trials", others), ("Pareto front", front)):
        if not chosen:
            continue
        is_front = chosen is front
        colour, symbol, _ = STATES[_BREAKS if chosen is breaking else "completed"]
        trace: Spec = {
            "type": "scatter",
            "name": name,
            "mode": "lines+markers" if is_front else "markers",
            "x": found.points[chosen, 0],
            "y": found.points[chosen, 1],
            "marker": {"color": AMBER, "size": 11, "symbol": "star"}
            if is_front
            else {"color": colour, "symbol": symbol, "size": 6, "opacity": 0.55},
            "hovertext": [
                f"{hover_of(found.trials[index], objective)}<br>{escaped(first, 40)}: {found.points[index, 0]:.6g}"
                f"<br>{escaped(second, 40)}: {found.points[index, 1]:.6g}"
                for index in chosen
            ],
            "hoverinfo": "text",
        }
        if is_front:
            # A corner, not a slope: between two trials of the front nothing has been reached.
            shape = "hv" if found.directions[0] == "min" else "vh"
            trace["line"] = {"color": AMBER, "width": 2, "shape": shape}
        data.append(trace)
    x_view, y_view = (
        comfortable_range(found.points[:, column], better, keep=found.points[front, column])
        for column, better in enumerate(found.directions)
    )
    beyond = "" if x_view is None and y_view is None else BEYOND
    return figure(
        data,
        title,
        f"{count(len(front), 'trial')} of {len(found.trials):,} that no other beats in both{beyond}",
        xaxis={
            "title": {"text": f"{escaped(first, 40)} ({better_word(found.directions[0])})"},
            **({} if x_view is None else {"range": list(x_view)}),
        },
        yaxis={
            "title": {"text": f"{escaped(second, 40)} ({better_word(found.directions[1])})"},
            **({} if y_view is None else {"range": list(y_view)}),
        },
    )


def draw_ablation(record: ExperimentRecord, confidence: float = 0.95, found: AblationTable | None = None) -> Spec:
    """Draw how the score changes without each component, with confidence intervals."""
    found = found or ablation_table(record, confidence=confidence)
    title = "What is lost without …"
    rows = [row for row in found.rows if row.difference is not None][::-1]
    if not rows:
        return empty(title, "No component has a completed trial in a round in which the baseline has one, too.")
    sign = 1.0 if found.direction == "max" else -1.0
    kinds = (
        (
            "worse without it",
            BLUE,
            "circle",
            [row for row in rows if row.is_clear and sign * (row.difference or 0) < 0],
        ),
        ("not clear", GREY, "circle-open", [row for row in rows if not row.is_clear]),
        (
            "better without it",
            VERMILION,
            "x",
            [row for row in rows if row.is_clear and sign * (row.difference or 0) > 0],
        ),
    )
    data: list[Spec] = []
    for name, colour, symbol, chosen in kinds:
        if not chosen:
            continue
        reach = [0.0 if row.high is None else row.high - (row.difference or 0) for row in chosen]
        data.append(
            {
                "type": "scatter",
                "name": name,
                "mode": "markers",
                "x": [row.difference for row in chosen],
                "y": [escaped(row.component, 32) for row in chosen],
                "marker": {"color": colour, "symbol": symbol, "size": 11},
                "error_x": {"type": "data", "array": reach, "color": colour, "thickness": 2, "width": 6},
                "hovertext": [_about(row) for row in chosen],
                "hoverinfo": "text",
            }
        )
    mean = "" if found.baseline.mean is None else f" · baseline {found.baseline.mean:.6g}"
    return figure(
        data,
        title,
        f"{found.confidence:.0%} confidence intervals{mean} · {better_word(found.direction)}",
        height=170 + 34 * len(rows),
        xaxis={
            "title": {"text": f"change of {escaped(found.objective, 40)}"},
            "zeroline": True,
            "zerolinecolor": INK,
            "zerolinewidth": 1.5,
        },
        yaxis={"type": "category", "categoryorder": "array", "categoryarray": [escaped(r.component, 32) for r in rows]},
    )


def _about(row: Ablated) -> str:
    interval = "" if row.low is None else f" [{row.low:+.4g}, {row.high:+.4g}]"
    return (
        f"without {escaped(row.component, 32)}: {row.mean:.6g}<br>difference {row.difference:+.4g}{interval}"
        f"<br>{count(row.rounds, 'round')}"
    )
