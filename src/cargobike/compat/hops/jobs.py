"""`hops.jobs`: programs that run beside the caller, each execution a run of a pipeline of ours."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from cargobike import pipelines
from cargobike.compat.hops.translating import job as job_pipeline
from cargobike.compat.hops.translating.files import ProjectFiles
from cargobike.compat.hops.translating.local import local_file
from cargobike.compat.noticing import formerly
from cargobike.core import settings
from cargobike.core.errors import InvalidInputError, NotFoundError, WaitError, nearest

__all__ = ["create_job", "get_executions", "start_job", "stop_job"]

_FOLDER: Final = "jobs"
PIPELINE: Final = job_pipeline.__file__
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_START_S: Final = 60.0
_PAUSE_S: Final = 0.1
_STATES: Final = {
    "running": ("RUNNING", "UNDEFINED"),
    "completed": ("FINISHED", "SUCCEEDED"),
    "failed": ("FAILED", "FAILED"),
    "cancelled": ("KILLED", "KILLED"),
    "interrupted": ("FAILED", "KILLED"),
}
_OVER: Final = frozenset({"completed", "failed", "cancelled", "interrupted"})


@formerly("hops.jobs.create_job")
def create_job(name: str, job_config: dict[str, Any]) -> dict[str, Any]:
    """Keep what a job runs: `appPath`, a `.py` or `.ipynb` in the project or on this machine, and default `args`.

    Raises:
        InvalidInputError: If it is not a program of Python.
    """
    program = str(job_config.get("appPath", ""))
    mistakes = []
    if not _NAME.fullmatch(name):
        mistakes.append(f"the name {name!r}; allowed are letters, digits, '-' and '_'")
    if not program.endswith((".py", ".ipynb")):
        mistakes.append(f"appPath={program!r}; give a .py or .ipynb: jobs of Java, Flink or Docker do not run here")
    if mistakes:
        raise InvalidInputError("This job cannot be created.", mistakes)
    config = {**job_config, "appName": name}
    ProjectFiles().storage.write(f"{_FOLDER}/{name}.json", msgspec.json.encode(config))
    return {"name": name, "config": config}


@formerly("hops.jobs.start_job")
def start_job(name: str, args: str | None = None) -> dict[str, Any]:
    """Start a job in the background, in a process that outlives this one, and return its execution.

    Raises:
        NotFoundError: If there is no such job.
        WaitError: If it does not start.
    """
    config = _config(name)
    files, program = ProjectFiles(), str(config["appPath"])
    path = Path(program) if Path(program).is_file() else local_file(files, program)
    words = args if args is not None else config.get("args", config.get("defaultArgs", ""))
    run = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(2).hex()}"
    command = [sys.executable, "-m", "cargobike.cli", "pipelines", "run", f"{PIPELINE}:job", "--run-id", run]
    command += ["--set", f"program={path.absolute()}", "--set", f"arguments={words or ''}"]
    process = subprocess.Popen(
        command,
        env={**os.environ, settings.PROJECT: files.root},
        start_new_session=True,  # it goes on when this process ends
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    threading.Thread(target=process.wait, daemon=True).start()  # so that it does not stay behind as a zombie
    return _started(run, process)


@formerly("hops.jobs.stop_job")
def stop_job(name: str) -> list[dict[str, Any]]:
    """End all executions of a job that run, and return them."""
    _config(name)
    running = [run for run in _runs(name) if str(run.state) not in _OVER]
    for run in running:
        pipelines.cancel(run.id)
    return [_execution(pipelines.get(run.id)) for run in running]


@formerly("hops.jobs.get_executions")
def get_executions(name: str, query: str = "") -> dict[str, Any]:
    """Return the executions of a job, the newest first; `?filter_by=state:RUNNING,…` chooses among them."""
    _config(name)
    items = [_execution(run) for run in _runs(name)]
    if match := re.search(r"filter_by=state:([A-Z_,]+)", query):
        items = [item for item in items if item["state"] in match[1].split(",")]
    if match := re.search(r"limit=(\d+)", query):
        items = items[: int(match[1])]
    return {"count": len(items), "items": items}


def _config(name: str) -> dict[str, Any]:
    files = ProjectFiles()
    data = files.storage.read(f"{_FOLDER}/{name}.json") if _NAME.fullmatch(name) else None
    if data is None:
        known = [Path(entry.path).stem for entry in files.storage.list(_FOLDER)]
        there = ", ".join(sorted(known)) or "none"
        raise NotFoundError(f"There is no job {name!r}; there are: {there}.{nearest(name, known)}", wanted=name)
    config: dict[str, Any] = msgspec.json.decode(data)
    return config


def _runs(name: str) -> list[pipelines.Run]:
    belongs = re.compile(rf"{re.escape(name)}-\d{{8}}-\d{{6}}-[0-9a-f]{{4}}")
    return [run for run in pipelines.list() if belongs.fullmatch(run.id)]


def _started(run: str, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    give_up_at = time.monotonic() + _START_S
    while time.monotonic() < give_up_at:
        with contextlib.suppress(NotFoundError):
            return _execution(pipelines.get(run))
        if process.poll():
            break
        time.sleep(_PAUSE_S)
    process.kill()
    process.wait()
    raise WaitError(f"The job {run} has not started.", missing=[f"process {process.pid}"])


def _execution(run: pipelines.Run) -> dict[str, Any]:
    state, final = _STATES[str(run.state)]
    return {"id": run.id, "appId": run.id, "state": state, "finalStatus": final, "duration": run.seconds}
