"""Judgements in records: every figure, which columns moved, and each column in the reference and now."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from cargobike.core.values.words import number
from cargobike.monitoring.judging.marginals import shares_of
from cargobike.monitoring.judging.measuring import PAIRED, Measuring, Statistics
from cargobike.monitoring.records import Comparison, Figure, Shift, Side
from cargobike.monitoring.states.distinct import count_of
from cargobike.monitoring.states.layout import CategoryColumn, Floats, Layout, NumberColumn
from cargobike.monitoring.states.state import State

_TELLING: Final = ("unseen", "missing", "mean", "wasserstein", "ks", "psi", "js", "correlation")
"""Statistics of columns and pairs; of several that are equally unusual, the first one tells most."""
_CONTRIBUTING: Final = 3
_UNSEEN, _OTHERS = "never seen before", "all others"

Figures = dict[str, dict[str, Figure]]


def figures_of(measuring: Measuring, measured: Statistics, probabilities: Statistics) -> Figures:
    """Return the statistics of one window by name and subject."""
    return {
        name: {
            subject: Figure(value=float(value), probability=float(probability))
            for subject, value, probability in zip(
                measuring.subjects(name), values[0], probabilities[name][0], strict=True
            )
        }
        for name, values in measured.items()
    }


def shifts_of(figures: Figures, rate: float) -> tuple[Shift, ...]:
    """Return what moved: each column and pair that is an alarm by itself, or those nearest to one if none is."""
    best: dict[str, Shift] = {}
    for statistic in _TELLING:
        for subject, figure in figures.get(statistic, {}).items():
            if subject not in best or figure.probability < best[subject].probability:
                best[subject] = Shift(
                    feature=subject,
                    statistic=statistic,
                    size=figure.value,
                    probability=figure.probability,
                    is_certain=figure.probability <= rate,
                )
    ordered = sorted(best.values(), key=lambda shift: (shift.probability, -shift.size, shift.feature))
    certain = [shift for shift in ordered if shift.is_certain]
    moved = {shift.feature for shift in certain if shift.statistic != "correlation"}
    # A column that moved by itself has other correlations too, which are no news.
    news = [shift for shift in certain if not (shift.statistic == "correlation" and moved & set(_pair(shift)))]
    return tuple(news) or tuple(ordered[:_CONTRIBUTING])


def _pair(shift: Shift) -> list[str]:
    return shift.feature.split(PAIRED)


def compare(layout: Layout, reference: State, now: State) -> tuple[Comparison, ...]:
    """Return every column in the reference and now."""
    numbers = [
        Comparison(
            name=column.name,
            type=column.type,
            labels=_bin_labels(column),
            reference=_number_side(column, reference, place),
            now=_number_side(column, now, place),
            unseen={},
        )
        for place, column in enumerate(layout.numbers)
    ]
    categories = [
        Comparison(
            name=column.name,
            type=column.type,
            labels=(*column.categories, _OTHERS, _UNSEEN),
            reference=_category_side(layout, column, reference, place),
            now=_category_side(layout, column, now, place),
            unseen={name: count for name, (_, count) in now.unseen[place].items()},
        )
        for place, column in enumerate(layout.categories)
    ]
    return (*numbers, *categories)


def _bin_labels(column: NumberColumn) -> tuple[str, ...]:
    edges = [number(column.centre + column.scale * edge) for edge in column.edges]
    return (f"below {edges[0]}", *(f"from {edge}" for edge in edges)) if edges else ("any",)


def _number_side(column: NumberColumn, state: State, place: int) -> Side:
    cells = state.bins[place].astype(np.float64)
    there = int(cells[:-1].sum() - state.infinite[place])
    mean = state.total[place] / max(there, 1)
    variance = max(state.squares[place] / max(there, 1) - mean**2, 0.0)

    def shown(value: float, offset: float) -> float | None:
        answer = offset + column.scale * float(value)
        return answer if there and math.isfinite(answer) else None

    return Side(
        rows=state.rows,
        missing=float(cells[-1]) / max(state.rows, 1),
        distinct=count_of(state.hashes[place]),
        mean=shown(mean, column.centre),
        deviation=shown(math.sqrt(variance), 0.0),
        lowest=shown(state.lowest[place], column.centre),
        highest=shown(state.highest[place], column.centre),
        infinite=int(state.infinite[place]),
        shares=_shares(cells[: len(column.edges) + 1]),
    )


def _category_side(layout: Layout, column: CategoryColumn, state: State, place: int) -> Side:
    cells = state.kinds[place].astype(np.float64)
    named = len(column.categories) + 1
    return Side(
        rows=state.rows,
        missing=float(cells[-1]) / max(state.rows, 1),
        distinct=count_of(state.hashes[len(layout.numbers) + place]),
        mean=None,
        deviation=None,
        lowest=None,
        highest=None,
        infinite=0,
        shares=_shares(np.append(cells[:named], cells[-2])),
    )


def _shares(cells: Floats) -> tuple[float, ...]:
    return tuple(float(share) for share in shares_of(cells))
