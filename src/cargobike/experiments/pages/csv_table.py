"""The table of trials as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial
from cargobike.experiments.pages.describing import utc


def csv_table(record: ExperimentRecord, trials: Iterable[Trial]) -> str:
    """Return trials as CSV, with a column for each parameter and each metric of the experiment."""
    params = list(dict.fromkeys(name for trial in record.trials.values() for name in trial.params))
    metrics = list(dict.fromkeys(name for trial in record.trials.values() for name in trial.metrics))
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(
        ["trial", "state", "value", "duration_s", "attempts", "started_at"]
        + [_text_cell(f"params.{name}") for name in params]
        + [_text_cell(f"metrics.{name}") for name in metrics]
    )
    for trial in trials:
        started_at = None if trial.started_at is None else utc(trial.started_at)
        plain = [trial.number, trial.state.value, trial.value, trial.duration_s, trial.attempts, started_at]
        writer.writerow(
            [_cell(value) for value in plain]
            + [_cell(trial.params.get(name)) for name in params]
            + [_cell(trial.metrics.get(name)) for name in metrics]
        )
    return buffer.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, int | float) else _text_cell(str(value))


def _text_cell(text: str) -> str:
    """Keep a spreadsheet from reading text as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
