"""The report of a monitor: what happened over time, in one file that needs nothing else."""

from __future__ import annotations

from typing import Final

from cargobike.core.values.times import on_calendar
from cargobike.monitoring.facts import WindowJudged
from cargobike.monitoring.record import Alarm, MonitorRecord
from cargobike.monitoring.records import Judged
from cargobike.monitoring.showing.notebook import STYLE, columns
from cargobike.monitoring.showing.page import LOOK
from cargobike.ui.markup import fact_list, security_policy, text

_MOST_WINDOWS: Final = 200
_MOST_FEATURES: Final = 40
_MOST_MOVED: Final = 8
_CELL: Final = 7

_MORE: Final = """
.drift .band rect{shape-rendering:crispEdges}.drift .band td:first-child{max-width:16em;overflow:hidden;
text-overflow:ellipsis;white-space:nowrap}.drift .band td{border:0;padding-top:1px;padding-bottom:1px}
"""


def report_of(record: MonitorRecord, last: Judged | None, at_s: float) -> str:
    """Return a monitor as a page of HTML.

    Args:
        record: What its journal says.
        last: Everything about the last window that was judged, if that is kept.
        at_s: When this is written.
    """
    watched = record.watched
    size = f"{watched.window.rows:,} rows" if watched.window.rows else f"{watched.window.seconds:g} s"
    facts = {
        "watched": f"{watched.kind} {watched.subject}",
        "reference": watched.reference,
        "windows": f"of {size}; {len(record.windows):,} until now",
        "alarm": f"{watched.alarm} windows unusual, {watched.false_alarms:.1%} false alarms",
        "written": f"{on_calendar(at_s):%Y-%m-%d %H:%M} UTC",
    }
    if watched.left_out:
        facts["not judged"] = "; ".join(f"{name}: {reason}" for name, reason in watched.left_out.items())
    if record.trouble:
        facts["trouble"] = record.trouble
    title = f"{record.name}: {_headline(record)}"
    now = f"<h2>The last window against the reference</h2>{columns(last, most=len(last.columns))}" if last else ""
    return "".join(
        [
            "<!doctype html>\n<html lang=en><head><meta charset=utf-8>",
            security_policy([]),
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{text(title)}</title><style>{STYLE}{LOOK}{_MORE}</style></head><body><main class=drift>",
            f'<h1 class="{"bad" if record.is_drifting else "good"}">{text(title)}</h1>{fact_list(facts)}',
            f"<h2>Alarms</h2>{_alarms(record.alarms)}",
            f"<h2>Features over time</h2>{_timeline(record.windows)}",
            f"<h2>Errors where labels came</h2>{_errors(record)}" if record.errors else "",
            now,
            "</main></body></html>\n",
        ]
    )


def _headline(record: MonitorRecord) -> str:
    count = len(record.open_alarms)
    if count:
        return f"{count} open {'alarm' if count == 1 else 'alarms'}"
    return "drifting, which was acknowledged" if record.is_drifting else "no alarm"


def _alarms(alarms: list[Alarm]) -> str:
    if not alarms:
        return "<p>None was raised.</p>"
    rows = "".join(
        f"<tr><td>{text(alarm.id)}</td><td>{text(alarm.state)}</td><td>{_moment(alarm.raised.since)}</td>"
        f"<td>{text(alarm.raised.text)}{_moved(alarm)}</td><td>{text(_seen_by(alarm))}</td></tr>"
        for alarm in reversed(alarms)
    )
    heads = "<tr><th>alarm</th><th>state</th><th>since</th><th></th><th>seen by</th></tr>"
    return f"<div class=scroll><table><thead>{heads}</thead><tbody>{rows}</tbody></table></div>"


def _moved(alarm: Alarm) -> str:
    items = "".join(
        f"<li>{text(moved.feature)}: {text(moved.reference)} → {text(moved.now)}</li>"
        for moved in alarm.raised.moved[:_MOST_MOVED]
        if moved.reference
    )
    return f"<ul>{items}</ul>" if items else ""


def _seen_by(alarm: Alarm) -> str:
    seen = alarm.acknowledged
    return "" if seen is None else f"{seen.by}: {seen.note}" if seen.note else seen.by


def _timeline(windows: list[WindowJudged]) -> str:
    """Return a band for each feature: a cell for each window, the darker the less likely by chance."""
    judged = [window for window in windows if not window.reason][-_MOST_WINDOWS:]
    if not judged:
        return "<p>No window was judged yet.</p>"
    worst: dict[str, float] = {}
    for window in judged:
        for name, probability in window.drift.items():
            worst[name] = min(worst.get(name, 1.0), probability)
    names = sorted(worst, key=lambda name: (worst[name], name))
    rows = "".join(_band(name, judged) for name in names[:_MOST_FEATURES])
    more = f"<p>… and {len(names) - _MOST_FEATURES} more features</p>" if len(names) > _MOST_FEATURES else ""
    span = f"<p>From {_moment(judged[0].first_at)} to {_moment(judged[-1].last_at)}, a cell for each window.</p>"
    return f'{span}<div class=scroll><table class="band"><tbody>{rows}</tbody></table></div>{more}'


def _band(name: str, windows: list[WindowJudged]) -> str:
    cells = []
    for place, window in enumerate(windows):
        chance = window.drift.get(name, 1.0)
        strength = 1.0 if chance <= 0.01 else 0.75 if chance <= 0.05 else 0.35 if chance <= 0.25 else 0.12
        color = "var(--bad)" if chance <= 0.05 else "var(--now)"
        words = f"window {window.number}, {_moment(window.first_at)}: chance {chance:.2%}"
        cells.append(
            f'<rect x="{place * _CELL}" y="0" width="{_CELL - 1}" height="16" fill="{color}" '
            f'fill-opacity="{strength}"><title>{text(words)}</title></rect>'
        )
    picture = (
        f'<svg role="img" aria-label="{text(name)}" width="{len(windows) * _CELL}" height="16">{"".join(cells)}</svg>'
    )
    return f"<tr><td>{text(name)}</td><td>{picture}</td></tr>"


def _errors(record: MonitorRecord) -> str:
    names = list(dict.fromkeys(name for error in record.errors for name in error.metrics))
    rows = "".join(
        f'<tr><td>{_moment(error.first_at)}</td><td class="n">{error.rows:,}</td>'
        + "".join(
            f'<td class="n">{error.metrics[name]:.4g}</td>' if name in error.metrics else "<td></td>" for name in names
        )
        + f'<td class="n">{error.model_version}</td></tr>'
        for error in record.errors[-_MOST_WINDOWS:]
        if error.rows
    )
    heads = "".join(f'<th class="n">{text(name)}</th>' for name in names)
    return (
        f'<div class=scroll><table><thead><tr><th>requests from</th><th class="n">rows</th>{heads}'
        f'<th class="n">version</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _moment(at_s: float) -> str:
    return f"{on_calendar(at_s):%Y-%m-%d %H:%M}" if at_s else ""
