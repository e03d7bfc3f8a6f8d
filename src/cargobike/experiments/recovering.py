"""Goes on with experiments that a step of a pipeline had launched when its process was killed."""

from __future__ import annotations

import os
import shutil
from typing import Any, Final

from cargobike.core.errors import ExperimentFailedError, StoreError, TrialFailedError
from cargobike.core.facts import EXPERIMENT_FACTS
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import ExperimentState
from cargobike.experiments import front
from cargobike.experiments.asking.launching import outcome
from cargobike.experiments.asking.recipe import read_recipe
from cargobike.experiments.finding import experiment_ids
from cargobike.experiments.reading import read_record
from cargobike.experiments.results.result import Result
from cargobike.store.files.locking import DriverLock
from cargobike.store.journal.journal import read_header

_TO_THE_SECOND: Final = len("20261117-184032")


def recover_launch(token: str, project: ProjectFolder, *_: Any, **said: Any) -> Result | None:
    """Return the result of the experiment that a step launched; one that had not ended goes on to its end.

    One that failed is launched anew, as the step that failed with it is.

    Args:
        token: Names the step.
        project: The project.
        **said: How it was launched; engine, callbacks and quiet are not kept with an experiment.
    """
    folder = _launched_by(token, project)
    if folder is None:
        return None
    record = read_record(folder)
    if record.state is ExperimentState.COMPLETED:
        try:
            return outcome(record, folder, is_single=record.header.asked.is_single)
        except TrialFailedError:
            return None
    if record.state is ExperimentState.FAILED or _is_stillborn(folder, record):
        return None
    chosen = {name: said[name] for name in ("engine", "callbacks", "quiet") if name in said}
    try:
        return front.resume(folder.id, **chosen)
    except (ExperimentFailedError, TrialFailedError):
        raise
    except StoreError:
        if _is_stillborn(folder, read_record(folder)):
            return None
        raise


def _launched_by(token: str, project: ProjectFolder) -> ExperimentFolder | None:
    """Return the newest experiment that a step launched."""
    newest: tuple[float, ExperimentFolder] | None = None
    for experiment_id in reversed(experiment_ids()):
        if newest is not None and not experiment_id.startswith(newest[1].id[:_TO_THE_SECOND]):
            break  # ids are in the order of seconds; within one only the headers know
        folder = project.experiment(experiment_id)
        try:
            header = read_header(folder.journal, EXPERIMENT_FACTS)
        except StoreError:
            continue  # of one that is damaged it is not known who launched it
        if header is not None and header.step == token and (newest is None or header.at > newest[0]):
            newest = (header.at, folder)
    return None if newest is None else newest[1]


def _is_stillborn(folder: ExperimentFolder, record: ExperimentRecord) -> bool:
    """Tell whether an experiment was killed before its code was kept, and so cannot go on; it is removed then.

    None of its trials has ended: nothing is lost.
    """
    if any(trial.state.is_final for trial in record.trials.values()):
        return False
    try:
        read_recipe(folder.code)
        if folder.payload.exists():
            return False
    except StoreError:
        pass
    with DriverLock(folder):
        doomed = folder.root.with_name(f".removing-{folder.id}-{os.getpid()}")
        folder.root.rename(doomed)
    shutil.rmtree(doomed)
    return True
