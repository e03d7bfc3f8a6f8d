"""What a trial leaves for the product that keeps models: where it came from, what it measured, what it saved."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cargobike.core import layout
from cargobike.core.facts import EXPERIMENT_FACTS, ExperimentStarted
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.core.records import Trial
from cargobike.core.registering.modelling import Trained, Training, model_keeper
from cargobike.core.values.exact import pack_exactly
from cargobike.store.history.snapshot import Snapshot, read_snapshot
from cargobike.store.journal.journal import read_header

PACKED = "packed.json"


def trained_by(trial: Trial, experiment: ExperimentFolder, load_state: Callable[[], Any] | None) -> Trained:
    """Return what a trial leaves for the product that keeps models.

    Args:
        trial: The trial.
        experiment: The folder of its experiment.
        load_state: Loads its best checkpoint, if it has one.
    """
    header = read_header(experiment.journal, EXPERIMENT_FACTS)
    snapshot = read_snapshot(experiment)
    return Trained(
        training=training_of(trial, experiment, header, snapshot),
        metrics=_metrics(trial, header),
        requirements="" if snapshot is None else snapshot.environment.lock(),
        made_from=(),
        packed=packed_in(experiment, trial.number),
        load_state=load_state,
        project=experiment.project,
    )


def recover_registered(token: str, _: ProjectFolder, trial: Trial, name: str, *__: Any, **___: Any) -> Any:
    """Return the version that a step of a pipeline registered from a trial before its process was killed."""
    return model_keeper().made_by(token, name)


def training_of(
    trial: Trial, experiment: ExperimentFolder, header: ExperimentStarted | None, snapshot: Snapshot | None
) -> Training:
    """Return where a model of a trial came from, as far as that is known."""
    feeding = None if header is None else header.asked.feeding
    return Training(
        experiment=experiment.id,
        trial=trial.number,
        attempt=trial.attempts,
        function="" if header is None else header.function,
        params=pack_exactly(trial.params),
        code=_code(experiment, snapshot),
        commit="" if snapshot is None or snapshot.git is None else snapshot.git.commit,
        data="" if feeding is None else feeding.source,
        data_version="" if feeding is None else feeding.version,
        data_fingerprint="" if feeding is None else feeding.fingerprint,
    )


def packed_in(experiment: ExperimentFolder, number: int) -> dict[str, Path]:
    """Return the folders in which a trial has packed models, by the models' names."""
    folder = experiment.trial(number).files / layout.PACKED_MODELS
    try:
        folders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError:
        return {}
    return {path.name: path for path in folders if (path / PACKED).is_file()}


def _metrics(trial: Trial, header: ExperimentStarted | None) -> dict[str, float]:
    if trial.metrics or trial.value is None:
        return dict(trial.metrics)
    return {(header.metric if header is not None else None) or "value": trial.value}


def _code(experiment: ExperimentFolder, snapshot: Snapshot | None) -> str:
    """Return a fingerprint of the user's files as they were at launch, and of the function as it was sent."""
    digest = hashlib.sha256()
    for path, sha256 in sorted(snapshot.sources.files.items()) if snapshot is not None else ():
        digest.update(f"{path.partition('/')[2]} {sha256}\n".encode())
    try:
        digest.update(experiment.function.read_bytes())
    except OSError:
        if snapshot is None or not snapshot.sources.files:
            return ""
    return digest.hexdigest()
