"""A small table in a notebook's output, updated in place."""

from __future__ import annotations

import secrets

from cargobike.core.record import ExperimentRecord
from cargobike.experiments.display import text as words
from cargobike.experiments.display.drawn import DrawnDisplay
from cargobike.experiments.display.plain import plain_line
from cargobike.experiments.display.snapshot import ProgressSnapshot

_PAUSE_S = 0.33
_IDLE_PAUSE_S = 1.0
# Mid tones that can be read on white and on black; everything else takes the page's own colours.
_COLOURS = {"completed": "#2e9e5b", "stopped": "#c98a1b", "failed": "#d64545"}

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


class NotebookDisplay(DrawnDisplay):
    """Shows HTML without scripts or style sheets, and plain text where HTML is not shown.

    It is drawn at most three times a second: every update is a message to the browser.
    """

    def __init__(self, record: ExperimentRecord) -> None:
        super().__init__(record)
        self._display_id = f"cargobike-{secrets.token_hex(8)}"
        self._is_shown = False

    def _is_due(self, now_s: float) -> bool:
        return self._is_next_frame(now_s, pause_s=_PAUSE_S, idle_pause_s=_IDLE_PAUSE_S)

    def _draw(self, snapshot: ProgressSnapshot) -> None:
        # An optional library, loaded already wherever this display is chosen.
        from IPython.display import display  # noqa: PLC0415

        content = {"text/html": page(snapshot), "text/plain": plain_line(snapshot, shows_failure=True)}
        if self._is_shown:
            display(content, raw=True, display_id=self._display_id, update=True)
        else:
            display(content, raw=True, display_id=self._display_id)
            self._is_shown = True

    def _draw_last(self, snapshot: ProgressSnapshot) -> None:
        self._draw(snapshot)


def page(snapshot: ProgressSnapshot) -> str:
    """Return an experiment's state as self-contained HTML; everything that users named is escaped."""
    rows = [("trials", _counts(snapshot))]
    best = words.best(snapshot)
    if best is not None:
        chosen = words.best_params(snapshot)
        text = f"<b>{_escape(best)}</b>"
        rows.append(("best", text + (f"<br><code>{_escape(chosen)}</code>" if chosen else "")))
    newest = words.latest(snapshot)
    if newest is not None:
        rows.append(("latest", _escape(newest)))
    rows.append(("time", _escape(" · ".join(words.pace(snapshot)))))
    if not snapshot.is_final:
        rows.append(("workers", _escape(words.workers(snapshot))))
    if snapshot.data_pace is not None:
        rows.append(("data", _escape(str(snapshot.data_pace))))
    if snapshot.reason:
        rows.append(("reason", _escape(words.clean(snapshot.reason))))
    if snapshot.failures:
        last = snapshot.failures[-1]
        text = _escape(f"trial {last.trial}: {words.clean(last.line)}")
        rows.append(("failed", f'<span style="color:{_COLOURS["failed"]}">{text}</span>'))
    name = _escape(words.clean(snapshot.name, 40) or "experiment")
    return (
        '<div style="max-width:46em;color:inherit;line-height:1.5">'
        f"<div><b>{name}</b> · {_escape(words.clean(snapshot.phase, 40))}"
        f' <span style="opacity:.6;float:right">{_escape(snapshot.experiment_id)}</span></div>'
        f"{_bar(snapshot)}"
        '<table style="border:none;margin:0;background:transparent;color:inherit">'
        + "".join(_row(label, text) for label, text in rows)
        + "</table></div>"
    )


def _bar(snapshot: ProgressSnapshot) -> str:
    if not snapshot.total:
        return ""
    parts = ""
    for word, count in (
        ("completed", snapshot.completed),
        ("stopped", snapshot.stopped),
        ("failed", snapshot.failed),
    ):
        percent = 100 * count / max(snapshot.total, snapshot.ended)
        parts += f'<div style="width:{percent:.2f}%;background:{_COLOURS[word]}"></div>'
    return (
        '<div style="display:flex;height:.6em;margin:.3em 0;border-radius:.3em;overflow:hidden;'
        f'background:rgba(127,127,127,.25)">{parts}</div>'
    )


def _counts(snapshot: ProgressSnapshot) -> str:
    parts = [_escape(words.ended_of_total(snapshot))]
    for word, count in words.counts(snapshot):
        colour = f' style="color:{_COLOURS[word]}"' if count and word in _COLOURS else ""
        parts.append(f"<span{colour}>{count:,} {word}</span>")
    return " · ".join(parts)


def _row(label: str, text: str) -> str:
    cell = "border:none;background:transparent;text-align:left;vertical-align:top;padding:.1em .8em .1em 0"
    return f'<tr><td style="{cell};opacity:.6">{label}</td><td style="{cell}">{text}</td></tr>'


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)
