"""Statistics as people and programs read them: numbers, and small figures for notebooks and pages."""

from __future__ import annotations

import html
import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from cargobike.features.statistics import distinct, quantiles, together
from cargobike.features.statistics.states import ColumnState, TableState

SHARES: Final = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
BINS: Final = 20
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WIDTH: Final = 160
_HEIGHT: Final = 32


class ColumnStatistics:
    """Statistics of one column; what makes no sense for its type is `None` or empty."""

    def __init__(self, name: str, state: ColumnState) -> None:
        self.name = name
        self.kind = state.kind
        self.count = state.count
        """How many values there are, nulls not counted."""
        self.nulls = state.nulls
        self.odd = state.odd
        """How many numbers are NaN or infinite."""
        self._state = state
        self._summary = np.frombuffer(state.summary)

    @property
    def min(self) -> Any:
        """The least number or time."""
        return self._shown(self._state.low)

    @property
    def max(self) -> Any:
        """The greatest number or time."""
        return self._shown(self._state.high)

    @property
    def mean(self) -> float | None:
        """The mean of numbers."""
        return self._state.mean if self.kind == "number" and self._state.finite else None

    @property
    def std(self) -> float | None:
        """The standard deviation of numbers, as of a sample."""
        if self.kind != "number" or self._state.finite < 2:
            return None
        return math.sqrt(self._state.squares / (self._state.finite - 1))

    @property
    def distinct(self) -> int | None:
        """How many different values there are; exact up to 256, beyond that within about 2 %."""
        if self.kind == "other" and not any(self._state.different):
            return None
        return distinct.number(self._state.different)

    @property
    def common(self) -> dict[str, int]:
        """The most frequent texts, with how often they occur."""
        return dict(self._state.common)

    def quantile(self, share: float) -> Any:
        """Return the value below which a share of the numbers or times lies; its rank is right within 1 %."""
        if not self._state.finite:
            return None
        return self._shown(quantiles.quantile(self._state.finite, self._summary, share))

    def histogram(self, bins: int = BINS) -> tuple[list[float], list[int]]:
        """Return edges of bins of equal width, and how many numbers are in each; times are seconds since 1970."""
        edges, counts = quantiles.histogram(self._state.finite, self._summary, bins)
        return ([edge / 1e6 for edge in edges] if self.kind == "time" else edges), counts

    def as_json(self) -> dict[str, Any]:
        """Return the documented keys, for programs."""
        edges, counts = self.histogram()
        return {
            "kind": self.kind,
            "count": self.count,
            "nulls": self.nulls,
            "odd": self.odd,
            "min": _plain(self.min),
            "max": _plain(self.max),
            "mean": self.mean,
            "std": self.std,
            "distinct": self.distinct,
            "quantiles": {f"{share:g}": _plain(self.quantile(share)) for share in SHARES} if self._state.finite else {},
            "histogram": {"edges": edges, "counts": counts},
            "common": self.common,
        }

    def svg(self) -> str:
        """Return a small figure: the histogram of numbers and times, or bars of the most frequent texts."""
        counts = self.histogram()[1] or list(self.common.values())[:BINS]
        if not counts:
            return ""
        step, top = _WIDTH / len(counts), max(counts) or 1
        bars = "".join(
            f'<rect x="{place * step:.1f}" y="{_HEIGHT * (1 - count / top):.1f}" width="{max(step - 1, 1):.1f}" '
            f'height="{_HEIGHT * count / top:.1f}"/>'
            for place, count in enumerate(counts)
        )
        label = html.escape(f"How the values of {self.name} are spread")
        return (
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
            f'aria-label="{label}" fill="currentColor">{bars}</svg>'
        )

    def _shown(self, value: float | int | None) -> Any:
        if value is None or self.kind != "time":
            return value
        return _EPOCH + timedelta(microseconds=round(value))


class Statistics:
    """Statistics of the rows of a group after a commit, or of those that one commit wrote."""

    def __init__(self, group: str, version: int, commit: int, state: TableState) -> None:
        self.group = group
        self.version = version
        self.commit = commit
        self.rows = state.rows
        self.state = state
        """What they are read from; states of several groups can be merged."""
        self.columns = {name: ColumnStatistics(name, column) for name, column in state.columns.items()}

    def __getitem__(self, name: str) -> ColumnStatistics:
        return self.columns[name]

    def __repr__(self) -> str:
        return f"<Statistics of {self.group!r}, commit {self.commit}: {self.rows} rows, {len(self.columns)} columns>"

    @property
    def correlations(self) -> dict[str, dict[str, float | None]]:
        """The correlation of each pair of numbers; `None` where one of the two does not vary."""
        return together.correlations(self.state.pairs)

    def as_json(self) -> dict[str, Any]:
        """Return the documented keys, for programs."""
        return {
            "group": self.group,
            "version": self.version,
            "commit": self.commit,
            "rows": self.rows,
            "columns": {name: column.as_json() for name, column in self.columns.items()},
            "correlations": self.correlations,
        }

    def _repr_html_(self) -> str:
        """Return a table with figures, for notebooks."""
        heads = ("column", "values", "nulls", "distinct", "min", "mean", "median", "max", "std", "")
        rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in self.table())
        titles = "".join(f"<th>{title}</th>" for title in heads)
        head = html.escape(f"{self.group}, commit {self.commit}: {self.rows:,} rows")
        return f"<p><b>{head}</b></p><table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"

    def table(self) -> list[tuple[str, ...]]:
        """Return a row of safe HTML for each column: numbers as people read them, then the figure."""
        words = figure_words(self)
        figures = [column.svg() for column in self.columns.values()]
        return [(*map(html.escape, row), figure) for row, figure in zip(words, figures, strict=True)]


def figure_words(statistics: Statistics) -> list[tuple[str, ...]]:
    """Return a row of numbers, as people read them, for each column."""
    return [
        (
            name,
            f"{one.count:,}",
            f"{one.nulls:,}",
            "" if one.distinct is None else f"{one.distinct:,}",
            *(_words(value) for value in (one.min, one.mean, one.quantile(0.5), one.max, one.std)),
        )
        for name, one in statistics.columns.items()
    ]


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _words(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.5g}"
