"""How commands print: JSON for programs, tables and short words for people."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cargobike.cli.terminal import neutralized
from cargobike.core.facts import pack_number
from cargobike.core.records import ExperimentState, TrialState
from cargobike.experiments.index.index import ExperimentRow, TrialRow

_STYLES: dict[str, str] = {
    ExperimentState.RUNNING: "cyan",
    ExperimentState.COMPLETED: "green",
    ExperimentState.INTERRUPTED: "yellow",
    ExperimentState.LOST: "magenta",
    TrialState.PENDING: "dim",
    TrialState.PAUSED: "blue",
    TrialState.STOPPED: "yellow",
    TrialState.FAILED: "red",
}


def print_json(value: object) -> None:
    """Print a value as JSON; NaN and infinities become the strings `nan`, `inf` and `-inf`."""
    encoded = msgspec.json.encode(_packed(value), enc_hook=str)
    sys.stdout.write(msgspec.json.format(encoded, indent=2).decode() + "\n")


def console() -> Console:
    """Return where tables go; made when needed, because tests and pipes replace standard output."""
    plain_width = None if sys.stdout.isatty() else 10_000  # one row is one line for whoever reads a pipe
    return Console(highlight=False, markup=False, emoji=False, width=plain_width, soft_wrap=True)


def print_table(made: Table) -> None:
    """Print a table, without the blanks that fill its last column where a program may read it."""
    out = console()
    if out.is_terminal:
        out.print(made)
        return
    with out.capture() as captured:
        out.print(made)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def table(*headings: str, right: tuple[str, ...] = ()) -> Table:
    """Make a table without lines; columns in `right` are numbers, the last column takes what is left."""
    made = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for heading in headings:
        last = heading == headings[-1]
        made.add_column(heading, justify="right" if heading in right else "left", no_wrap=not last, overflow="fold")
    return made


def cell(value: object, style: str = "") -> Text:
    """Make a table cell of anything, with control characters made visible."""
    return Text(neutralized(str(value)).replace("\n", " "), style=style)


def state_cell(state: ExperimentState | TrialState) -> Text:
    """Make the coloured cell of a state."""
    return Text(state.value, style=_STYLES.get(state, ""))


def number(value: float | None) -> str:
    """Write a number with six digits that count, a missing one as a dash."""
    return "–" if value is None else f"{value:.6g}"


def parameters(params: Mapping[str, Any] | None) -> str:
    """Write parameters on one line, such as `lr=0.01 act=relu`."""
    shown = (f"{name}={number(value) if isinstance(value, float) else value}" for name, value in (params or {}).items())
    return " ".join(shown)


def duration(seconds: float | None) -> str:
    """Write a duration in two units at most, such as `3 min 20 s`."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    units = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    parts: list[str] = []
    for size, name in units:
        count, whole = divmod(whole, size)
        if count or parts:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def age(since_s: float) -> str:
    """Write how long ago something was, in one unit."""
    passed = max(0.0, time.time() - since_s)
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if passed >= size:
            return f"{int(passed // size)} {name} ago"
    return "just now"


def moment(at_s: float) -> str:
    """Write a time on the clock, such as `2026-11-15 22:01:45`."""
    return datetime.fromtimestamp(at_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def spent_s(row: ExperimentRow) -> float:
    """Return how long an experiment took, or has been taking until now."""
    return time.time() - row.started_at if row.state is ExperimentState.RUNNING else row.duration_s


def experiment_as_json(row: ExperimentRow) -> dict[str, Any]:
    """Return the documented keys of an experiment."""
    best = None
    if row.best_trial is not None:
        best = {"trial": row.best_trial, "value": row.best_value, "params": row.best_params}
    return {
        "id": row.id,
        "name": row.name,
        "state": row.state.value,
        "reason": row.reason,
        "function": row.header.function,
        "optimizer": row.header.optimizer,
        "direction": row.header.direction,
        "metric": row.metric,
        "num_trials": row.header.num_trials,
        "trials": row.trials,
        "trials_done": row.trials_done,
        "counts": {state.value: count for state, count in row.counts.items()},
        "best": best,
        "started_at": _utc(row.started_at),
        "ended_at": _utc(row.ended_at),
        "duration_s": round(spent_s(row), 3),
        "user": row.header.user,
        "worker_seconds": round(row.worker_seconds, 3),
        "tags": row.tags,
        "problem": row.problem,
    }


def trial_as_json(row: TrialRow) -> dict[str, Any]:
    """Return the documented keys of a trial."""
    return {
        "trial": row.number,
        "state": row.state.value,
        "value": row.value,
        "params": row.params,
        "metrics": row.metrics,
        "last_step": row.last_step,
        "last_value": row.last_value,
        "points": row.points,
        "attempts": row.attempts,
        "worker": row.worker,
        "seed": row.seed,
        "peak_memory_bytes": row.peak_memory_bytes,
        "started_at": _utc(row.started_at),
        "ended_at": _utc(row.ended_at),
        "duration_s": row.duration_s,
        "error": row.error,
    }


def _utc(at_s: float | None) -> str | None:
    return None if at_s is None else datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")


def _packed(value: object) -> object:
    if isinstance(value, float):
        return pack_number(value)
    if isinstance(value, Mapping):
        return {str(key): _packed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_packed(item) for item in value]
    return value
