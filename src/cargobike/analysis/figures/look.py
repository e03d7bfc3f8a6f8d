"""The look that all figures share: colours, marks of trial states, text that is safe to show, empty figures.

Backgrounds are transparent and every colour has a contrast of at least 3 to white and to near-black, so that a figure
can stand on a light and on a dark page. Colours are never alone: a state also has a mark and a line style of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cargobike.analysis.axes import Floats, text_of
from cargobike.analysis.scores import latest_of, outer_fences, score_of
from cargobike.core.records import Direction, Trial
from cargobike.core.values.words import number

Spec = dict[str, Any]
"""A figure as Plotly's JSON has it: `data`, a list of traces, and `layout`."""

INK = "#7a7f87"
GRID = "rgba(128,134,144,0.22)"
BLUE, AMBER, VERMILION, GREEN, PURPLE, GREY = "#1f88c9", "#c98500", "#d55e00", "#009e73", "#b07cc6", "#808790"
GOOD_TO_BEST = ((0.0, "#5b5f97"), (0.35, "#2f7fa8"), (0.65, "#1f9e89"), (1.0, "#e0a100"))
"""From poor to best, growing lighter all the way, so that it can also be read without colours."""

STATES: dict[str, tuple[str, str, str]] = {
    "completed": (BLUE, "circle", "solid"),
    "stopped": (GREY, "circle-open", "dash"),
    "paused": (PURPLE, "square-open", "dash"),
    "failed": (VERMILION, "x", "dot"),
    "running": (GREEN, "diamond-open", "solid"),
    "pending": (GREY, "diamond-open", "solid"),
    "lost": (VERMILION, "x", "dot"),
    "best": (AMBER, "star", "solid"),
    "breaks a limit": (PURPLE, "triangle-down-open", "dot"),
}
"""Colour, mark and line style of each state."""

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~])?|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MOST_PARAMETERS = 12
_CROWDED = 4.0
"""Far-out values are left outside the view if they would squeeze the others by more than this."""
_AXIS = {
    "gridcolor": GRID,
    "zeroline": False,
    "linecolor": GRID,
    "ticks": "outside",
    "tickcolor": GRID,
    "ticklen": 4,
    "automargin": True,
    "title": {"standoff": 10, "font": {"size": 13}},
}
_TEMPLATE: Spec = {
    "layout": {
        "font": {"family": _FONT, "size": 13, "color": INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "colorway": [BLUE, AMBER, GREEN, VERMILION, PURPLE, GREY],
        "xaxis": _AXIS,
        "yaxis": _AXIS,
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "font": {"family": _FONT, "size": 12}},
        "title": {
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 12},
            "font": {"size": 17},
        },
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "xanchor": "left"},
        "margin": {"l": 56, "r": 16, "t": 100, "b": 48},
        "bargap": 0.3,
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": BLUE},
    }
}


def figure(
    data: Sequence[Mapping[str, Any]], title: str, subtitle: str = "", *, height: int = 420, **layout: Any
) -> Spec:
    """Put traces and a title together; titles are escaped here."""
    heading: Spec = {"text": f"<b>{escaped(title)}</b>"}
    if subtitle:
        heading["subtitle"] = {"text": escaped(subtitle)}
    return {"data": list(data), "layout": {"template": _TEMPLATE, "title": heading, "height": height, **layout}}


def empty(title: str, why: str) -> Spec:
    """Return a figure that says why there is nothing to see."""
    note = {"text": escaped(why), "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper", "showarrow": False}
    hidden = {"visible": False}
    return figure([], title, height=240, annotations=[note], xaxis=hidden, yaxis=hidden)


def escaped(text: str, length: int = 400) -> str:
    """Return text that Plotly shows as it is: it reads some HTML, and must not find any in what strangers wrote."""
    plain = _CONTROL.sub(" ", text if len(text) <= length else f"{text[: length - 1]}…")
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def hover_of(trial: Trial, objective: str) -> str:
    """Return what is shown beside a trial under the pointer: number, state, score, parameters."""
    lines = [f"<b>trial {trial.number}</b> · {trial.state.value}"]
    value = latest_of(trial)
    if value is not None:
        word = "" if score_of(trial) is not None else " (last report)"
        lines.append(f"{escaped(objective, 40)} = {number(value)}{word}")
    if trial.violation > 0:
        lines.append(f"breaks limits by {trial.violation:.3g}")
    shown = list(trial.params.items())[:_MOST_PARAMETERS]
    lines += [f"{escaped(str(name), 40)} = {escaped(text_of(given, 40))}" for name, given in shown]
    if len(trial.params) > len(shown):
        lines.append(f"… and {len(trial.params) - len(shown)} more")
    if trial.error:
        lines.append(escaped(trial.error.strip().rpartition("\n")[2], 80))
    return "<br>".join(lines)


def seconds_as(span_s: float) -> tuple[float, str]:
    """Return by what to divide seconds for a readable axis, and the unit's name."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if span_s >= 3 * size:
            return size, unit
    return 1.0, "s"


BEYOND = " · far-out values lie outside the view"


def comfortable_range(
    values: Floats, better: Direction | None = None, keep: Sequence[float] | Floats = ()
) -> tuple[float, float] | None:
    """Return the range of values that are not far out; `None` if all of them are to be seen.

    Args:
        values: All values that are drawn.
        better: At which end nothing is ever cut off, however far out it is.
        keep: Values that must be seen in any case.
    """
    finite = values[np.isfinite(values)]
    if len(finite) < 4:
        return None
    low, high = outer_fences(finite)
    inside = finite[(finite >= low) & (finite <= high)]
    if not len(inside) or np.ptp(finite) <= _CROWDED * np.ptp(inside) or high <= low:
        return None
    ends = [float(inside.min()), float(inside.max()), *(float(value) for value in keep if math.isfinite(value))]
    if better is not None:
        ends.append(float(finite.max() if better == "max" else finite.min()))
    if min(ends) <= finite.min() and max(ends) >= finite.max():
        return None
    pad = 0.06 * (max(ends) - min(ends)) or 1.0
    return min(ends) - pad, max(ends) + pad


def better_word(direction: str) -> str:
    """Return which way a number is better, in words."""
    return "more is better" if direction == "max" else "less is better"
