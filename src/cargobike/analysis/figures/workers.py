"""The figure of workers: who was busy with what, and who waited."""

from __future__ import annotations

from cargobike.analysis.figures.look import STATES, Spec, empty, escaped, figure, seconds_as
from cargobike.analysis.timeline import OUTCOMES, Busy, WorkerTime, timeline
from cargobike.core.record import ExperimentRecord
from cargobike.core.values.words import count

_WAITING = "rgba(128,134,144,0.18)"


def draw_timeline(record: ExperimentRecord) -> Spec:
    """Draw every worker's time as a row: coloured while it ran a trial, grey while it had nothing to do."""
    title = "Worker timeline"
    found = timeline(record)
    if not found.workers:
        return empty(title, "No worker has joined yet.")
    size, unit = seconds_as(record.duration_s)
    names = {worker.name: escaped(worker.name, 24) for worker in found.workers}
    common: Spec = {"type": "bar", "orientation": "h", "hoverinfo": "text"}
    data: list[Spec] = [
        {
            **common,
            "name": "idle",
            "y": [names[worker.name] for worker in found.workers],
            "base": [worker.joined_s / size for worker in found.workers],
            "x": [(worker.left_s - worker.joined_s) / size for worker in found.workers],
            "marker": {"color": _WAITING, "line": {"width": 0}},
            "hovertext": [_about(worker) for worker in found.workers],
        }
    ]
    for outcome in OUTCOMES:
        bars = [each for each in found.busy if each.outcome == outcome]
        if not bars:
            continue
        colour, _, _ = STATES[outcome]
        width = 0.5 if len(found.busy) <= 400 else 0
        marker: Spec = {"color": colour, "line": {"width": width, "color": "rgba(255,255,255,0.6)"}}
        if outcome in ("stopped", "paused", "lost"):
            shape = "x" if outcome == "lost" else "/"
            marker["pattern"] = {"shape": shape, "size": 6, "fgcolor": "white", "solidity": 0.25, "fillmode": "overlay"}
        data.append(
            {
                **common,
                "name": outcome,
                "y": [names[each.worker] for each in bars],
                "base": [each.start_s / size for each in bars],
                "x": [(each.end_s - each.start_s) / size for each in bars],
                "marker": marker,
                "hovertext": [_told(each) for each in bars],
            }
        )
    hidden = len({*record.workers}) - len(found.workers)
    note = "" if hidden <= 0 else f" · the {len(found.workers)} with the most idle time of {len(record.workers):,}"
    return figure(
        data,
        title,
        f"{found.utilisation:.0%} of the workers' time was used{note}",
        height=150 + max(3, len(found.workers)) * (34 if len(found.workers) <= 12 else 18),
        barmode="overlay",
        bargap=0.25,
        xaxis={"title": {"text": f"time since start ({unit})"}, "range": [0, record.duration_s / size * 1.01]},
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
    )


def _told(busy: Busy) -> str:
    span = f"{busy.end_s - busy.start_s:.3g} s, from {busy.start_s:.3g} s on"
    if len(busy.trials) > 1:
        several = count(len(busy.trials), "trial")
        return f"<b>{several}</b> · {busy.outcome}<br>{busy.trials[0]} … {busy.trials[-1]}<br>{span}"
    again = "" if busy.attempt == 1 else f" (attempt {busy.attempt})"
    reason = f"<br>{escaped(busy.reason, 120)}" if busy.reason else ""
    return f"<b>trial {busy.trials[0]}</b>{again} · {busy.outcome}<br>{span}{reason}"


def _about(worker: WorkerTime) -> str:
    share = worker.busy_s / (worker.left_s - worker.joined_s) if worker.left_s > worker.joined_s else 0.0
    lines = [
        f"<b>{escaped(worker.name, 24)}</b> {escaped(worker.host, 40)}",
        f"idle {worker.idle_s:.3g} s, busy {share:.0%}",
    ]
    if worker.lost_because:
        lines.append(escaped(worker.lost_because, 120))
    return "<br>".join(lines)
