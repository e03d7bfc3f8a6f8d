"""Words and figures for people, safe to print: shared by all displays."""

from __future__ import annotations

import math
import re
import reprlib
from typing import Any

from cargobike.core.records import Params, Trial
from cargobike.core.values.words import count, duration, number
from cargobike.experiments.display.snapshot import ProgressSnapshot

_ESCAPE_SEQUENCE = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
_VALUE_LENGTH = 40
_COMPROMISES = 2
_ASCII = str.maketrans({"·": "-", "…": "...", "−": "-"})
_reprs = reprlib.Repr()
_reprs.maxstring = _reprs.maxother = _VALUE_LENGTH


def clean(text: str, length: int = 200) -> str:
    r"""Return text as one line of at most `length`, without control characters or terminal commands.

    Example:
        >>> clean("a\x1b[31mb\x07\nc")
        'ab c'
    """
    cut = text[: 4 * length]  # bounds the work; escape sequences are short
    printable = "".join(mark if mark.isprintable() else " " for mark in re.sub(_ESCAPE_SEQUENCE, "", cut))
    words = " ".join(printable.split())
    return words if len(words) <= length and len(cut) == len(text) else words[: length - 1] + "…"


def for_encoding(text: str, encoding: str | None) -> str:
    """Return text that can be written to a stream with this encoding."""
    if (encoding or "utf-8").lower().replace("-", "").startswith("utf"):
        return text
    return text.translate(_ASCII).encode(encoding or "ascii", "replace").decode(encoding or "ascii")


def rate(per_s: float) -> str:
    """Return a rate per second, minute or hour, whichever gives a figure of at least one."""
    for factor, unit in ((1, "s"), (60, "min")):
        if per_s * factor >= 1:
            return f"{_short(per_s * factor)} trials/{unit}"
    return f"{_short(per_s * 3600)} trials/h"


def params(values: Params, separator: str = "  ", length: int = 240) -> str:
    """Return parameters as `name=value`; those that do not fit are only counted."""
    parts: list[str] = []
    room = length
    for name, value in values.items():
        part = f"{clean(str(name), _VALUE_LENGTH)}={_value(value)}"
        room -= len(part) + len(separator)
        if room < 0 and parts:
            parts.append(f"… {len(values) - len(parts)} more")
            break
        parts.append(part)
    return separator.join(parts)


def ended_of_total(snapshot: ProgressSnapshot) -> str:
    """Return how many trials have ended, such as `37/60 trials`."""
    if snapshot.total is None:
        return count(snapshot.ended, "trial")
    return f"{snapshot.ended:,}/{count(snapshot.total, 'trial')}"


def counts(snapshot: ProgressSnapshot) -> list[tuple[str, int]]:
    """Return how many trials are in each state, without empty ones except completed and running."""
    states = [
        ("completed", snapshot.completed),
        ("running", snapshot.running),
        ("paused", snapshot.paused),
        ("stopped", snapshot.stopped),
        ("failed", snapshot.failed),
        ("retried", snapshot.retries),
    ]
    always = {"completed"} if snapshot.is_final else {"completed", "running"}
    return [(word, trials) for word, trials in states if trials or word in always]


def best(snapshot: ProgressSnapshot) -> str | None:
    """Return the best score and its trial, such as `accuracy 0.9731 (max) in trial 21`.

    With several objectives these are the best compromises, as many as fit on a line.
    """
    if snapshot.objectives:
        return _front(snapshot) if snapshot.front else None
    trial = snapshot.best
    if trial is None or trial.value is None:
        return None
    metric = f"{clean(snapshot.metric, _VALUE_LENGTH)} " if snapshot.metric else ""
    return f"{metric}{number(trial.value)} ({snapshot.direction}) in trial {trial.number}"


def best_params(snapshot: ProgressSnapshot, separator: str = "  ", length: int = 240) -> str:
    """Return the parameters of the best trial; empty if there is none, or several compromises."""
    return params(snapshot.best.params, separator, length) if snapshot.best and not snapshot.objectives else ""


def _front(snapshot: ProgressSnapshot) -> str:
    total = len(snapshot.front)
    compromises = "; ".join(_compromise(snapshot, trial) for trial in snapshot.front[:_COMPROMISES])
    more = f"; … {total - _COMPROMISES} more" if total > _COMPROMISES else ""
    return f"{count(total, 'best compromise')}: {compromises}{more}"


def _compromise(snapshot: ProgressSnapshot, trial: Trial) -> str:
    scores = ", ".join(f"{clean(name, _VALUE_LENGTH)} {number(trial.metrics[name])}" for name in snapshot.objectives)
    return f"{scores} in trial {trial.number}"


def latest(snapshot: ProgressSnapshot) -> str | None:
    """Return the last report, as long as there is no best trial to show instead."""
    report = snapshot.latest
    if report is None or snapshot.best is not None or snapshot.front or snapshot.is_final:
        return None
    metrics = params({name: number(value) for name, value in report.metrics.items()}, length=100)
    return f"trial {report.trial}, step {report.step}: {metrics}"


def pace(snapshot: ProgressSnapshot) -> list[str]:
    """Return rate, time left and time passed, as far as they are known."""
    parts = []
    if snapshot.rate_per_s is not None and snapshot.total != 1:
        parts.append(rate(snapshot.rate_per_s))
    if snapshot.eta_s is not None:
        parts.append(f"{duration(math.ceil(snapshot.eta_s), tenths=False)} left")
    parts.append(f"{duration(snapshot.elapsed_s, tenths=False)} elapsed")
    return parts


def workers(snapshot: ProgressSnapshot) -> str:
    """Return how many workers are busy, and how many have yet to come."""
    joined, asked = snapshot.workers_joined, snapshot.workers_asked
    plural = "" if max(joined, asked) == 1 else "s"
    if joined < asked:
        return f"{joined}/{asked} worker{plural} joined, {snapshot.workers_busy} busy"
    return f"{snapshot.workers_busy}/{joined} worker{plural} busy"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    try:
        text = value if isinstance(value, str) else _reprs.repr(value)
    except Exception:  # noqa: BLE001 - a category may be any object, with any __repr__
        text = f"<{type(value).__name__}>"
    return clean(text, _VALUE_LENGTH)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
