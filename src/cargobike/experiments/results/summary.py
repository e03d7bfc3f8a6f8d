"""An experiment in a few lines of HTML, for the output of a notebook's cell."""

from __future__ import annotations

from cargobike.analysis.axes import text_of
from cargobike.analysis.figures.look import AMBER, BLUE, comfortable_range
from cargobike.analysis.progress import best_so_far, place_of
from cargobike.analysis.scores import goodness_of, objective_name, scored, thinned
from cargobike.analysis.views import seen_by
from cargobike.core.record import ExperimentRecord
from cargobike.core.values.words import duration, number
from cargobike.ui.markup import text

_BEST = 5
_COLUMNS = 8
_WIDTH, _HEIGHT, _MOST_MARKS = 420, 130, 300


def summary_html(record: ExperimentRecord, *, hidden: int = 0) -> str:
    """Return name, counts, the best trials as a table and the best so far as a drawing.

    The drawing is a plain SVG: it stays when the notebook is closed, published or sent by mail, and takes a few
    kilobytes, not the megabytes of a plotting library.
    """
    record = seen_by(record)
    counts = ", ".join(f"{count:,} {state.value}" for state, count in record.counts.items() if count) or "no trials"
    counts += f", {hidden:,} hidden" if hidden else ""
    name = text(record.header.name or record.id)
    line = f"<b>{name}</b> · {text(record.state.value)} · {counts} · {duration(record.duration_s)}"
    parts = [f'<div style="margin-bottom:4px">{line} <code style="opacity:.6">{text(record.id)}</code></div>']
    if len(scored(record)) > 1:
        parts.append(_drawing(record))
    parts.append(_table(record))
    return f'<div class="cargobike-result" style="overflow-x:auto">{"".join(parts)}</div>'


def _table(record: ExperimentRecord) -> str:
    best = sorted(scored(record), key=lambda trial: (-goodness_of(record)(trial), trial.number))[:_BEST]
    if not best:
        return "<div>No trial has completed with a finite score.</div>"
    names = list(dict.fromkeys(str(name) for trial in best for name in trial.params))
    columns, hidden = names[:_COLUMNS], len(names) - _COLUMNS
    head = "".join(f"<th>{text(word)}</th>" for word in ("trial", objective_name(record), *columns))
    rows = []
    for trial in best:
        cells = [str(trial.number), number(trial.value)]
        cells += [text_of(trial.params[name], 40) if name in trial.params else "" for name in columns]
        rows.append(f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in cells)}</tr>")
    more = f"<th>… {hidden} more</th>" if hidden > 0 else ""
    return f"<table><thead><tr>{head}{more}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _drawing(record: ExperimentRecord) -> str:
    series = best_so_far(record)
    trials = thinned(scored(record), _MOST_MARKS, goodness_of(record))
    values = [trial.value for trial in trials if trial.value is not None]
    low, high = comfortable_range(series.best) or (min(values), max(values))
    low, high = min(low, float(series.best.min())), max(high, float(series.best.max()))
    left, right, top, bottom = 8, 64, 10, 18
    last = max(float(max(record.trials)), 1.0)

    def across(position: float) -> float:
        return left + position / last * (_WIDTH - left - right)

    def down(value: float) -> float:
        share = (min(max(value, low), high) - low) / ((high - low) or 1.0)
        return top + (1 - share) * (_HEIGHT - top - bottom)

    marks = "".join(
        f'<circle cx="{across(place_of(record, trial, "trial")):.1f}" cy="{down(trial.value):.1f}" r="2"/>'
        for trial in trials
        if trial.value is not None
    )
    path = f"M{across(series.at[0]):.1f} {down(series.best[0]):.1f}"
    for position, value in zip(series.at[1:], series.best[1:], strict=True):
        path += f"H{across(position):.1f}V{down(value):.1f}"
    end = down(float(series.best[-1]))
    style = 'font-family="system-ui,sans-serif" font-size="11" fill="currentColor"'
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="best {text(objective_name(record))} so far"><g fill="{BLUE}" opacity="0.55">{marks}</g>'
        f'<path d="{path}" fill="none" stroke="{AMBER}" stroke-width="2.5"/>'
        f'<text x="{_WIDTH - right + 6}" y="{end + 4:.1f}" {style}>{series.best[-1]:.4g}</text>'
        f'<text x="{left}" y="{_HEIGHT - 4}" {style} opacity="0.7">best {text(objective_name(record)[:40])} so far, '
        f"by trial</text></svg>"
    )
