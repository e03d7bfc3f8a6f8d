"""Monitors as small figures: SVG that needs no script, and that a screen reader can tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from cargobike.monitoring.facts import WindowJudged
from cargobike.monitoring.records import Comparison
from cargobike.ui.markup import text

_MOST_CELLS: Final = 240
_MOST_BANDS: Final = 40
_WIDTH, _HEIGHT = 320, 130
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 12, 22
_UNUSUAL, _RARE = 0.05, 0.01
_LEVELS: Final = ((_RARE, "rare"), (_UNUSUAL, "unusual"), (0.25, "hint"))


class Band(NamedTuple):
    """A feature over time: a cell for each window, or for each stretch of windows."""

    feature: str
    svg: str
    unusual: int
    last: float


def bands(windows: Sequence[WindowJudged]) -> tuple[list[Band], int]:
    """Return features over time, the most unusual first, and how many features there are in all."""
    judged = [window for window in windows if not window.reason]
    size = max(1, -(-len(judged) // _MOST_CELLS))
    lowest: dict[str, float] = {}
    for window in judged:
        for name, probability in window.drift.items():
            if probability < lowest.get(name, 2.0):
                lowest[name] = probability
    names = sorted(lowest, key=lambda name: (lowest[name], name))
    stretches = [judged[start : start + size] for start in range(0, len(judged), size)]
    return [_band(name, judged, stretches) for name in names[:_MOST_BANDS]], len(names)


def _band(name: str, judged: Sequence[WindowJudged], stretches: Sequence[Sequence[WindowJudged]]) -> Band:
    cells = []
    for place, stretch in enumerate(stretches):
        worst = min(stretch, key=lambda window: window.drift.get(name, 1.0))
        chance = worst.drift.get(name, 1.0)
        level = next((word for limit, word in _LEVELS if chance <= limit), "")
        if level:
            cells.append(
                f'<rect class="{level}" x="{place}" y="0" width="1" height="1">'
                f"<title>window {worst.number}: {chance:.2%} by chance</title></rect>"
            )
    unusual = sum(window.drift.get(name, 1.0) <= _UNUSUAL for window in judged)
    last = judged[-1].drift.get(name, 1.0)
    label = f"{name}: unusual in {unusual} of {len(judged)} windows; in the last one {last:.1%} likely by chance"
    svg = (
        f'<svg class="drift-band" viewBox="0 0 {len(stretches)} 1" preserveAspectRatio="none" role="img" '
        f'aria-label="{text(label)}"><rect class="usual" x="0" y="0" width="{len(stretches)}" height="1"/>'
        f"{''.join(cells)}</svg>"
    )
    return Band(name, svg, unusual, last)


def line(label: str, points: Sequence[tuple[float, float]], ends: tuple[str, str]) -> str:
    """Return values over time.

    Args:
        label: What they are.
        points: Times and values, the oldest first; at least one.
        ends: The first and the last time, in words.
    """
    thinned = _thinned(points)
    low, high = min(value for _, value in thinned), max(value for _, value in thinned)
    first, last = thinned[0][0], thinned[-1][0]

    def place(at: float, value: float) -> str:
        x = _LEFT + (at - first) / ((last - first) or 1) * (_WIDTH - _LEFT - _RIGHT)
        y = _HEIGHT - _BOTTOM - (value - low) / ((high - low) or 1.0) * (_HEIGHT - _TOP - _BOTTOM)
        return f"{x:.1f},{y:.1f}"

    base = _HEIGHT - _BOTTOM + 6
    said = f"{label}, {ends[0]} to {ends[1]}: from {low:.4g} to {high:.4g}, the last {thinned[-1][1]:.4g}"
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{text(said)}">'
        f'<line class="axis" x1="{_LEFT}" y1="{base}" x2="{_WIDTH - _RIGHT}" y2="{base}"/>'
        f'<text x="{_LEFT - 8}" y="{_TOP + 4}" text-anchor="end">{_short(high)}</text>'
        f'<text x="{_LEFT - 8}" y="{_HEIGHT - _BOTTOM + 2}" text-anchor="end">{_short(low)}</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 2}">{text(ends[0])}</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 2}" text-anchor="end">{text(ends[1])}</text>'
        f'<polyline class="line" points="{" ".join(place(*point) for point in thinned)}"/></svg>'
    )


def _short(value: float) -> str:
    """Return a number as there is room for it beside an axis: `0.25`, `950`, `117k`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Return at most some hundred points: of each stretch the lowest and the highest, so that no peak is lost."""
    if len(points) <= _MOST_CELLS:
        return points
    size = -(-len(points) * 2 // _MOST_CELLS)
    chosen = {points[0], points[-1]}
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        chosen |= {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
    return sorted(chosen)


def shares(column: Comparison) -> str:
    """Return a column in the reference and now, as two rows of bars, one behind the other."""
    count = max(len(column.labels), 1)
    most = max([*column.reference.shares, *column.now.shares, 1e-9])
    room, height = 168 / count, 44
    bars = []
    for side, values in (("then", column.reference.shares), ("now", column.now.shares)):
        for place, share in enumerate(values):
            x = place * room + (0 if side == "then" else room * 0.42)
            tall = height * share / most
            name = column.labels[place] if place < len(column.labels) else ""
            bars.append(
                f'<rect class="{side}" x="{x:.1f}" y="{height - tall:.1f}" width="{room * 0.5:.1f}" '
                f'height="{tall:.1f}"><title>{text(name)}: {share:.1%}</title></rect>'
            )
    label = f"{column.name}: shares of {count} cells in the reference and now"
    return f'<svg class="shares" viewBox="0 0 168 {height}" role="img" aria-label="{text(label)}">{"".join(bars)}</svg>'
