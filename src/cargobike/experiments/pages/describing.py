"""Records as the API sends them: times as text in UTC, numbers that JSON can hold."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from cargobike.analysis.axes import axes_of
from cargobike.analysis.scores import metric_names, objective_name
from cargobike.core.facts import CheckpointSaved, ExperimentStarted, pack_number, pack_numbers
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import Attempt, ExperimentRecord, WorkerSeen
from cargobike.core.records import ExperimentState, Trial
from cargobike.core.seen import SpaceChanged
from cargobike.core.values.times import on_calendar
from cargobike.core.visible import visible
from cargobike.experiments.index.index import ExperimentRow
from cargobike.experiments.pages import answers
from cargobike.experiments.pages.listing import few_points
from cargobike.experiments.pages.live import LiveExperiment
from cargobike.experiments.pages.log_files import read_part
from cargobike.experiments.space_changes import differences
from cargobike.store.history.annotations import Annotations, Note, read_annotations
from cargobike.store.history.snapshot import read_snapshot

_LONGEST_SOURCE = 200_000


def row_of(record: ExperimentRecord, said: Annotations) -> ExperimentRow:
    """Return a record in the form of a row of the index; its best trial is one that is not hidden."""
    row = ExperimentRow.of(record)
    best = visible(record, said.hidden).best
    return replace(
        row,
        metric=objective_name(record),
        tags=said.tags,
        notes=len(said.notes),
        best_trial=None if best is None else best.number,
        best_value=None if best is None else best.value,
        best_params=None if best is None else best.params,
    )


def row_summary(row: ExperimentRow, progress: list[float] | None) -> answers.ExperimentSummary:
    """Return one experiment as a list shows it."""
    header = row.header
    best = None
    if row.best_trial is not None and row.best_value is not None:
        best = answers.Best(
            trial=row.best_trial, value=pack_number(row.best_value), params=packed(row.best_params or {})
        )
    return answers.ExperimentSummary(
        id=row.id,
        name=header.name,
        description=header.description,
        state=row.state,
        reason=row.reason,
        function=header.function,
        optimizer=header.optimizer,
        direction=header.direction,
        metric=row.metric,
        objectives=header.objectives,
        constraints=list(header.constraints),
        num_trials=header.num_trials,
        trials=row.trials,
        trials_done=row.trials_done,
        counts=row.counts,
        best=best,
        started_at=utc(row.started_at),
        ended_at=None if row.ended_at is None else utc(row.ended_at),
        duration_s=round(row.lasted_s(time.time()), 3),
        user=header.user,
        host=header.host,
        problem=row.problem,
        progress=progress,
        tags=list(row.tags),
    )


def experiment_summary(live: LiveExperiment, record: ExperimentRecord) -> answers.ExperimentSummary:
    """Return one experiment as a list shows it, from its journal; only inside `live.reading()`."""
    said = read_annotations(live.folder)
    return row_summary(row_of(record, said), progress_of(live, said))


def progress_of(live: LiveExperiment, said: Annotations) -> list[float] | None:
    """Return the best value so far as a few points, without hidden trials; only inside `live.reading()`."""

    def find(record: ExperimentRecord) -> list[float] | None:
        trials = visible(record, said.hidden).trials.values()
        ended = [trial for trial in trials if trial.ended_at is not None and not trial.violation > 0]
        ended.sort(key=lambda trial: (trial.ended_at, trial.number))
        scores = [trial.value for trial in ended if trial.value is not None and math.isfinite(trial.value)]
        return few_points(scores, record.header)

    progress: list[float] | None = live.made((progress_of, said.hidden), find)[1]
    return progress


def experiment_detail(live: LiveExperiment, record: ExperimentRecord, *, may_stop: bool) -> answers.ExperimentDetail:
    """Return everything about an experiment except its trials; only inside `live.reading()`."""
    said = read_annotations(live.folder)
    return answers.ExperimentDetail(
        **msgspec.structs.asdict(row_summary(row_of(record, said), progress_of(live, said))),
        version=live.version,
        header=packed(msgspec.to_builtins(_header(record.header), enc_hook=str)),
        workers=[_worker(worker) for worker in record.workers.values()],
        metrics=metric_names(record),
        params=[axis.name for axis in axes_of(record)],
        points=live.points,
        notes=[note_told(note) for note in said.notes],
        hidden=len(said.hidden & record.trials.keys()),
        space_changes=[_space_change(change) for change in record.space_changes],
        may_stop=may_stop and record.state is ExperimentState.RUNNING,
    )


def _space_change(change: SpaceChanged) -> answers.SpaceChange:
    return answers.SpaceChange(
        at=utc(change.at),
        after_trials=change.trials,
        before=packed(change.before),
        space=packed(change.space),
        defaults=packed(change.defaults),
        changed=differences(change),
    )


def _header(started: ExperimentStarted) -> dict[str, Any]:
    """Return the first fact of a journal for people: what was asked for, side by side."""
    settings = {name: value for name, value in started.asked.settings().items() if value not in (None, "", [], {})}
    facts = {name: getattr(started, name) for name in ("at", "id", "cargobike", "user", "host", "pid")}
    return {"fact": started.__struct_config__.tag, **facts, **settings}


def note_told(note: Note) -> answers.Note:
    """Return what a person wrote about an experiment."""
    return answers.Note(at=utc(note.at), by=note.by, text=note.text)


def _worker(worker: WorkerSeen) -> answers.Worker:
    return answers.Worker(
        name=worker.name,
        host=worker.host,
        gpus=list(worker.gpus),
        joined_at=utc(worker.joined_at),
        lost_at=None if worker.lost_at is None else utc(worker.lost_at),
        reason=worker.reason,
    )


def trial_summary(trial: Trial) -> answers.Trial:
    """Return one trial as a table shows it."""
    curve = trial.curve
    return answers.Trial(
        trial=trial.number,
        state=trial.state,
        value=None if trial.value is None else pack_number(trial.value),
        params=packed(trial.params),
        metrics=pack_numbers(trial.metrics),
        last_step=curve.steps[-1] if len(curve) else None,
        last_value=pack_number(curve.values[-1]) if len(curve) else None,
        points=len(curve),
        attempts=trial.attempts,
        worker=trial.worker,
        seed=trial.seed,
        peak_memory_bytes=trial.peak_memory_bytes,
        started_at=None if trial.started_at is None else utc(trial.started_at),
        ended_at=None if trial.ended_at is None else utc(trial.ended_at),
        duration_s=trial.duration_s,
        violation=pack_number(trial.violation),
        has_checkpoint=trial.has_checkpoint,
        error=trial.error,
    )


def trial_detail(live: LiveExperiment, record: ExperimentRecord, trial: Trial) -> answers.TrialDetail:
    """Return everything about a trial except its points; only inside `live.reading()`."""
    attempts = record.attempts.get(trial.number, [])
    return answers.TrialDetail(
        **msgspec.structs.asdict(trial_summary(trial)),
        experiment_id=record.id,
        version=live.version,
        info=packed(trial.info),
        extras=packed(trial.extras),
        tries=[_attempt(each) for each in attempts],
        checkpoints=[_checkpoint(each) for each in record.checkpoints.get(trial.number, ())],
        metric_names=list(live.metrics(trial.number)),
        ranks=len(attempts[-1].workers) if attempts else 0,
    )


def _attempt(attempt: Attempt) -> answers.Attempt:
    return answers.Attempt(
        attempt=attempt.number,
        workers=list(attempt.workers),
        started_at=utc(attempt.started_at),
        ended_at=None if attempt.ended_at is None else utc(attempt.ended_at),
        ended=attempt.ended,
    )


def _checkpoint(fact: CheckpointSaved) -> answers.Checkpoint:
    return answers.Checkpoint(
        step=fact.step, attempt=fact.attempt, path=fact.path, size_bytes=fact.size_bytes, saved_at=utc(fact.at)
    )


def snapshot_told(folder: ExperimentFolder) -> answers.SnapshotAnswer | None:
    """Return what was run and in which environment; `None` if that was not recorded."""
    snapshot = read_snapshot(folder)
    if snapshot is None:
        return None
    plain_data = packed(msgspec.to_builtins(snapshot, enc_hook=str))
    plain = ("directory", "arguments", "launcher", "git", "resources", "problems", "environment")
    return answers.SnapshotAnswer(
        **{name: plain_data[name] for name in plain},
        at=utc(snapshot.at),
        function=read_part(folder.function, 0, _LONGEST_SOURCE, is_final=True).text,
        files=sorted(snapshot.sources.files),
    )


def utc(at_s: float) -> str:
    """Return a time as text, also one outside the calendar."""
    return on_calendar(at_s).isoformat(timespec="milliseconds")


def packed(value: object) -> Any:
    """Return plain data with numbers that JSON cannot hold as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else pack_number(value)
    if isinstance(value, Mapping):
        return {str(key): packed(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [packed(item) for item in value]
    return value
