"""The tables of the SQL index, and how records become rows and rows records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from cargobike.core.facts import decode_header, encode_fact, pack_number, pack_numbers
from cargobike.core.goals import Goals, read_constraints
from cargobike.core.record import ExperimentRecord, WorkerSeen
from cargobike.core.records import ExperimentState, Trial, TrialState
from cargobike.core.values.exact import pack_exactly
from cargobike.experiments.index.origins import origins_of
from cargobike.experiments.index.rows import space_changes, trial_row
from cargobike.store.history.annotations import Annotations
from cargobike.store.index.tables import Values, journal_columns

_PLAIN: Final = frozenset({int, str, bool})

metadata = sa.MetaData()

experiments = sa.Table(
    "experiments",
    metadata,
    *journal_columns(),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("header", sa.Text, nullable=False),
    sa.Column("objective", sa.Text),
    sa.Column("direction", sa.String(3), nullable=False),
    sa.Column("started_at", sa.Double, nullable=False, index=True),
    sa.Column("ended_at", sa.Double),
    sa.Column("last_at", sa.Double, nullable=False),
    sa.Column("away_s", sa.Double, nullable=False),
    *(sa.Column(state.value, sa.Integer, nullable=False) for state in TrialState),
    sa.Column("best_trial", sa.Integer),
    sa.Column("best_value", sa.Double),
    sa.Column("best_params", sa.Text),
    sa.Column("user", sa.Text, nullable=False),
    sa.Column("origins", sa.Text, nullable=False),
    sa.Column("space_changes", sa.Text, nullable=False),
    sa.Column("worker_seconds", sa.Double, nullable=False),
    sa.Column("past_worker_s", sa.Double, nullable=False),
    sa.Column("workers", sa.Text, nullable=False),
    sa.Column("tags", sa.Text, nullable=False),
    sa.Column("notes", sa.Integer, nullable=False),
    sa.Column("annotations_mtime_ns", sa.BigInteger, nullable=False),
)

trials = sa.Table(
    "trials",
    metadata,
    sa.Column("project", sa.String(40), primary_key=True),
    sa.Column("experiment_id", sa.String(80), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("params", sa.Text, nullable=False),
    sa.Column("value", sa.Double),
    sa.Column("value_text", sa.String(4)),
    sa.Column("metrics", sa.Text, nullable=False),
    sa.Column("points", sa.Integer, nullable=False),
    sa.Column("reports", sa.BigInteger, nullable=False),
    sa.Column("is_interrupted", sa.Boolean, nullable=False),
    sa.Column("last_step", sa.BigInteger),
    sa.Column("last_value", sa.String(40)),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("started_at", sa.Double),
    sa.Column("ended_at", sa.Double),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("worker", sa.Text),
    sa.Column("peak_memory_bytes", sa.BigInteger),
    sa.Column("info", sa.Text, nullable=False),
    sa.Column("extras", sa.Text, nullable=False),
    # What is asked of an experiment with very many trials: its best ones, how it went, its first failure.
    sa.Index("trials_by_value", "project", "experiment_id", "value"),
    sa.Index("trials_by_end", "project", "experiment_id", "ended_at", "number", "value"),
    sa.Index("trials_by_state", "project", "experiment_id", "state", "ended_at"),
)


def experiment_values(record: ExperimentRecord) -> Values:
    """Make the columns of an experiment that follow from its facts."""
    best = record.best
    return {
        "name": _text(record.header.name),
        "state": record.state.value,
        "reason": _text(record.reason),
        "header": encode_fact(record.header).decode(),
        "objective": record.objective and _text(record.objective),
        "direction": record.header.direction,
        "user": _text(record.header.user),
        "origins": _text(_dump(origins_of(record.header.asked))),
        "space_changes": _text(_dump(record.space_changes)),
        "worker_seconds": record.worker_seconds,
        "past_worker_s": record.past_worker_s,
        "workers": _dump([(one.name, one.joined_at, one.lost_at) for one in record.workers.values()]),
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "last_at": record.last_at,
        "away_s": record.away_s,
        **{state.value: count for state, count in record.counts.items()},
        "best_trial": best.number if best else None,
        "best_value": best.value if best else None,
        "best_params": _dump(pack_exactly(best.params)) if best else None,
    }


def trial_values(experiment_id: str, trial: Trial, before: Mapping[str, Any] | None) -> Values:
    """Make the columns of a trial; `before` is its old row, which remembers the points read earlier."""
    packed = None if trial.value is None else pack_number(trial.value)
    points, step, last = 0, None, None
    if before is not None:
        points, step, last = before["points"], before["last_step"], before["last_value"]
    if len(trial.curve):
        points += len(trial.curve)
        step, last = trial.curve.steps[-1], repr(trial.curve.values[-1])
    return {
        "experiment_id": experiment_id,
        "number": trial.number,
        "state": trial.state.value,
        "params": _dump(trial.params if _is_plain(trial.params) else pack_exactly(trial.params)),
        "value": None if isinstance(packed, str) else packed,
        "value_text": packed if isinstance(packed, str) else None,
        "metrics": _dump(pack_numbers(trial.metrics) if trial.metrics else {}),
        "points": points,
        "reports": trial.reports,
        "is_interrupted": trial.is_interrupted,
        "last_step": step,
        "last_value": last,
        "attempts": trial.attempts,
        "error": trial.error and _text(trial.error),
        "started_at": trial.started_at,
        "ended_at": trial.ended_at,
        "seed": trial.seed,
        "worker": trial.worker,
        "peak_memory_bytes": trial.peak_memory_bytes,
        "info": _dump(trial.info),
        "extras": _dump(trial.extras),
    }


def restore_record(row: Mapping[str, Any], best: Sequence[Mapping[str, Any]]) -> ExperimentRecord:
    """Make the record to which new facts can be added; it holds the best trial alone, and curves begin empty."""
    state = ExperimentState(row["state"])
    header = decode_header(row["header"])
    goals = Goals(constraints=read_constraints(header.constraints))
    record = ExperimentRecord(
        header,
        trials={one["number"]: restore_trial(one, goals) for one in best},
        # "Lost" is concluded by readers; according to the facts it is running.
        state=ExperimentState.RUNNING if state is ExperimentState.LOST else state,
        reason=row["reason"],
        ended_at=row["ended_at"],
        objective=row["objective"],
        last_at=row["last_at"],
        away_s=row["away_s"],
        past_worker_s=row["past_worker_s"],
        space_changes=space_changes(row),
        workers={
            name: WorkerSeen(name, "", 0, (), joined_at, lost_at)
            for name, joined_at, lost_at in msgspec.json.decode(row["workers"])
        },
    )
    record.counts = {state: row[state.value] for state in TrialState}
    return record


def annotation_values(annotations: Annotations) -> Values:
    """Make the columns of tags and notes."""
    return {"tags": _dump(annotations.tags), "notes": len(annotations.notes)}


def restore_trial(row: Mapping[str, Any], goals: Goals) -> Trial:
    """Make the trial to which new facts can be added; its curve begins empty."""
    seen = trial_row(row)
    is_limited = bool(goals.constraints) and seen.state is TrialState.COMPLETED
    return Trial(
        seen.params,
        number=seen.number,
        state=seen.state,
        value=seen.value,
        metrics=seen.metrics,
        attempts=seen.attempts,
        error=seen.error,
        started_at=seen.started_at,
        ended_at=seen.ended_at,
        seed=seen.seed,
        worker=seen.worker,
        peak_memory_bytes=seen.peak_memory_bytes,
        violation=goals.violation(seen.metrics) if is_limited else 0.0,
        info=seen.info,
        extras=seen.extras,
        reports=row["reports"],
        is_interrupted=bool(row["is_interrupted"]),
    )


def _text(value: str) -> str:
    """Return a text that every database can hold: PostgreSQL has no character zero."""
    return value.replace("\0", "\N{SYMBOL FOR NULL}")


def _is_plain(params: Mapping[str, Any]) -> bool:
    """Tell whether parameters are what JSON holds exactly; most are, and a search has very many of them."""
    return all(
        (type(value) in _PLAIN or (type(value) is float and isfinite(value))) and name[:1] != "$"
        for name, value in params.items()
    )


def _dump(value: object) -> str:
    if value == {}:
        return "{}"
    return msgspec.json.encode(value, enc_hook=str).decode()
