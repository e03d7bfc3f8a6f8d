"""The figures of a benchmark: convergence, speed against workers and against size, and the share of communication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from cargobike.analysis.figures.look import AMBER, BLUE, GREEN, GREY, VERMILION, Spec, figure
from cargobike.bench.cases import SIZES, WAYS, Case, Outcome, Way
from cargobike.core.values.words import count

_LOOKS: Final[dict[str, tuple[str, str, str]]] = {
    Way.ONE: (GREY, "circle-open", "dot"),
    Way.ALLREDUCE: (BLUE, "circle", "solid"),
    Way.PS_SYNC: (AMBER, "square", "solid"),
    Way.PS_ASYNC: (VERMILION, "diamond", "dash"),
    Way.LOCAL_SGD: (GREEN, "triangle-up", "solid"),
}
"""Colour, mark and line style of each way: none is told by its colour alone."""
_ROUND: Final = [digit * 10.0**power for power in range(-6, 9) for digit in (1, 2, 5)]
_LOG: Final[dict[str, Any]] = {"type": "log", "tickvals": _ROUND, "ticktext": [f"{number:,g}" for number in _ROUND]}
"""A logarithmic axis whose numbers are written out."""


def draw_convergence(outcomes: Sequence[Outcome], model: str) -> Spec:
    """Draw the loss on held-out rows against the seconds of training, for one network."""
    shown = [each for each in outcomes if each.case.model == model and each.curve]
    data = [
        {
            **_trace(each.case.way),
            "x": [seconds for _, seconds, _ in each.curve],
            "y": [loss for _, _, loss in each.curve],
            "customdata": [step for step, _, _ in each.curve],
            "hovertemplate": "step %{customdata}, %{x:.2f} s: %{y:.4g}<extra></extra>",
        }
        for each in _with_most_workers(shown)
    ]
    note = f"{SIZES[model].parameters:,} parameters, {count(_most(shown), 'worker')} · less is better"
    return figure(
        data,
        f"Convergence: {model}",
        note,
        xaxis={"title": {"text": "seconds of training"}, "rangemode": "tozero"},
        yaxis={"title": {"text": "loss on held-out rows"}, **_LOG},
    )


def draw_speed_by_workers(outcomes: Sequence[Outcome], model: str) -> Spec:
    """Draw images per second against the number of workers, for one network."""
    shown = [each for each in outcomes if each.case.model == model]
    counts = sorted({each.case.workers for each in shown})
    ways = _by_way(shown)
    data = [_speeds(its, "workers") for way, its in ways.items() if way != Way.ONE]
    for alone in ways.get(Way.ONE, ()):
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "as many times one process",
                "x": counts,
                "y": [alone.images_per_s * count for count in counts],
                "line": {"color": GREY, "dash": "dot", "width": 1.5},
                "hoverinfo": "skip",
            }
        )
        data.append(_speeds([alone], "workers"))
    return figure(
        data,
        f"Speed against workers: {model}",
        f"{SIZES[model].parameters:,} parameters · more is better, bars are one standard error",
        xaxis={"title": {"text": "workers"}, "dtick": 1 if max(counts, default=1) <= 16 else None},
        yaxis={"title": {"text": "images per second"}, "rangemode": "tozero"},
    )


def draw_speed_by_size(outcomes: Sequence[Outcome]) -> Spec:
    """Draw images per second against the number of parameters, with the most workers that were measured."""
    data = [_speeds(its, "parameters") for its in _by_way(_with_most_workers(outcomes)).values()]
    return figure(
        data,
        "Speed against model size",
        f"{count(_most(outcomes), 'worker')} · more is better, bars are one standard error",
        xaxis={"title": {"text": "parameters"}, "type": "log", "tickvals": [SIZES[name].parameters for name in SIZES],
               "ticktext": [f"{SIZES[name].parameters / 1e6:.1f} M<br>{name}" for name in SIZES]},
        yaxis={"title": {"text": "images per second"}, **_LOG},
    )  # fmt: skip


def draw_communication(outcomes: Sequence[Outcome]) -> Spec:
    """Draw which share of a step's time is not computing, for each way and network."""
    shown = [each for each in _with_most_workers(outcomes) if each.case.way != Way.ONE]
    models = [name for name in SIZES if any(each.case.model == name for each in shown)]
    data = []
    for way, its in _by_way(shown).items():
        found = {each.case.model: 100 * each.communication for each in its}
        shares = [found.get(name) for name in models]
        colour, _, dash = _LOOKS[way]
        data.append(
            {
                "type": "bar",
                "name": WAYS[way],
                "x": [f"{name}, {SIZES[name].parameters / 1e6:.1f} M" for name in models],
                "y": shares,
                "text": ["" if share is None else f"{share:.0f} %" for share in shares],
                "textposition": "outside",
                "cliponaxis": False,
                "marker": {"color": colour, "pattern": {"shape": "/" if dash == "dash" else ""}},
                "hovertemplate": "%{x}: %{y:.1f} %<extra></extra>",
            }
        )
    return figure(
        data,
        "Time spent in communication",
        f"{count(_most(outcomes), 'worker')} · what a step takes longer than the same step without any exchange",
        xaxis={"title": {"text": ""}},
        yaxis={"title": {"text": "share of a step (%)"}, "range": [0, 105]},
    )


def _speeds(outcomes: Sequence[Outcome], by: str) -> dict[str, Any]:
    ordered = sorted(outcomes, key=lambda each: _place(each.case, by))
    return {
        **_trace(ordered[0].case.way),
        "x": [_place(each.case, by) for each in ordered],
        "y": [each.images_per_s for each in ordered],
        "error_y": {"type": "data", "array": [each.uncertainty for each in ordered], "thickness": 1.2},
        "hovertemplate": "%{x:,}: %{y:,.0f} images/s<extra></extra>",
    }


def _place(case: Case, by: str) -> int:
    return case.workers if by == "workers" else SIZES[case.model].parameters


def _trace(way: str) -> dict[str, Any]:
    colour, symbol, dash = _LOOKS[way]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": WAYS[way],
        "line": {"color": colour, "dash": dash, "width": 2.2},
        "marker": {"color": colour, "symbol": symbol, "size": 9},
    }


def _by_way(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """Return the outcomes of each way that there are any of, in the order of ways."""
    found = {way: [each for each in outcomes if each.case.way == way] for way in WAYS}
    return {way: its for way, its in found.items() if its}


def _most(outcomes: Sequence[Outcome]) -> int:
    return max((each.case.workers for each in outcomes), default=1)


def _with_most_workers(outcomes: Sequence[Outcome]) -> list[Outcome]:
    most = _most(outcomes)
    return [each for each in outcomes if each.case.way == Way.ONE or each.case.workers == most]
