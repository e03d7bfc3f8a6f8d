"""Records as the API tells them: plain data, times as text in UTC, numbers that JSON can hold."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
from starlette.responses import Response

from cargobike.analysis.axes import axes_of
from cargobike.analysis.scores import metric_names, objective_name
from cargobike.core.facts import ExperimentStarted, pack_number, pack_numbers
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import ExperimentState, Trial
from cargobike.experiments.index.index import ExperimentRow
from cargobike.experiments.pages.live import LiveExperiment
from cargobike.experiments.pages.log_files import read_part
from cargobike.store.history.annotations import read_annotations
from cargobike.store.history.snapshot import read_snapshot

Told = dict[str, Any]
_LONGEST_SOURCE = 200_000


def answer(value: object, headers: Mapping[str, str] | None = None) -> Response:
    """Return plain data as a response; what JSON has no word for must have been packed."""
    return Response(encoded(value), media_type="application/json", headers=dict(headers or {}))


def encoded(value: object) -> bytes:
    """Encode plain data, arrays of NumPy among it; numbers that are none become `null`."""
    return msgspec.json.encode(value, enc_hook=_plain)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value)


def row_of(record: ExperimentRecord) -> ExperimentRow:
    """Return a record as a list shows it."""
    best = record.best
    return ExperimentRow(
        id=record.id,
        header=record.header,
        state=record.state,
        reason=record.reason,
        metric=objective_name(record),
        started_at=record.started_at,
        ended_at=record.ended_at,
        last_at=record.last_at,
        counts=dict(record.counts),
        best_trial=None if best is None else best.number,
        best_value=None if best is None else best.value,
        best_params=None if best is None else best.params,
    )


def experiment_summary(row: ExperimentRow) -> Told:
    """Return one experiment as a list shows it."""
    header = row.header
    best = None
    if row.best_trial is not None and row.best_value is not None:
        best = {"trial": row.best_trial, "value": pack_number(row.best_value), "params": packed(row.best_params or {})}
    is_running = row.state is ExperimentState.RUNNING
    return {
        "id": row.id,
        "name": header.name,
        "description": header.description,
        "state": row.state.value,
        "reason": row.reason,
        "function": header.function,
        "optimizer": header.optimizer,
        "direction": header.direction,
        "metric": row.metric,
        "objectives": header.objectives,
        "constraints": list(header.constraints),
        "num_trials": header.num_trials,
        "trials": row.trials,
        "trials_done": row.trials_done,
        "counts": {state.value: count for state, count in row.counts.items()},
        "best": best,
        "started_at": utc(row.started_at),
        "ended_at": utc(row.ended_at),
        "duration_s": round(max(0.0, time.time() - row.started_at if is_running else row.duration_s), 3),
        "user": header.user,
        "host": header.host,
        "problem": row.problem,
        "tags": list(row.tags),
    }


def experiment_detail(live: LiveExperiment, record: ExperimentRecord, *, may_stop: bool) -> Told:
    """Return everything about an experiment except its trials."""
    said = read_annotations(live.folder)
    return {
        **experiment_summary(row_of(record)),
        "version": live.version,
        "header": packed(msgspec.to_builtins(_header(record.header), enc_hook=str)),
        "workers": [
            {
                "name": worker.name,
                "host": worker.host,
                "gpus": list(worker.gpus),
                "joined_at": utc(worker.joined_at),
                "lost_at": utc(worker.lost_at),
                "reason": worker.reason,
            }
            for worker in record.workers.values()
        ],
        "metrics": metric_names(record),
        "params": [axis.name for axis in axes_of(record)],
        "points": live.points,
        "tags": list(said.tags),
        "notes": [{"at": utc(note.at), "by": note.by, "text": note.text} for note in said.notes],
        "may_stop": may_stop and record.state is ExperimentState.RUNNING,
    }


def _header(started: ExperimentStarted) -> dict[str, Any]:
    """Return the first fact of a journal for people: what was asked for, side by side."""
    given = {name: value for name, value in started.asked.settings().items() if value not in (None, "", [], {})}
    facts = {name: getattr(started, name) for name in ("at", "id", "cargobike", "user", "host", "pid")}
    return {**facts, **given}


def trial_summary(trial: Trial) -> Told:
    """Return one trial as a table shows it."""
    curve = trial.curve
    return {
        "trial": trial.number,
        "state": trial.state.value,
        "value": None if trial.value is None else pack_number(trial.value),
        "params": packed(trial.params),
        "metrics": pack_numbers(trial.metrics),
        "last_step": curve.steps[-1] if len(curve) else None,
        "last_value": pack_number(curve.values[-1]) if len(curve) else None,
        "points": len(curve),
        "attempts": trial.attempts,
        "worker": trial.worker,
        "seed": trial.seed,
        "peak_memory_bytes": trial.peak_memory_bytes,
        "started_at": utc(trial.started_at),
        "ended_at": utc(trial.ended_at),
        "duration_s": trial.duration_s,
        "violation": pack_number(trial.violation),
        "has_checkpoint": trial.has_checkpoint,
        "error": trial.error,
    }


def trial_detail(live: LiveExperiment, record: ExperimentRecord, trial: Trial) -> Told:
    """Return everything about a trial except its points."""
    return {
        **trial_summary(trial),
        "experiment_id": record.id,
        "version": live.version,
        "info": packed(trial.info),
        "tries": [
            {
                "attempt": each.number,
                "workers": list(each.workers),
                "started_at": utc(each.started_at),
                "ended_at": utc(each.ended_at),
                "ended": each.ended,
            }
            for each in record.attempts.get(trial.number, ())
        ],
        "checkpoints": [
            {
                "step": each.step,
                "attempt": each.attempt,
                "path": each.path,
                "size_bytes": each.size_bytes,
                "saved_at": utc(each.at),
            }
            for each in record.checkpoints.get(trial.number, ())
        ],
        "metric_names": list(live.metrics(trial.number)),
        "ranks": max((len(each.workers) for each in record.attempts.get(trial.number, ())[-1:]), default=0),
    }


def snapshot_told(folder: ExperimentFolder) -> Told | None:
    """Return what was run and in which environment; `None` if that was not recorded."""
    snapshot = read_snapshot(folder)
    if snapshot is None:
        return None
    told: Told = packed(msgspec.to_builtins(snapshot, enc_hook=str))
    return {
        **{name: told[name] for name in ("directory", "arguments", "launcher", "git", "resources", "problems")},
        "environment": told["environment"],
        "at": utc(snapshot.at),
        "function": read_part(folder.code / "function.py", 0, _LONGEST_SOURCE, is_final=True).text,
        "files": sorted(snapshot.sources.files),
    }


def utc(at_s: float | None) -> str | None:
    """Return a time as text; `None` stays `None`, and a time that no calendar has becomes text, too."""
    if at_s is None:
        return None
    try:
        return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(at_s)


def packed(value: object) -> Any:
    """Return plain data with numbers that JSON cannot hold as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else pack_number(value)
    if isinstance(value, Mapping):
        return {str(key): packed(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [packed(item) for item in value]
    return value
