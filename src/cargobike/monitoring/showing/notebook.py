"""Judgements as HTML: what moved, and each column in the reference against now. All text is escaped."""

from __future__ import annotations

from typing import Final

from cargobike.core.values.words import MISSING
from cargobike.monitoring.records import Comparison, Judged
from cargobike.monitoring.showing.text import before_and_after, headline, sentence
from cargobike.ui.markup import text

_MOST_COLUMNS: Final = 12
_WIDTH, _HEIGHT = 168, 44

STYLE: Final = """
.drift{--line:#8885;--then:#8a94a6;--now:#2f6fde;--bad:#c62f3b;--good:#1d7f49;font:14px/1.45 system-ui,sans-serif}
@media (prefers-color-scheme:dark){.drift{--then:#7f8796;--now:#7aa7ff;--bad:#ff7b84;--good:#5fce8f}}
.drift h3{margin:.2em 0 .6em;font-size:1.1em}.drift h3.bad{color:var(--bad)}.drift h3.good{color:var(--good)}
.drift table{border-collapse:collapse}.drift td,.drift th{padding:4px 12px 4px 0;text-align:left;vertical-align:middle;
border-bottom:1px solid var(--line);font-variant-numeric:tabular-nums}.drift td.n,.drift th.n{text-align:right}
.drift .key{margin:.6em 0}.drift .key i{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 .9em}
.drift .moved{color:var(--bad);font-weight:600}.drift svg{display:block}.drift .scroll{overflow-x:auto}
"""


def as_html(judgement: Judged, *, most: int = _MOST_COLUMNS) -> str:
    """Return a judgement as a piece of a page, with a style of its own."""
    kind = "bad" if judgement.alarm else "good"
    head = f'<h3 class="{kind}">{text(headline(judgement))}</h3>'
    return f'<div class="drift"><style>{STYLE}</style>{head}{shifts(judgement)}{columns(judgement, most=most)}</div>'


def shifts(judgement: Judged) -> str:
    """Return what moved as a list."""
    items = "".join(f"<li><b>{text(shift.feature)}</b>: {text(sentence(shift))}</li>" for shift in judgement.features)
    return f"<ul>{items}</ul>" if items else ""


def columns(judgement: Judged, *, most: int) -> str:
    """Return columns in the reference against now as a table, those that moved first."""
    rank = {shift.feature: place for place, shift in enumerate(judgement.features)}
    ordered = sorted(judgement.columns, key=lambda column: rank.get(column.name, len(rank)))
    rows = "".join(_row(judgement, column, column.name in rank) for column in ordered[:most])
    more = f"<p>… and {len(ordered) - most} more columns</p>" if len(ordered) > most else ""
    key = (
        '<p class="key"><i style="background:var(--then)"></i>reference, '
        f"{judgement.reference_rows:,} rows<i style='background:var(--now)'></i>now, {judgement.rows:,} rows</p>"
    )
    heads = '<tr><th>column</th><th>reference and now</th><th></th><th class="n">PSI</th><th class="n">chance</th></tr>'
    return f'{key}<div class="scroll"><table><thead>{heads}</thead><tbody>{rows}</tbody></table></div>{more}'


def _row(judgement: Judged, column: Comparison, has_moved: bool) -> str:
    figures = [subjects[column.name] for subjects in judgement.statistics.values() if column.name in subjects]
    likely = min((figure.probability for figure in figures), default=1.0)
    index = judgement.statistics.get("psi", {}).get(column.name)
    mark = ' class="moved"' if has_moved else ""
    size = MISSING if index is None else f"{index.value:.4f}"
    return (
        f"<tr><td{mark}>{text(column.name)}</td><td>{drawing(column)}</td><td>{text(before_and_after(column))}</td>"
        f'<td class="n">{size}</td><td class="n">{likely:.2%}</td></tr>'
    )


def drawing(column: Comparison) -> str:
    """Return the shares of bins or categories, reference beside now, as an SVG drawing."""
    then, now = column.reference.shares, column.now.shares
    highest = max((*then, *now), default=0.0) or 1.0
    step = _WIDTH / max(len(then), 1)
    bars = []
    for place, (label, old, new) in enumerate(zip(column.labels, then, now, strict=True)):
        words = text(f"{label}: {old:.1%} in the reference, {new:.1%} now")
        tops = [(_HEIGHT * share / highest, colour) for share, colour in ((old, "then"), (new, "now"))]
        bars.append(f"<g><title>{words}</title>")
        for side, (height, colour) in enumerate(tops):
            left = place * step + side * step * 0.42 + step * 0.08
            bars.append(
                f'<rect x="{left:.1f}" y="{_HEIGHT - height:.1f}" width="{step * 0.42:.1f}" height="{height:.1f}" '
                f'fill="var(--{colour})"/>'
            )
        bars.append("</g>")
    label = text(f"{column.name}: reference against now")
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{label}">{"".join(bars)}</svg>'
