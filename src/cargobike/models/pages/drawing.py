"""Metrics over versions as small figures: SVG that needs no script, and that a screen reader can tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from cargobike.ui.markup import text

_WIDTH: Final = 320
_HEIGHT: Final = 130
_LEFT: Final = 58
_RIGHT: Final = 12
_TOP: Final = 12
_BOTTOM: Final = 22
_MOST_POINTS: Final = 300
_MOST_CIRCLES: Final = 60
_MOST_METRICS: Final = 12


class Chart(NamedTuple):
    """A metric, and its figure."""

    metric: str
    svg: str


def charts(metrics: Mapping[str, Sequence[tuple[int, float]]], marked: Collection[int] = ()) -> list[Chart]:
    """Return a figure for each metric that more than one version has, at most twelve, in alphabetical order.

    Args:
        metrics: Versions and values of each metric, the oldest first.
        marked: Versions that are drawn in another colour: those that aliases point at.
    """
    several = {metric: points for metric, points in metrics.items() if len(points) > 1}
    return [Chart(metric, _drawn(metric, several[metric], set(marked))) for metric in sorted(several)[:_MOST_METRICS]]


def _drawn(metric: str, points: Sequence[tuple[int, float]], marked: set[int]) -> str:
    thinned = _thinned(points, marked)
    low, high = min(value for _, value in points), max(value for _, value in points)
    first, last = points[0][0], points[-1][0]
    span = (high - low) or 1.0

    def place(version: int, value: float) -> tuple[float, float]:
        x = _LEFT + (version - first) / ((last - first) or 1) * (_WIDTH - _LEFT - _RIGHT)
        y = _HEIGHT - _BOTTOM - (value - low) / span * (_HEIGHT - _TOP - _BOTTOM)
        return round(x, 1), round(y, 1)

    places = [(*place(version, value), version, value) for version, value in thinned]
    line = " ".join(f"{x},{y}" for x, y, _, _ in places)
    circles = "".join(
        f'<circle cx="{x}" cy="{y}" r="{4 if version in marked else 2.5}"{_class(version in marked)}>'
        f"<title>version {version}: {value:.6g}</title></circle>"
        for x, y, version, value in places
        if len(places) <= _MOST_CIRCLES or version in marked
    )
    newest = points[-1][1]
    label = f"{metric} of versions {first} to {last}: from {low:.6g} to {high:.6g}, the newest {newest:.6g}"
    base = _HEIGHT - _BOTTOM + 6
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{text(label)}">'
        f'<line class="axis" x1="{_LEFT}" y1="{base}" x2="{_WIDTH - _RIGHT}" y2="{base}"/>'
        f'<text x="{_LEFT - 8}" y="{_TOP + 4}" text-anchor="end">{high:.5g}</text>'
        f'<text x="{_LEFT - 8}" y="{_HEIGHT - _BOTTOM + 2}" text-anchor="end">{low:.5g}</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 2}">version {first}</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 2}" text-anchor="end">{last}</text>'
        f'<polyline class="line" points="{line}"/>{circles}</svg>'
    )


def _class(is_marked: bool) -> str:
    return ' class="marked"' if is_marked else ""


def _thinned(points: Sequence[tuple[int, float]], marked: set[int]) -> list[tuple[int, float]]:
    """Return at most some hundred points: of each stretch the lowest and the highest, so that no peak is lost."""
    if len(points) <= _MOST_POINTS:
        return list(points)
    size = -(-len(points) * 2 // _MOST_POINTS)
    chosen: set[tuple[int, float]] = {points[0], points[-1], *(point for point in points if point[0] in marked)}
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        chosen |= {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
    return sorted(chosen)
