"""What the rows of the index mean: from a row of its tables to the record that callers see."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cargobike.core.facts import decode_header, unpack_numbers
from cargobike.core.records import ExperimentState, TrialState
from cargobike.core.seen import SpaceChanged
from cargobike.core.values.exact import unpack_exactly
from cargobike.experiments.index.index import ExperimentRow, TrialRow

_MOST_HEADERS: Final = 20_000


def experiment_row(row: Mapping[str, Any]) -> ExperimentRow:
    """Turn a row into the record that callers see."""
    return ExperimentRow(
        id=row["id"],
        header=_header(row["header"]),
        state=ExperimentState(row["state"]),
        reason=row["reason"],
        metric=row["objective"] or None,
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        last_at=row["last_at"],
        away_s=row["away_s"],
        counts={state: row[state.value] for state in TrialState},
        best_trial=row["best_trial"],
        best_value=row["best_value"],
        best_params=None if row["best_params"] is None else unpack_exactly(msgspec.json.decode(row["best_params"])),
        tags=tuple(msgspec.json.decode(row["tags"])),
        notes=row["notes"],
        worker_seconds=row["worker_seconds"],
        space_changes=tuple(space_changes(row)),
        torn_bytes=max(0, row["journal_bytes"] - row["read_bytes"]),
        problem=row["problem"],
    )


_header = functools.lru_cache(_MOST_HEADERS)(decode_header)
"""Headers never change; a dashboard lists ten thousand of them again and again."""


def space_changes(row: Mapping[str, Any]) -> list[SpaceChanged]:
    """Return when the space of an experiment was changed, and how."""
    return msgspec.json.decode(row["space_changes"], type=list[SpaceChanged])


def trial_row(row: Mapping[str, Any]) -> TrialRow:
    """Turn a row into the record that callers see."""
    last = row["last_value"]
    return TrialRow(
        experiment_id=row["experiment_id"],
        number=row["number"],
        state=TrialState(row["state"]),
        params=unpack_exactly(msgspec.json.decode(row["params"])),
        value=_value(row),
        metrics=unpack_numbers(msgspec.json.decode(row["metrics"])),
        points=row["points"],
        last_step=row["last_step"],
        last_value=None if last is None else float(last),
        attempts=row["attempts"],
        error=row["error"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        seed=row["seed"],
        worker=row["worker"],
        peak_memory_bytes=row["peak_memory_bytes"],
        info=msgspec.json.decode(row["info"]),
        extras=msgspec.json.decode(row["extras"]),
    )


def _value(row: Mapping[str, Any]) -> float | None:
    # SQLite stores NaN as NULL, and databases disagree on how it sorts: it goes into a column of its own.
    text = row["value_text"]
    return row["value"] if text is None else float(text)
