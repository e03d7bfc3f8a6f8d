"""Parts of the report that are not figures: heading, facts, best trial, table, failures."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from cargobike.analysis.axes import text_of
from cargobike.analysis.scores import objective_name
from cargobike.core.goals import pareto_front
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial, TrialState
from cargobike.core.values.times import on_calendar
from cargobike.core.values.words import count, duration, number
from cargobike.experiments.space_changes import change_in_words
from cargobike.ui.markup import fact_list, text

_MOST_COMPROMISES = 8
_MOST_FAILURES = 40
_TAIL_BYTES = 4000
_LONGEST_TRACEBACK = 12_000


def head(record: ExperimentRecord) -> str:
    """Return the page's heading."""
    header = record.header
    description = f"<p>{text(header.description)}</p>" if header.description else ""
    reason = f"<p>{text(record.reason)}</p>" if record.reason else ""
    return (
        f'<header><div><div class="line"><h1>{text(header.name or record.id)}</h1>'
        f'<span class="badge {text(record.state.value)}">{text(record.state.value)}</span></div>'
        f"{description}{reason}</div></header>"
    )


def overview(record: ExperimentRecord, hidden: int = 0) -> str:
    """Return the best trial and the facts, side by side; `hidden` trials are not in the record."""
    return f'<div class="pair">{_best(record)}{_facts(record, hidden)}</div>'


def _best(record: ExperimentRecord) -> str:
    if record.goals.objectives:
        return _front(record)
    best = record.best
    objective = objective_name(record)
    if best is None or best.value is None:
        return '<section id="overview"><h2>Best trial</h2><p>No trial has completed with a finite score.</p></section>'
    rows = fact_list({str(name): text_of(value, 200) for name, value in best.params.items()})
    others = {name: number(value) for name, value in best.metrics.items() if name != objective}
    more = f'<p class="label" style="margin:14px 0 0">also</p>{fact_list(others)}' if others else ""
    way = "largest" if record.header.direction == "max" else "smallest"
    return (
        f'<section id="overview"><div class="label">{way} {text(objective)} · trial {best.number}</div>'
        f'<div class="score">{number(best.value)}</div>{rows}{more}</section>'
    )


def _front(record: ExperimentRecord) -> str:
    objectives = record.goals.objectives
    front = pareto_front(record.trials.values(), objectives)
    head = "".join(f'<th class="number">{text(name)}</th>' for name in objectives)
    rows = ""
    for trial in front[:_MOST_COMPROMISES]:
        cells = "".join(f'<td class="number">{number(trial.metrics[name])}</td>' for name in objectives)
        rows += f"<tr><td>{trial.number}</td>{cells}</tr>"
    left = len(front) - _MOST_COMPROMISES
    more = f'<p class="hint">… and {left} more</p>' if left > 0 else ""
    body = f'<div class="scroll"><table><thead><tr><th>trial</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    if not front:
        body = "<p>No trial has completed with all objectives and within all limits.</p>"
    return (
        f'<section id="overview"><div class="label">best compromises</div><div class="score">{len(front)}</div>'
        f"{body}{more}</section>"
    )


def _facts(record: ExperimentRecord, hidden: int) -> str:
    header = record.header
    counts = {state.value: trials for state, trials in record.counts.items() if trials}
    bar = "".join(f'<span class="{state}" style="flex:{trials}"></span>' for state, trials in counts.items())
    key = "".join(f'<span class="{state}"><b>{trials:,}</b> {state}</span>' for state, trials in counts.items())
    began = on_calendar(record.started_at, None)
    asked = "" if header.num_trials is None else f" of {header.num_trials:,}"
    facts = {
        "id": record.id,
        "function": header.function,
        "optimizer": header.optimizer,
        "objectives": ", ".join(f"{name} ({way})" for name, way in header.objectives.items()),
        "limits": ", ".join(header.constraints),
        "trials": f"{len(record.trials) + hidden:,}{asked}",
        "hidden": f"{count(hidden, 'trial')}, left out here" if hidden else "",
        "began": began.strftime("%Y-%m-%d %H:%M:%S %z"),
        "took": duration(record.duration_s),
        "workers": f"{header.workers} on {header.engine}" + (f", gangs of {header.gang}" if header.gang > 1 else ""),
        "space changed": "; ".join(change_in_words(change) for change in record.space_changes),
        "seed": str(header.seed),
        "by": " on ".join(part for part in (header.user, header.host) if part),
    }
    listed = fact_list({name: fact for name, fact in facts.items() if fact})
    return (
        f'<section><div class="label">trials</div><div class="bar">{bar}</div>'
        f'<div class="key">{key}</div>{listed}</section>'
    )


def table_of(record: ExperimentRecord) -> dict[str, Any]:
    """Return the table of trials as data: names of columns, rows, and by which column it is sorted at first."""
    trials = list(record.trials.values())
    objective = objective_name(record)
    params = list(dict.fromkeys(name for trial in trials for name in trial.params))
    metrics = sorted({name for trial in trials for name in trial.metrics} - {objective})
    retried = any(trial.attempts > 1 for trial in trials)
    limited = bool(record.goals.constraints)
    last = [*(["breaks limits by"] if limited else []), "seconds", *(["attempts"] if retried else [])]
    columns = ["trial", "state", objective, *metrics, *params, *last]
    rows = [
        [
            trial.number,
            trial.state.value,
            _number(trial.value),
            *(_number(trial.metrics.get(name)) for name in metrics),
            *(_cell(trial.params[name]) if name in trial.params else None for name in params),
            *([_number(trial.violation)] if limited else []),
            None if trial.duration_s is None else round(trial.duration_s, 3),
            *([trial.attempts] if retried else []),
        ]
        for trial in trials
    ]
    best = None if record.best is None else record.best.number
    return {"columns": columns, "rows": rows, "best": best, "sorted": 2, "falling": record.header.direction == "max"}


def _number(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)


def _cell(value: object) -> object:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float):
        return _number(value)
    return text_of(value, 200)


def failures(record: ExperimentRecord, folder: ExperimentFolder) -> str:
    """Return the failed trials, those with the same last line together, or nothing if there are none."""
    groups: dict[str, list[Trial]] = {}
    for trial in record.trials.values():
        if trial.state is TrialState.FAILED:
            error = (trial.error or "failed without a message").strip()
            groups.setdefault(error.rpartition("\n")[2][:300], []).append(trial)
    if not groups:
        return ""
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    parts = [_failure(line, trials, folder) for line, trials in ordered[:_MOST_FAILURES]]
    left = len(ordered) - _MOST_FAILURES
    more = f'<p class="hint">{left} more kinds of failure; the trials are in the table.</p>' if left > 0 else ""
    total = sum(map(len, groups.values()))
    return (
        f'<section id="failures"><h2>Failures</h2><p>{total:,} of {len(record.trials):,} trials failed, '
        f"in {len(groups):,} different ways.</p>{''.join(parts)}{more}</section>"
    )


def _failure(line: str, trials: list[Trial], folder: ExperimentFolder) -> str:
    first = trials[0]
    numbers = ", ".join(str(trial.number) for trial in trials[:12]) + (", …" if len(trials) > 12 else "")
    files = folder.trial(first.number)
    traceback = (first.error or "").strip()
    if len(traceback) > _LONGEST_TRACEBACK:
        traceback = f"{traceback[: _LONGEST_TRACEBACK // 2]}\n…\n{traceback[-_LONGEST_TRACEBACK // 2 :]}"
    printed = "".join(
        f'<div class="label">last lines on {name}</div><pre>{text(tail)}</pre>'
        for name, path in (("stdout", files.stdout), ("stderr", files.stderr))
        if (tail := _tail(path))
    )
    word = "trial" if len(trials) == 1 else "trials"
    return (
        f'<details><summary><b class="failed">{len(trials)} ×</b> <code>{text(line)}</code> '
        f'<span class="label">{word} {numbers}</span></summary>'
        f'<div class="label">trial {first.number}</div><pre>{text(traceback)}</pre>{printed}</details>'
    )


def _tail(path: Path) -> str:
    """Return the last lines of a file, an empty text if there is no such file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            read = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return (read.partition("\n")[2] or read if size > _TAIL_BYTES else read).strip()
