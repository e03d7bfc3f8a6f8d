"""`cargobike stop`."""

from __future__ import annotations

import math
import time
from typing import Annotated, Final

import typer

from cargobike.cli.printing import print_json
from cargobike.core.errors import StoreError, WaitError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import ExperimentState
from cargobike.core.values.times import read_seconds
from cargobike.experiments.commands.naming import ExperimentId
from cargobike.experiments.finding import find_experiment
from cargobike.experiments.reading import read_record
from cargobike.store.files import project
from cargobike.store.files.locking import holder, is_held
from cargobike.store.files.mirror import refresh, share_stop

_LOOK_EVERY_S: Final = 0.05


def stop(
    experiment: ExperimentId,
    timeout_s: Annotated[
        str, typer.Option("--timeout", help="How long to wait for its end: seconds, or such as 5m.")
    ] = "30",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask a running experiment to stop, and wait until it has."""
    wait_s = read_seconds("--timeout", timeout_s, may_be_zero=True)
    folder = find_experiment(experiment, is_unique=True)
    record = read_record(folder)
    was_running = record.state is ExperimentState.RUNNING
    if was_running:
        record = _stop(folder, math.inf if wait_s is None else wait_s)
    done = sum(count for state, count in record.counts.items() if state.is_final)
    if as_json:
        print_json({"id": folder.id, "state": record.state.value, "was_running": was_running, "trials_done": done})
    elif record.state is not ExperimentState.LOST:
        word = "is" if was_running else "was already"
        typer.echo(f"{folder.id} {word} {record.state.value}, with {done} trials done.")
    if record.state is ExperimentState.LOST:
        raise StoreError(
            f"The driver of {folder.id} ({holder(folder)}) has died: the experiment is lost, and there is "
            f"nothing left to stop. Its {done} ended trials are kept."
        )


def _stop(folder: ExperimentFolder, timeout_s: float) -> ExperimentRecord:
    try:
        folder.stop_request.touch()
        share_stop(folder)
    except OSError as error:
        raise StoreError(f"Cannot ask {folder.id} to stop: {error.strerror}.") from error
    give_up_at = time.monotonic() + timeout_s
    while is_held(folder):
        if time.monotonic() > give_up_at:
            raise WaitError(
                f"{folder.id} was asked to stop, but {holder(folder)} did not end within {timeout_s:g} s. "
                "Wait longer with --timeout, or end that process."
            )
        time.sleep(_LOOK_EVERY_S)
        refresh(project.current())
    folder.stop_request.unlink(missing_ok=True)  # if it ended by itself, a later resume must not find it
    return read_record(folder)
