"""An experiment in the format of MLflow's file store: an experiment with one run for each trial.

With repeats, a trial's run holds their mean and spread, and each repeat is a run below it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.facts import Reported, unpack_number
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial, TrialState
from cargobike.experiments.reading import facts_of, read_record
from cargobike.store.history.annotations import read_annotations
from cargobike.store.history.snapshot import read_snapshot

_STATUS: Final = {
    TrialState.COMPLETED: 3,
    TrialState.FAILED: 4,
    TrialState.STOPPED: 5,
    TrialState.RUNNING: 1,
    TrialState.PAUSED: 2,
    TrialState.PENDING: 2,
}
_LONGEST_VALUE: Final = 6000
_LOCAL: Final = 4  # MLflow's number for code that ran outside its own projects


def write_mlflow(folder: ExperimentFolder, target: Path) -> Path:
    """Write an experiment into a folder of MLflow's (`mlruns`), beside others that may be there; returns its folder.

    Raises:
        InvalidInputError: If the experiment is in that folder already.
        StoreError: If the journal cannot be read, or the folder cannot be written to.
    """
    record = read_record(folder)
    number = str(int(hashlib.sha256(folder.id.encode()).hexdigest()[:15], 16)).zfill(18)
    mlflow_folder = target / number
    if mlflow_folder.exists():
        raise InvalidInputError(f"{folder.id} has been exported to {mlflow_folder} before; remove that first.")
    temporary = target / f".{number}.new"
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        (target / ".trash").mkdir(exist_ok=True)
        _write_yaml(temporary / "meta.yaml", _experiment(record, number, mlflow_folder))
        _write_tags(temporary / "tags", _experiment_tags(folder, record))
        shared = _run_tags(folder, record)
        for trial in record.trials.values():
            run = temporary / _run_id(record, trial.number)
            _write_run(run, mlflow_folder, record, trial, shared)
            for index, repeat in enumerate(trial.repeats):
                tags = {**shared, "mlflow.parentRunId": run.name, "cargobike.repeat": str(index)}
                title = f"trial {trial.id} repeat {index}"
                below = temporary / _run_id(record, repeat, is_repeat=True)
                _write_run(below, mlflow_folder, record, record.runs[repeat], tags, title=title)
                _copy_artifacts(folder, repeat, below / "artifacts")
            if not trial.repeats:
                _copy_artifacts(folder, trial.number, run / "artifacts")
        _write_points(temporary, folder, record)
        temporary.rename(mlflow_folder)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"Cannot export {folder.id} to {target}: {error.strerror} ({error.filename}).") from error
    return mlflow_folder


def _experiment(record: ExperimentRecord, number: str, mlflow_folder: Path) -> dict[str, Any]:
    return {
        "artifact_location": mlflow_folder.absolute().as_uri(),
        "creation_time": _ms(record.started_at),
        "experiment_id": number,
        "last_update_time": _ms(record.last_at),
        "lifecycle_stage": "active",
        "name": f"{record.header.name} {record.id}",
    }


def _experiment_tags(folder: ExperimentFolder, record: ExperimentRecord) -> dict[str, str]:
    said = read_annotations(folder)
    notes = "\n\n".join([record.header.description, *(note.text for note in said.notes)]).strip()
    return {
        **({"mlflow.note.content": notes} if notes else {}),
        "cargobike.id": record.id,
        "cargobike.optimizer": record.header.optimizer,
        "cargobike.direction": record.header.direction,
        "cargobike.seed": str(record.header.seed),
        "cargobike.space": msgspec.json.encode(record.header.space).decode(),
        "cargobike.tags": ", ".join(said.tags),
    }


def _run_tags(folder: ExperimentFolder, record: ExperimentRecord) -> dict[str, str]:
    snapshot = read_snapshot(folder)
    tags = {"mlflow.user": record.header.user, "mlflow.source.type": "LOCAL", "cargobike.experiment": record.id}
    if snapshot is not None and snapshot.launcher is not None:
        tags["mlflow.source.name"] = snapshot.launcher.path or record.header.function
    if snapshot is not None and snapshot.git is not None and snapshot.git.commit:
        tags["mlflow.source.git.commit"] = snapshot.git.commit
        tags["mlflow.source.git.branch"] = snapshot.git.branch
    return tags


def _write_run(
    run: Path,
    mlflow_folder: Path,
    record: ExperimentRecord,
    trial: Trial,
    shared: Mapping[str, str],
    *,
    title: str = "",
) -> None:
    run_id = run.name
    title = title or f"trial {trial.id}"
    for part in ("artifacts", "metrics", "params", "tags"):
        (run / part).mkdir(parents=True)
    _write_yaml(
        run / "meta.yaml",
        {
            "artifact_uri": (mlflow_folder / run_id / "artifacts").absolute().as_uri(),
            "end_time": None if trial.ended_at is None else _ms(trial.ended_at),
            "entry_point_name": "",
            "experiment_id": mlflow_folder.name,
            "lifecycle_stage": "active",
            "run_id": run_id,
            "run_name": title,
            "run_uuid": run_id,
            "source_name": "",
            "source_type": _LOCAL,
            "source_version": "",
            "start_time": _ms(record.started_at if trial.started_at is None else trial.started_at),
            "status": _STATUS[trial.state],
            "tags": [],
            "user_id": record.header.user,
        },
    )
    for name, value in trial.params.items():
        text = value if isinstance(value, str) else repr(value)
        _write_text(run / "params" / _key(name), text[:_LONGEST_VALUE])
    own = {
        "mlflow.runName": title,
        "cargobike.state": trial.state.value,
        "cargobike.seed": str(trial.seed),
    }
    if trial.error:
        own["cargobike.error"] = trial.error[:_LONGEST_VALUE]
    _write_tags(run / "tags", {**shared, **own})


def _copy_artifacts(folder: ExperimentFolder, number: int, target: Path) -> None:
    trial = folder.trial(number)
    if trial.files.is_dir():
        shutil.copytree(trial.files, target, dirs_exist_ok=True, ignore=_links)
    for log in (trial.stdout, trial.stderr):
        if log.is_file():
            shutil.copyfile(log, target / log.name)


def _links(parent: str, names: list[str]) -> list[str]:
    return [name for name in names if os.path.islink(os.path.join(parent, name))]


def _write_points(root: Path, folder: ExperimentFolder, record: ExperimentRecord) -> None:
    """Write all reported points, and what was returned as one more point under its own name."""
    repeated = {number for trial in record.trials.values() for number in trial.repeats}
    lines: dict[tuple[int, str], list[str]] = {}
    last: dict[int, int] = {}
    for fact in _surviving_reports(folder):
        last[fact.trial] = max(fact.step, last.get(fact.trial, 0))
        for name, value in fact.metrics.items():
            line = f"{_ms(fact.at)} {unpack_number(value)!r} {fact.step}\n"
            lines.setdefault((fact.trial, name), []).append(line)
    for trial in record.runs.values():
        returned = trial.metrics or ({} if trial.value is None else {record.objective or "value": trial.value})
        for name, number in returned.items():
            line = f"{_ms(trial.ended_at or record.last_at)} {number!r} {last.get(trial.number, 0)}\n"
            known = (trial.number, name) in lines
            lines.setdefault((trial.number, f"final.{name}" if known else name), []).append(line)
    for (number, name), text in lines.items():
        run = _run_id(record, number, is_repeat=number in repeated)
        _write_text(root / run / "metrics" / _key(name), "".join(text))
    for trial in record.trials.values():
        if trial.repeats:
            _write_means(root / _run_id(record, trial.number) / "metrics", record, trial)


def _write_means(metrics: Path, record: ExperimentRecord, trial: Trial) -> None:
    """Write the mean of a trial's repeats, how far they differ, how many failed, and the value of each by its index."""
    at_ms, objective = _ms(trial.ended_at or record.last_at), record.objective or "value"
    curve = [f"{at_ms} {value!r} {step}\n" for step, value in trial.curve]
    means = trial.metrics or ({} if trial.value is None else {objective: trial.value})
    for name, value in means.items():
        key = f"final.{name}" if curve and name == objective else name
        _write_text(metrics / _key(key), f"{at_ms} {value!r} 0\n")
    if curve:
        _write_text(metrics / _key(objective), "".join(curve))
    if trial.spread is not None:
        _write_text(metrics / _key(f"{objective}.spread"), f"{at_ms} {trial.spread!r} 0\n")
    _write_text(metrics / "failures", f"{at_ms} {float(trial.failures)!r} 0\n")
    scores = [(index, record.runs[number].value) for index, number in enumerate(trial.repeats)]
    each = "".join(f"{at_ms} {value!r} {index}\n" for index, value in scores if value is not None)
    if each:
        _write_text(metrics / _key(f"{objective}.by_repeat"), each)


def _surviving_reports(folder: ExperimentFolder) -> Iterator[Reported]:
    """Yield the reports of each trial in order, without those in whose place later attempts have made others."""
    made: dict[int, list[tuple[int, Reported]]] = {}
    for fact in facts_of(folder):
        if isinstance(fact, Reported):
            own = made.setdefault(fact.trial, [])
            number = fact.number or (own[-1][0] + 1 if own else 1)
            while own and own[-1][0] >= number:
                own.pop()
            own.append((number, fact))
    for reports in made.values():
        for _, fact in reports:
            yield fact


def _run_id(record: ExperimentRecord, number: int, *, is_repeat: bool = False) -> str:
    name = f"{record.id}/{number}/repeat" if is_repeat else f"{record.id}/{number}"
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _write_tags(folder: Path, tags: Mapping[str, str]) -> None:
    for name, text in tags.items():
        _write_text(folder / _key(name), text)


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def _key(name: str) -> str:
    """Return a name that MLflow allows and that stays inside its folder, for any reported name."""
    plain = re.sub(r"[^\w.: -]", "_", name, flags=re.ASCII).strip(" .") or "_"
    return plain[:200]


def _write_yaml(path: Path, values: Mapping[str, Any]) -> None:
    """Write a flat mapping; JSON values are YAML."""
    lines = [f"{key}: {msgspec.json.encode(value).decode()}" for key, value in values.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _ms(at_s: float) -> int:
    return int(at_s * 1000)
