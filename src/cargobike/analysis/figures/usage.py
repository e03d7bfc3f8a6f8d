"""What a trial used over time: processors, memory, GPUs, one panel each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cargobike.analysis.figures.look import Spec, empty, escaped, figure, seconds_as


@dataclass(frozen=True, slots=True)
class Panel:
    """One thing that was measured: its name with its unit, and for each line a label, times in seconds and values."""

    title: str
    lines: Sequence[tuple[str, Sequence[float], Sequence[float]]]


def draw_usage(trial: int, panels: Sequence[Panel]) -> Spec:
    """Draw each thing that was measured against the time since the attempt began."""
    title = f"Use of trial {trial}"
    shown = [panel for panel in panels if any(len(values) for _, _, values in panel.lines)]
    if not shown:
        return empty(title, "Nothing was measured: the trial took less than a second, or ran in the launching process.")
    longest = max(at[-1] for panel in shown for _, at, _ in panel.lines if len(at))
    size, unit = seconds_as(longest)
    data: list[Spec] = []
    layout: dict[str, Any] = {"grid": {"rows": len(shown), "columns": 1, "pattern": "independent", "ygap": 0.3}}
    for index, panel in enumerate(shown):
        number = "" if index == 0 else str(index + 1)
        for label, at, values in panel.lines:
            data.append(
                {
                    "type": "scatter",
                    "name": escaped(label, 40),
                    "mode": "lines+markers" if len(at) < 60 else "lines",
                    "x": [one / size for one in at],
                    "y": list(values),
                    "xaxis": f"x{number}",
                    "yaxis": f"y{number}",
                    "line": {"width": 2},
                    "marker": {"size": 5},
                    "hovertemplate": f"{escaped(label, 40)} %{{x:.4g}} {unit}: %{{y:.4g}}<extra></extra>",
                }
            )
        layout[f"xaxis{number}"] = {"title": {"text": f"time since the attempt began ({unit})"}, "rangemode": "tozero"}
        layout[f"yaxis{number}"] = {"title": {"text": escaped(panel.title, 40)}, "rangemode": "tozero"}
    return figure(data, title, height=120 + 220 * len(shown), showlegend=len(data) > len(shown), **layout)
