"""Runs in processes of their own, and what other processes ask of a run.

For the scheduler, the pages and the Airflow provider:

    started = start("retrain.py:retrain", params={"lr": 0.1}, run_id="nightly-…", cause={…}, project=project)
    record = wait(started.run_id, timeout_s=3600, project=project)    # WaitError after that
    cancel(run_id, timeout_s=30)                                      # returns its state; WaitError after that
    record = read_run(folder_of(project, run_id)); state_of(record)   # pipelines.record

A run whose id was chosen is begun once: a second `start` with the same id ends with an error that says so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError, WaitError
from cargobike.core.ids import experiment_id
from cargobike.core.layout import ProjectFolder
from cargobike.core.package import PACKAGE_PARENT
from cargobike.core.plain_files import read_plain
from cargobike.core.running.process_names import has_ended
from cargobike.core.values.exact import pack_exactly
from cargobike.pipelines.facts import RunState
from cargobike.pipelines.kind import RUNS
from cargobike.pipelines.record import RunFolder, RunRecord, find_run, folder_of, read_run, state_of
from cargobike.store.files import project as projects
from cargobike.store.files.locking import holder, holds_lock
from cargobike.store.files.mirror import refresh, share_stop

_LOOK_S: Final = 0.05
_PROGRAM: Final = f"import sys; sys.path.append({PACKAGE_PARENT!r}); from cargobike.cli import main; main()"


class Started(NamedTuple):
    """A run in a process of its own: the run's id, and the process, which outlives this one."""

    run_id: str
    process: subprocess.Popen[bytes]


def start(
    function: str,
    *,
    params: Mapping[str, Any] | None = None,
    run_id: str = "",
    cause: Mapping[str, Any] | None = None,
    project: ProjectFolder | None = None,
    folder: str = "",
    resume: bool = False,
) -> Started:
    """Start a run in a process of its own, which goes on when this one ends; what it prints is in `driver.log`.

    Args:
        function: Which pipeline: `file.py:function`.
        params: What it is called with.
        run_id: What to call the run; a new id by default.
        cause: What set it off.
        project: The project; the one in use by default.
        folder: The working directory; this process's by default.
        resume: Go on with the run of that id instead.
    """
    project = project or projects.prepare()
    run_id = run_id or experiment_id(time.time())
    if not RUNS.id.fullmatch(run_id):
        raise InvalidInputError(f"{run_id!r} cannot be the id of a run.")
    place = folder_of(project, run_id)
    place.root.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-c", _PROGRAM, "--project", str(project.root), "pipelines"]
    if resume:
        command += ["resume", run_id]
    else:
        command += ["run", function, "--run-id", run_id, "--cause", msgspec.json.encode(dict(cause or {})).decode()]
        command += ["--params", msgspec.json.encode(pack_exactly(dict(params or {}))).decode()]
    with open(place.root / "driver.log", "ab") as log:
        process = subprocess.Popen(
            [*command, "--quiet"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=folder or None,
        )
    return Started(run_id, process)


def wait(run_id: str, timeout_s: float, *, project: ProjectFolder | None = None) -> RunRecord:
    """Wait until a run has ended, or its driver is gone.

    Raises:
        WaitError: If it takes longer; says which steps run.
        NotFoundError: If there is no such run when the time is up.
    """
    project = project or projects.current()
    folder = folder_of(project, run_id)
    give_up_at = time.monotonic() + timeout_s
    while True:
        refresh(project)
        record = read_run(folder) if folder.journal.is_file() and folder.journal.stat().st_size else None
        if record is not None and state_of(record) is not RunState.RUNNING:
            return read_run(folder)
        left_s = give_up_at - time.monotonic()
        if left_s <= 0 and record is None:
            raise NotFoundError(f"There is no run {run_id!r} in {project.root} after {timeout_s:g} s.", wanted=run_id)
        if left_s <= 0:
            assert record is not None
            running = [f"step {step.number} ({step.name})" for step in record.steps.values() if step.is_open]
            raise WaitError(
                f"Run {run_id} has not ended after {timeout_s:g} s; {', '.join(running) or 'its function'} still runs.",
                missing=running,
            )
        time.sleep(min(_LOOK_S, left_s))


def cancel(run: str = "last", *, timeout: float = 30.0, force: bool = False) -> RunState:
    """Cancel a run from any process: its steps are ended, and it can be resumed later.

    Args:
        run: Its id, the beginning of its id, or `last`.
        timeout: How many seconds it may take.
        force: Whether to kill its driver on this machine if that is not enough.

    Returns:
        What became of it.

    Raises:
        WaitError: If it is still running then; says which process drives it.
    """
    project = projects.current()
    record = find_run(run, project)
    if state_of(record) is not RunState.RUNNING:
        return state_of(record)
    folder = record.folder
    folder.stop_request.touch()
    share_stop(folder)
    try:
        return state_of(wait(record.id, timeout, project=project))
    except WaitError as error:
        if force and _kill_driver(folder):
            return state_of(wait(record.id, timeout, project=project))
        raise WaitError(
            f"Run {record.id} has not ended after {timeout:g} s: {holder(folder)} drives it, and does not answer. "
            "`cargobike pipelines cancel --force` kills that process.",
            missing=[holder(folder)],
        ) from error


def _kill_driver(folder: RunFolder) -> bool:
    """Kill the driver of a run, if it is a process of this machine."""
    if not holds_lock(folder):
        return False
    with contextlib.suppress(OSError, ValueError, StoreError):
        name = read_plain(folder.lock).decode("utf-8", "replace")
        if not has_ended(name):
            os.kill(int(name.split()[0]), signal.SIGKILL)
            return True
    return False
