"""Results as Markdown tables and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from rig.measuring import Measurement, Samples, Target


def render(measurement: Measurement, samples: Samples) -> str:
    """Return the table of one measurement: medians, the range of the first figure, and ratios."""
    figure, reference = measurement.compare
    heads = ["system", *(head for _, head, _ in measurement.columns), f"× {reference}", "range", "runs"]
    rows = []
    for label in [*samples.runs, *(name for name in samples.errors if name not in samples.runs)]:
        cells = [label]
        for name, _, form in measurement.columns:
            value = samples.median(label, name)
            cells.append("–" if value is None else number(value, form))
        ratio = samples.ratio(label, reference, figure)
        cells.append("–" if ratio is None else number(ratio))
        values, form = samples.of(label, figure), _form(measurement, figure)
        cells.append(f"{number(min(values), form)} … {number(max(values), form)}" if len(values) > 1 else "–")
        cells.append("failed" if label in samples.errors else str(len(samples.runs[label])))
        rows.append(cells)
    text = [f"### {measurement.title}", "", *lines(heads, rows)]
    if measurement.note:
        text += ["", measurement.note]
    if samples.load:
        text += ["", f"Load average during the runs: {min(samples.load)} … {max(samples.load)}."]
    return "\n".join(text)


def render_targets(targets: Sequence[tuple[str, Target]], head: str = "### Targets") -> str:
    """Return the table of all promises, below a heading."""
    words = {True: "met", False: "MISSED", None: "not measured"}
    rows = [[name, target.text, target.found, words[target.met], target.kind] for name, target in targets]
    return "\n".join([head, "", *lines(["measurement", "target", "found", "", "kind"], rows)])


def as_json(samples: Samples, targets: Sequence[Target]) -> dict[str, Any]:
    """Return everything that was measured, for machines."""
    cases: dict[str, Any] = {}
    for label, runs in samples.runs.items():
        names = sorted({name for run in runs for name in run})
        cases[label] = {name: _summary(samples.of(label, name)) for name in names}
    return {
        "cases": cases,
        "errors": samples.errors,
        "leftover_processes": {label: count for label, count in samples.leftovers.items() if count},
        "load_average": samples.load,
        "targets": [
            {"text": target.text, "found": target.found, "met": target.met, "kind": target.kind} for target in targets
        ],
    }


def number(value: float, form: str = "") -> str:
    """Format a figure; without a format with three digits that count, and never in powers of ten."""
    if form:
        return format(value, form)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _summary(values: list[float]) -> dict[str, Any]:
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "samples": values}


def _form(measurement: Measurement, figure: str) -> str:
    return next((form for name, _, form in measurement.columns if name == figure), "")


def lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table of Markdown, a line each."""
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return [line(heads), line(["-" * width for width in widths]), *(line(row) for row in rows)]
